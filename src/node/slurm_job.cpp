#include "node/slurm_job.h"

#include <charconv>
#include <fstream>
#include <string>

namespace ts::node {
namespace {

constexpr int kLongestChain = 256;  // what is read while processes come and go may loop

std::optional<std::uint32_t> numberAfter(std::string_view mark, std::string_view text) {
  auto at = text.find(mark);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + mark.size());
  std::uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool any = error == std::errc{} && end != text.data();
  return any ? std::optional(value) : std::nullopt;
}

std::string titleOf(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
  std::string title;
  std::getline(in, title, '\0');
  return title;
}

}  // namespace

std::optional<std::uint32_t> slurmJobIn(std::string_view cgroup) {
  if (cgroup.find("slurm") == std::string_view::npos) return {};
  return numberAfter("/job_", cgroup);
}

std::optional<std::uint32_t> slurmJobInTitle(std::string_view title) {
  if (!title.starts_with("slurmstepd: [")) return {};
  return numberAfter("[", title);
}

std::optional<std::uint32_t> slurmJobOf(const Process& process) {
  if (auto job = slurmJobIn(process.cgroup)) return job;
  auto at = std::optional(process);
  for (int i = 0; at && i < kLongestChain; ++i) {
    if (auto job = slurmJobInTitle(titleOf(at->identity.pid))) return job;
    at = at->parent > 1 ? readProcess(at->parent) : std::nullopt;
  }
  return {};
}

}  // namespace ts::node
