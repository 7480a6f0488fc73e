#include "job.h"

#include <algorithm>

#include "mention.h"

namespace ts {

bool Member::on() const {
  if (moving) return true;  // until the outcome says what it left
  if (fact.residency == Residency::Saved) return fact.unreleased && !ours();
  return fact.residency != Residency::Absent;
}

bool Booked::covers(const Booked& need) const {
  auto within = [](const std::vector<MemberId>& part, const std::vector<MemberId>& whole) {
    return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
  };
  return within(need.outgoing, outgoing) && within(need.incoming, incoming);
}

std::string Job::lateCalls() const {
  std::string all;
  for (const auto& [member, m] : members) {
    if (m.overdue && !m.dead) all += (all.empty() ? "a call on " : ", ") + mention(member);
  }
  return all;
}

bool Job::complete() const {
  return !participants.empty() && !claim.empty() && gathered();
}

bool Job::runs(const Member& member) const {
  bool running =
      member.fact.residency == Residency::Resident || member.fact.residency == Residency::Quiescing;
  return running && member.ours();
}

// Nor is an order under way that lets one run, or that has not stopped it yet.
bool Job::still() const {
  bool locking =
      std::any_of(onNode.begin(), onNode.end(), [](const auto& n) { return n.second.locking(); });
  return !locking && std::none_of(members.begin(), members.end(),
                                  [&](const auto& m) { return runs(m.second); });
}

bool Job::moving() const {
  return std::any_of(members.begin(), members.end(),
                     [](const auto& m) { return m.second.moving.has_value(); });
}

bool Job::hasSaved() const {
  return std::any_of(members.begin(), members.end(),
                     [](const auto& m) { return m.second.saved(); });
}

bool Job::unreleased() const {
  return std::any_of(members.begin(), members.end(),
                     [](const auto& m) { return m.second.unreleased(); });
}

bool Job::hasOn() const {
  return std::any_of(members.begin(), members.end(),
                     [](const auto& m) { return m.second.on() && m.second.ours(); });
}

}  // namespace ts
