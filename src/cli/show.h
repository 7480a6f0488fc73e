// What the master tells, as text for people.
#pragma once

#include <string>

#include "timeslice.capnp.h"

namespace ts::cli {

using Status = wire::OperatorSession::StatusResults;

std::string showStatus(Status::Reader status);
std::string showGroups(Status::Reader status);
std::string showJobs(Status::Reader status, const std::string& group);  // "": of all groups
std::string showNodes(Status::Reader status);
// The job first, then who is before it.
std::string showWhy(capnp::List<wire::JobStatus>::Reader jobs);

}  // namespace ts::cli
