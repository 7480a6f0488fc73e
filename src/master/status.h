// What the core shows of itself, with names, for the wire and for the dashboard.
#pragma once

#include <string>
#include <vector>

#include "master/operators.h"
#include "timeslice.capnp.h"

namespace ts {

using StatusResults = wire::OperatorSession::StatusResults::Builder;

std::vector<JobId> visibleJobs(Shell& shell, const Actor& actor);
void fillGroups(Shell& shell, StatusResults results);
void fillNodes(Shell& shell, const Actor& actor, StatusResults results);
// Of somebody else's job a user sees the name, the phase and the place.
void fillJob(Shell& shell, const Actor& actor, JobId job, wire::JobStatus::Builder out);

// Into `results.jobs`, of a status or a why.
template <class Results>
void fillJobs(Shell& shell, const Actor& actor, const std::vector<JobId>& jobs, Results results) {
  auto out = results.initJobs(unsigned(jobs.size()));
  for (unsigned i = 0; i < out.size(); ++i) fillJob(shell, actor, jobs[i], out[i]);
}

// up, suspect, dead, drained, or named: known only from the reports of others.
std::string_view stateWord(const NodeRecord& node);

void fillStatus(Operators& operators, const Actor& actor, StatusResults results);
// All of it as one JSON text, for the dashboard.
std::string statusJson(Operators& operators);

}  // namespace ts
