#include "cli/causes.h"

#include <array>
#include <utility>

namespace ts::cli {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 15> kMeanings{{
    {"paused", "an operator paused the group: tsctl resume GROUP"},
    {"no-host-memory", "a node has no host memory for the state that would have to be saved"},
    {"no-device-memory", "a device has not the memory that its state needs to come back"},
    {"not-released", "what was saved is still seen on a device; it is measured again"},
    {"stranger", "a process of no job has memory on a device: nvidia-smi shows which"},
    {"node-suspect", "a node does not answer, or not as it should: tsctl nodes"},
    {"node-dead", "a node was given up: tsctl nodes"},
    {"job-faulted", "its own state cannot be moved: tsctl clear-fault, or tsctl evict --kill"},
    {"blocked", "a job that cannot be moved sits on its devices"},
    {"broken", "its gang lost a participant"},
    {"outside", "it was seen on a device outside its claim"},
    {"overdue", "a call to the driver takes longer than its deadline and is waited for"},
    {"drained", "an operator drained a node of its claim: tsctl undrain NODE"},
    {"no-record", "a node's state_dir is full: make room on it; it is tried again by itself"},
    {"unsupported", "its backend cannot do this here: tsctl doctor on the node"},
}};

}  // namespace

std::string explainCause(const std::string& word) {
  for (const auto& [cause, meaning] : kMeanings) {
    if (word == cause) return word + ": " + meaning;
  }
  return word;
}

}  // namespace ts::cli
