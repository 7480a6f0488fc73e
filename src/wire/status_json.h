// The one JSON form of what a master shows: for tsctl --json and for the dashboard.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "timeslice.capnp.h"

namespace ts {

// Keys are the schema's in snake_case; durations end in _s and are seconds. `since_s` of a job is
// null while it neither waits nor holds. Generation ids are hexadecimal text: they need all 64
// bits.
nlohmann::ordered_json toJson(wire::OperatorSession::StatusResults::Reader status);
nlohmann::ordered_json toJson(wire::GroupStatus::Reader group);
nlohmann::ordered_json toJson(wire::JobStatus::Reader job);
nlohmann::ordered_json toJson(wire::NodeStatus::Reader node);
nlohmann::ordered_json toJson(wire::EventLine::Reader line);
nlohmann::ordered_json toJson(wire::Outcome::Reader outcome);

// The whole status on one line: for who serves it and knows no JSON.
std::string statusText(wire::OperatorSession::StatusResults::Reader status);

// Never throws: what is no UTF-8 is replaced. `indent` as nlohmann's dump: -1 for one line.
std::string textOf(const nlohmann::ordered_json& json, int indent = -1);

// "GROUP/NAME", as people write a job.
std::string textOf(wire::JobKey::Reader key);

}  // namespace ts
