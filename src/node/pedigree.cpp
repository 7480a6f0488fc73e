#include "node/pedigree.h"

#include <algorithm>

namespace ts::node {
namespace {

constexpr int kLongestChain = 256;  // what is read while processes come and go may loop

const Root* rootOf(const Identity& identity, const std::vector<Root>& roots) {
  auto it =
      std::ranges::find_if(roots, [&](const Root& r) { return r.process.identity == identity; });
  return it == roots.end() ? nullptr : &*it;
}

const Root* nearestAncestor(Process process, const std::vector<Root>& roots,
                            const FindProcess& find) {
  for (int i = 0; i < kLongestChain; ++i) {
    if (const Root* root = rootOf(process.identity, roots)) return root;
    auto parent = process.parent > 1 ? find(process.parent) : std::nullopt;
    if (!parent) return nullptr;
    process = *parent;
  }
  return nullptr;
}

// The one job among the roots that `shares` accepts.
template <class F>
std::optional<JobName> theOnly(const std::vector<Root>& roots, F shares) {
  std::optional<JobName> only;
  for (const auto& root : roots) {
    if (!shares(root)) continue;
    if (only && *only != root.job) return {};
    only = root.job;
  }
  return only;
}

}  // namespace

std::optional<JobName> jobOf(const Process& process, const std::vector<Root>& roots,
                             const FindProcess& find) {
  if (const Root* root = nearestAncestor(process, roots, find)) return root->job;
  auto sameSession = [&](const Root& r) {
    return r.process.uid == process.uid && r.process.session == process.session;
  };
  if (process.session > 1) {
    if (auto job = theOnly(roots, sameSession)) return job;
  }
  auto sameCgroup = [&](const Root& r) {
    return r.process.uid == process.uid && r.process.cgroup == process.cgroup;
  };
  if (process.cgroup.size() > 1) return theOnly(roots, sameCgroup);
  return {};
}

}  // namespace ts::node
