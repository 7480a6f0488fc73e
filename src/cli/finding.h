// What doctor found: a verdict, what it is about, and what to do.
#pragma once

#include <string>
#include <vector>

namespace ts::cli {

enum class Verdict { Ok, Warn, Fail };

struct Finding {
  Verdict verdict = Verdict::Ok;
  std::string what;
  std::string cure;  // "" where there is nothing to do
};
using Findings = std::vector<Finding>;

class Failure;

const char* nameOf(Verdict verdict);  // "ok", "warn", "fail"
// A Failure's sentence is "what: cause; cure".
Finding failed(const Failure& failure);
// A node daemon's report: lines of "verdict TAB what; cure".
Findings readReport(const std::string& text);
std::string showFindings(const Findings& findings);
std::string findingsJson(const Findings& findings);
bool anyFailed(const Findings& findings);

}  // namespace ts::cli
