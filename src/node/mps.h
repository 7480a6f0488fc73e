// Whether a process shares its device through NVIDIA's MPS: then its state can be neither stopped
// nor saved.
#pragma once

#include <sys/types.h>

#include <string>

namespace ts::node {

// Why it counts as a client of MPS, or nothing. The pipe directory that it was given, or CUDA's
// default, counts while a control daemon listens there: at the default one of root or of the same
// user. What cannot be read says nothing.
std::string mpsClient(pid_t pid, const std::string& procRoot = "/proc");

// What a client of MPS is refused with. `how`: it is known.
std::string mpsRefusal(pid_t pid, const std::string& how);
constexpr const char* kMpsByDriver = "the driver lists it as one";

}  // namespace ts::node
