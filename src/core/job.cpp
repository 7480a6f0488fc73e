#include "job.h"

#include <algorithm>

namespace ts {

bool Member::on() const {
  if (moving) return true;  // until the outcome says what it left
  return fact.residency != Residency::Absent && fact.residency != Residency::Saved;
}

bool Booked::covers(const Booked& need) const {
  auto within = [](const std::vector<MemberId>& part, const std::vector<MemberId>& whole) {
    return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
  };
  return within(need.outgoing, outgoing) && within(need.incoming, incoming);
}

bool Job::complete() const {
  if (participants.empty() || claim.empty()) return false;
  return options.gang == 0 || everJoined >= options.gang;
}

bool Job::runs(const Member& member) const {
  if (member.dead || member.condemned) return false;
  switch (member.fact.residency) {
    case Residency::Resident:
    case Residency::Quiescing:
      return true;
    case Residency::Quiet: {
      auto here = onNode.find(member.node);
      return here != onNode.end() && here->second.locking();
    }
    default:
      return false;
  }
}

bool Job::still() const {
  return std::none_of(members.begin(), members.end(), [&](const auto& m) { return runs(m.second); });
}

bool Job::moving() const {
  return std::any_of(members.begin(), members.end(),
                     [](const auto& m) { return m.second.moving.has_value(); });
}

bool Job::hasSaved() const {
  return std::any_of(members.begin(), members.end(), [](const auto& m) { return m.second.saved(); });
}

bool Job::hasOn() const {
  return std::any_of(members.begin(), members.end(),
                     [](const auto& m) { return m.second.on() && !m.second.dead; });
}

bool Job::hasBooking() const {
  return std::any_of(onNode.begin(), onNode.end(), [](const auto& n) {
    return n.second.booking != OnNode::Booking::None;
  });
}

}  // namespace ts
