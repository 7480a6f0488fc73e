// simgpu-card: makes cards, shows what is on them, and sets their knobs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "simgpu/cuda_abi.h"
#include "simgpu/host.h"
#include "simgpu/settings.h"
#include "simgpu/uuid.h"

namespace {

using namespace simgpu;
using Words = std::vector<std::string>;

constexpr int kUsage = 2;

constexpr const char* kHelp =
    "usage: simgpu-card create DIR [--cards N] [--bytes 1GiB] [--h2d 4GB/s] [--d2h 4GB/s]\n"
    "                              [--lock 5ms] [--save 5ms] [--restore 5ms] [--unlock 5ms]\n"
    "       simgpu-card show DIR [--json]\n"
    "       simgpu-card set DIR/N KEY=VALUE...     (KEY= removes it)\n"
    "Put DIR on a tmpfs such as /dev/shm, then run programs with SIMGPU_CARDS=DIR and the folder "
    "of\n"
    "the stand-in libcuda.so.1 in LD_LIBRARY_PATH.\n"
    "Exit: 0 done, 1 failed, 2 usage.\n\n"
    "Examples:\n"
    "  simgpu-card create /dev/shm/cards --cards 2 --bytes 256MiB\n"
    "  simgpu-card show /dev/shm/cards --json\n"
    "  simgpu-card set /dev/shm/cards/0 save=50ms d2h=1GB/s\n";

int usage() {
  std::fputs(kHelp, stderr);
  return kUsage;
}

int failed(const std::string& error) {
  std::fprintf(stderr, "simgpu-card: %s\n", error.c_str());
  return 1;
}

int create(const Words& words) {
  if (words.empty()) return usage();
  unsigned cards = 1;
  std::string options;
  std::string bytes = "1GiB";
  for (std::size_t i = 1; i + 1 < words.size() + 1; i += 2) {
    if (!words[i].starts_with("--") || i + 1 == words.size()) return usage();
    std::string key = words[i].substr(2);
    if (key == "cards")
      cards = static_cast<unsigned>(std::strtoul(words[i + 1].c_str(), nullptr, 10));
    else if (key == "bytes")
      bytes = words[i + 1];
    else
      options += key + " = " + words[i + 1] + "\n";
  }
  Words texts;
  for (unsigned i = 0; i < cards && i <= kMaxCards; ++i)
    texts.push_back("bytes = " + bytes + "\nuuid = " + freshUuid() + "\n" + options);
  if (auto error = createHost(words[0], texts)) return failed(*error);
  return 0;
}

const char* stateName(unsigned state) {
  constexpr const char* kNames[] = {"running", "locked", "checkpointed", "failed"};
  return state < std::size(kNames) ? kNames[state] : "unknown";
}

std::vector<unsigned> usersOf(Host& host, unsigned card) {
  std::vector<unsigned> slots;
  for (unsigned i = 0; i < kMaxProcesses; ++i)
    if (host.slot(i).pid != 0 && (host.slot(i).contexts >> card & 1u) != 0) slots.push_back(i);
  return slots;
}

// A process whose state is saved is on no card.
std::vector<unsigned> elsewhere(Host& host) {
  std::vector<unsigned> slots;
  for (unsigned i = 0; i < kMaxProcesses; ++i)
    if (host.slot(i).pid != 0 && host.slot(i).contexts == 0) slots.push_back(i);
  return slots;
}

void showText(Host& host) {
  for (unsigned c = 0; c < host.cardCount(); ++c) {
    Card& card = host.card(c);
    std::printf("card %u  %s  used %llu of %llu MiB  busy %.3f s  utilization %u %%\n", c,
                card.settings()->uuid.c_str(),
                static_cast<unsigned long long>(card.usedBytes() >> 20),
                static_cast<unsigned long long>(card.totalBytes() >> 20), card.busySeconds(),
                card.utilization());
    for (unsigned i : usersOf(host, c))
      std::printf("  pid %d  %llu MiB  %s\n", host.slot(i).pid.load(),
                  static_cast<unsigned long long>(host.slot(i).bytes[c] >> 20),
                  stateName(host.slot(i).state));
  }
  for (unsigned i : elsewhere(host))
    std::printf("on no card: pid %d  %s\n", host.slot(i).pid.load(), stateName(host.slot(i).state));
}

std::string processJson(Host& host, unsigned slot, std::uint64_t bytes) {
  return "{\"pid\":" + std::to_string(host.slot(slot).pid) + ",\"bytes\":" + std::to_string(bytes) +
         ",\"state\":\"" + stateName(host.slot(slot).state) + "\"}";
}

std::string joined(const Words& parts) {
  std::string all;
  for (const auto& part : parts) all += (all.empty() ? "" : ",") + part;
  return all;
}

void showJson(Host& host) {
  Words cards;
  for (unsigned c = 0; c < host.cardCount(); ++c) {
    Card& card = host.card(c);
    Words users;
    for (unsigned i : usersOf(host, c))
      users.push_back(processJson(host, i, host.slot(i).bytes[c]));
    char text[256];
    std::snprintf(text, sizeof text,
                  "{\"index\":%u,\"uuid\":\"%s\",\"total_bytes\":%llu,\"used_bytes\":%llu,"
                  "\"free_bytes\":%llu,\"busy_s\":%.9f,\"processes\":[",
                  c, card.settings()->uuid.c_str(),
                  static_cast<unsigned long long>(card.totalBytes()),
                  static_cast<unsigned long long>(card.usedBytes()),
                  static_cast<unsigned long long>(card.freeBytes()), card.busySeconds());
    cards.push_back(text + joined(users) + "]}");
  }
  Words others;
  for (unsigned i : elsewhere(host)) others.push_back(processJson(host, i, 0));
  std::printf("{\"cards\":[%s],\"on_no_card\":[%s]}\n", joined(cards).c_str(),
              joined(others).c_str());
}

int show(const Words& words) {
  bool json = words.size() == 2 && words[1] == "--json";
  if (words.empty() || (words.size() > 1 && !json)) return usage();
  std::string error;
  auto host = Host::open(words[0], error);
  if (!host) return failed(error);
  host->reclaim();
  if (json)
    showJson(*host);
  else
    showText(*host);
  return 0;
}

int set(const Words& words) {
  if (words.size() < 2) return usage();
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::size_t equals = words[i].find('=');
    if (equals == std::string::npos) return usage();
    auto error =
        setKey(words[0] + "/card.conf", words[i].substr(0, equals), words[i].substr(equals + 1));
    if (error) return failed(*error);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Words words(argv + 1, argv + argc);
  if (words.empty()) return usage();
  Words rest(words.begin() + 1, words.end());
  if (words[0] == "--help" || words[0] == "-h") return std::fputs(kHelp, stdout) < 0;
  if (words[0] == "create") return create(rest);
  if (words[0] == "show") return show(rest);
  if (words[0] == "set") return set(rest);
  return usage();
}
