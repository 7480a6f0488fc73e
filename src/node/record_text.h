// Values as one line of text and back, for the journal: fields in a fixed order. What does not
// decode throws std::invalid_argument. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "node/registry.h"

namespace ts::node {

std::string encode(const JobSpec& spec);
JobSpec decodeSpec(const std::string& text);
std::string encode(const Participant& participant);
Participant decodeParticipant(const std::string& text);
std::string encode(const Step& step);
Step decodeStep(const std::string& text);
std::string encode(const StepAccount& account);
StepAccount decodeAccount(const std::string& text);
std::string encode(const Wait& wait);  // its place: the phase is told once
Wait decodeWait(const std::string& text);
std::string encode(const Member& member);
Member decodeMember(const std::string& text);
std::string encode(const Grant& grant);
Grant decodeGrant(const std::string& text);
std::string encode(const Identity& process, const DeviceBytes& bytes);
std::pair<Identity, DeviceBytes> decodeByHand(const std::string& text);
std::uint64_t decodeNumber(std::string_view text);
std::string encode(const std::set<std::string>& nodes);
std::set<std::string> decodeNodes(const std::string& text);

}  // namespace ts::node
