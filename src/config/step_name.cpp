#include "config/step_name.h"

#include <charconv>

namespace ts {
namespace {

struct Parts {
  std::string_view job, run, step;  // run: empty in the first
};

Parts partsOf(std::string_view name) {
  auto dot = name.find('.');
  if (dot == std::string_view::npos) return {};
  std::string_view job = name.substr(0, dot);
  auto dash = job.find('-');
  if (dash == std::string_view::npos) return {job, {}, name.substr(dot + 1)};
  std::string_view run = job.substr(dash + 1);
  if (run.empty()) return {};
  return {job.substr(0, dash), run, name.substr(dot + 1)};
}

bool isNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool isStepName(std::string_view name) {
  Parts parts = partsOf(name);
  if (!isNumber(parts.job) || !(parts.run.empty() || isNumber(parts.run))) return false;
  return parts.step == "batch" || parts.step == "interactive" || isNumber(parts.step);
}

std::uint32_t runOf(std::string_view stepName) {
  std::uint32_t run = 0;
  if (!isStepName(stepName)) return 0;
  std::string_view text = partsOf(stepName).run;
  std::from_chars(text.data(), text.data() + text.size(), run);
  return run;
}

}  // namespace ts
