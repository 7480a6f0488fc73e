#include "cli/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/failure.h"
#include "wire/status_json.h"

namespace ts::cli {

const char* nameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok:
      return "ok";
    case Verdict::Warn:
      return "warn";
    case Verdict::Fail:
      return "fail";
  }
  return "fail";
}

Finding failed(const Failure& failure) {
  std::string text = failure.what();
  auto cure = text.find("; ");
  if (cure == std::string::npos) return {Verdict::Fail, text, ""};
  return {Verdict::Fail, text.substr(0, cure), text.substr(cure + 2)};
}

Findings readReport(const std::string& text) {
  Findings findings;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto tab = line.find('\t');
    if (tab == std::string::npos) continue;
    Finding finding{Verdict::Fail, line.substr(tab + 1), ""};
    for (Verdict verdict : {Verdict::Ok, Verdict::Warn}) {
      if (line.substr(0, tab) == nameOf(verdict)) finding.verdict = verdict;
    }
    auto cure = finding.what.rfind("; ");
    if (finding.verdict != Verdict::Ok && cure != std::string::npos) {
      finding.cure = finding.what.substr(cure + 2);
      finding.what.erase(cure);
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::string showFindings(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    std::string verdict = nameOf(finding.verdict);
    text += verdict + std::string(6 - verdict.size(), ' ') + finding.what + "\n";
    if (!finding.cure.empty()) text += "      " + finding.cure + "\n";
  }
  return text;
}

std::string findingsJson(const Findings& findings) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    checks.push_back(
        {{"verdict", nameOf(finding.verdict)}, {"what", finding.what}, {"cure", finding.cure}});
  }
  return textOf(nlohmann::ordered_json{{"ok", !anyFailed(findings)}, {"checks", checks}}, 2) + "\n";
}

bool anyFailed(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.verdict == Verdict::Fail; });
}

}  // namespace ts::cli
