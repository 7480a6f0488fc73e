// What the plugin calls the steps of Slurm jobs: "17.0", "17.batch"; of a job that Slurm runs anew,
// "17-1.0" the first time. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace ts {

bool isStepName(std::string_view name);
// How often Slurm had run the job before; 0 also of a name that is no step's.
std::uint32_t runOf(std::string_view stepName);

}  // namespace ts
