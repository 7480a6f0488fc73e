#include "master/sentences.h"

#include <regex>

namespace ts {
namespace {

std::string nodeName(Directory& directory, std::uint64_t id) {
  return id < directory.nodes().size() ? directory.node(NodeId(id)).name : "?";
}

std::string groupName(Directory& directory, std::uint64_t id) {
  return id < directory.groups() ? directory.name(GroupId(id)) : "?";
}

std::string name(Directory& directory, const std::string& kind, std::uint64_t id,
                 const std::string& index) {
  if (kind == "node") return "node " + nodeName(directory, id);
  if (kind == "group") return "group " + groupName(directory, id);
  if (kind == "device") return "device " + index + " of node " + nodeName(directory, id);
  if (kind == "member") {
    auto* member = directory.find(MemberId(id));
    if (member == nullptr) return "a process that has ended";
    return "process " + std::to_string(member->pid) + " of node " + member->node->name;
  }
  auto* participant = directory.find(ParticipantId(id));
  if (participant == nullptr) return "a process that has left";
  std::string which = participant->pid > 0 ? "process " + std::to_string(participant->pid)
                                           : std::string("a process");
  return which + " of node " + participant->node->name;
}

}  // namespace

std::string withNames(Directory& directory, const std::string& sentence) {
  static const std::regex mentioned(
      "(node|group|device|member|participant) #([0-9]{1,19})(?::([0-9]+))?");
  std::string out;
  auto rest = sentence.cbegin();
  for (std::sregex_iterator it(sentence.begin(), sentence.end(), mentioned), end; it != end; ++it) {
    out.append(rest, (*it)[0].first);
    out += name(directory, (*it)[1], std::stoull((*it)[2]), (*it)[3]);
    rest = (*it)[0].second;
  }
  return out.append(rest, sentence.cend());
}

}  // namespace ts
