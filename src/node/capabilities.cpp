#include "node/capabilities.h"

#include <kj/debug.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

namespace ts::node {
namespace {

std::uint64_t bit(int number) {
  return std::uint64_t(1) << number;
}

std::uint64_t listed() {
  std::uint64_t set = 0;
  for (const auto& c : kCapabilities) set |= bit(c.number);
  return set;
}

// What a process can never get back, also not by running another program. Needs CAP_SETPCAP: who
// has none could not get any back anyway.
void dropFromBound(std::uint64_t keep) {
  for (int number = 0; ::prctl(PR_CAPBSET_READ, number) >= 0; ++number) {
    if ((keep & bit(number)) == 0) ::prctl(PR_CAPBSET_DROP, number);
  }
}

}  // namespace

void keepListedCapabilities() {
  auto keep = listed();
  dropFromBound(keep);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2];
  KJ_SYSCALL(::syscall(SYS_capget, &header, sets));
  for (int word = 0; word < 2; ++word) {
    auto wanted = std::uint32_t(keep >> (32 * word));
    sets[word].permitted &= wanted;
    sets[word].effective = sets[word].permitted;
    sets[word].inheritable = 0;
  }
  KJ_SYSCALL(::syscall(SYS_capset, &header, sets));
}

std::vector<Capability> missingCapabilities() {
  auto has = capabilitySet("CapEff");
  std::vector<Capability> missing;
  for (const auto& c : kCapabilities) {
    if ((has & bit(c.number)) == 0) missing.push_back(c);
  }
  return missing;
}

std::uint64_t capabilitySet(const std::string& which) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    if (word != which + ":") continue;
    in >> word;
    return std::stoull(word, nullptr, 16);
  }
  return 0;
}

}  // namespace ts::node
