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

// The first of its session among those it comes from, as far as they are alive.
Process topOfSession(Process process, const FindProcess& find) {
  for (int i = 0; i < kLongestChain; ++i) {
    auto parent = process.parent > 1 ? find(process.parent) : std::nullopt;
    if (!parent || parent->session != process.session) return process;
    process = *parent;
  }
  return process;
}

bool leads(const Process& process) {
  return process.identity.pid == process.session;
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

std::optional<Kinship> jobOf(const Process& process, const std::vector<Root>& roots,
                             const FindProcess& find) {
  if (const Root* root = nearestAncestor(process, roots, find)) {
    return Kinship{root->job, root->process.identity == process.identity ? "joined" : "child"};
  }
  auto top = topOfSession(process, find);
  auto sharesSession = [&](const Root& r) {
    return r.process.uid == process.uid && r.process.session == process.session;
  };
  // Its line to the leader is cut. Everybody's line ends at init: that alone says nothing.
  if (!leads(top) && process.session > 1) {
    if (auto job = theOnly(roots, sharesSession)) return Kinship{*job, "session"};
  }
  auto sharesCgroup = [&](const Root& r) {
    return r.process.uid == process.uid && r.process.cgroup == process.cgroup &&
           r.process.session != process.session;
  };
  bool adopted = !leads(top) || top.parent == 1;
  if (adopted && process.cgroup.size() > 1) {
    if (auto job = theOnly(roots, sharesCgroup)) return Kinship{*job, "cgroup"};
  }
  return {};
}

}  // namespace ts::node
