#include "cli/master_commands.h"

#include <nlohmann/json.hpp>

#include "cli/show.h"
#include "cli/words.h"
#include "wire/status_json.h"
#include "wire/translate.h"

namespace ts::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string pretty(const Json& json) {
  return textOf(json, 2) + "\n";
}

// A refusal is the end of the command, with the master's sentence.
void requireOk(wire::Outcome::Reader outcome) {
  if (outcome.getCode() == wire::Outcome::Code::OK) return;
  std::string detail = text(outcome.getDetail());
  throw Failure(Exit::Failed, detail.empty() ? "the master refused, without a reason" : detail);
}

Json jobsJson(Json all, const std::string& group) {
  if (group.empty()) return all;
  Json some = Json::array();
  for (Json& job : all) {
    if (job["group"] == group) some.push_back(std::move(job));
  }
  return some;
}

std::string status(Master& master, const Options& options) {
  auto results = master.call(master.session().statusRequest());
  const std::string& what = options.command;
  if (!options.json) {
    if (what == "jobs") return showJobs(results, options.group);
    if (what == "nodes") return showNodes(results);
    return showStatus(results);
  }
  Json json = toJson(Status::Reader(results));
  if (what == "jobs") return pretty(jobsJson(json["jobs"], options.group));
  if (what == "nodes") return pretty(json["nodes"]);
  return pretty(json);
}

std::string why(Master& master, const Options& options) {
  auto request = master.session().whyRequest();
  request.setJob(options.job);
  auto results = master.call(kj::mv(request));
  requireOk(results.getOutcome());
  if (!options.json) return showWhy(results.getJobs());
  Json jobs = Json::array();
  for (auto job : results.getJobs()) jobs.push_back(toJson(job));
  if (jobs.empty()) return pretty(Json::object());
  Json json{{"job", jobs[0]}, {"before", Json::array()}};
  for (std::size_t i = 1; i < jobs.size(); ++i) json["before"].push_back(jobs[i]);
  return pretty(json);
}

template <class Request>
std::string done(Master& master, const Options& options, Request request, const std::string& what) {
  auto results = master.call(kj::mv(request));
  requireOk(results.getOutcome());
  if (options.json) return pretty(toJson(wire::Outcome::Reader(results.getOutcome())));
  return what + "\n";
}

std::string pause(Master& master, const Options& options, bool on) {
  auto request = master.session().pauseGroupRequest();
  request.setGroup(options.group);
  request.setOn(on);
  return done(master, options, kj::mv(request),
              "group " + options.group + (on ? " is paused" : " goes on"));
}

std::string evict(Master& master, const Options& options) {
  auto request = master.session().evictRequest();
  request.setJob(options.job);
  request.setKill(options.kill);
  return done(master, options, kj::mv(request),
              "job " + options.job + (options.kill ? " is being killed" : " is evicted"));
}

std::string clearFault(Master& master, const Options& options) {
  auto request = master.session().clearFaultRequest();
  request.setJob(options.job);
  return done(master, options, kj::mv(request), "job " + options.job + " may be tried again");
}

std::string drain(Master& master, const Options& options, bool on) {
  auto request = master.session().drainRequest();
  request.setNode(options.node);
  request.setOn(on);
  return done(master, options, kj::mv(request),
              "node " + options.node + (on ? " is drained" : " is back"));
}

std::string slurmEnded(Master& master, const Options& options) {
  auto request = master.session().slurmEndedRequest();
  request.setSlurmJob(options.slurmJob);
  auto results = master.call(kj::mv(request));
  requireOk(results.getOutcome());
  if (options.json) return pretty({{"left", results.getLeft()}});
  if (results.getLeft() == 0) return "";
  return counted(results.getLeft(), "step") + " of Slurm job " + std::to_string(options.slurmJob) +
         " still here; what is left after " + showDuration(results.getGraceUs()) + " is killed\n";
}

std::string declareDead(Master& master, const Options& options) {
  auto request = master.session().declareDeadRequest();
  request.setNode(options.node);
  return done(master, options, kj::mv(request), "node " + options.node + " is given up");
}

}  // namespace

std::string look(Master& master, const Options& options) {
  return options.command == "why" ? why(master, options) : status(master, options);
}

std::string act(Master& master, const Options& options) {
  const std::string& what = options.command;
  if (what == "pause" || what == "resume") return pause(master, options, what == "pause");
  if (what == "evict") return evict(master, options);
  if (what == "declare-dead") return declareDead(master, options);
  if (what == "clear-fault") return clearFault(master, options);
  if (what == "slurm-ended") return slurmEnded(master, options);
  return drain(master, options, what == "drain");
}

}  // namespace ts::cli
