// What the plugin calls the steps of Slurm jobs: "17.0", "17.batch"; of a job that Slurm runs anew,
// "17-1.0" the first time. Pure.
#pragma once

#include <string_view>

namespace ts {

bool isStepName(std::string_view name);

}  // namespace ts
