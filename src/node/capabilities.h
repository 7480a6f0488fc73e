// What a node daemon may do beyond any user: the one list of its capabilities, and how it keeps to
// it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ts::node {

struct Capability {
  int number;  // as the kernel counts
  const char* name;
  const char* purpose;
};

// systemd/tsnoded.service has the same names; a test compares them.
inline constexpr std::array<Capability, 2> kCapabilities{{
    {5, "CAP_KILL", "ends the processes of jobs"},
    {19, "CAP_SYS_PTRACE", "looks at jobs' processes; the driver asks for it to move their state"},
}};

// Gives up all others, for this thread and those it starts, for good. Once, at the start.
void keepListedCapabilities();
// Those of the list that this process has not.
std::vector<Capability> missingCapabilities();
// The set of them: bit N for number N. `which`: "CapEff", "CapBnd" and so on of /proc/self/status.
std::uint64_t capabilitySet(const std::string& which);

}  // namespace ts::node
