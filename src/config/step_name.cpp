#include "config/step_name.h"

namespace ts {
namespace {

bool isNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool isStepName(std::string_view name) {
  auto dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  std::string_view job = name.substr(0, dot), step = name.substr(dot + 1);
  if (auto dash = job.find('-'); dash != std::string_view::npos) {
    if (!isNumber(job.substr(dash + 1))) return false;  // the run
    job = job.substr(0, dash);
  }
  return isNumber(job) && (step == "batch" || step == "interactive" || isNumber(step));
}

}  // namespace ts
