#include "master/facts.h"

namespace ts {

MemberRecord& member(Directory& directory, NodeRecord& node, JobRecord& job, std::uint64_t local,
                     std::int32_t pid) {
  if (auto* known = directory.findMember(node, local)) return *known;
  return directory.addMember(node, local, job, pid);
}

void adopt(Directory& directory, NodeRecord& node, JobRecord& job, std::vector<MemberFact>& facts) {
  for (MemberFact& fact : facts)
    fact.member = member(directory, node, job, std::uint64_t(fact.member), 0).id;
}

}  // namespace ts
