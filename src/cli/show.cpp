#include "cli/show.h"

#include <algorithm>
#include <vector>

#include "cli/causes.h"
#include "cli/table.h"
#include "cli/words.h"
#include "wire/status_json.h"
#include "wire/translate.h"

namespace ts::cli {
namespace {

std::string listed(capnp::List<capnp::Text>::Reader words) {
  std::vector<std::string> all;
  for (auto word : words) all.push_back(text(word));
  return joined(all);
}

std::string listed(capnp::List<std::uint32_t>::Reader numbers) {
  std::vector<std::string> all;
  for (auto number : numbers) all.push_back(std::to_string(number));
  return joined(all, ",");
}

// "n0:0,1 n1:0"
std::string claimOf(wire::JobStatus::Reader job) {
  std::vector<std::string> parts;
  for (auto part : job.getClaim()) {
    parts.push_back(text(part.getNode()) + ":" + listed(part.getDevices()));
  }
  return joined(parts, " ");
}

std::uint64_t bytesWhere(wire::JobStatus::Reader job, bool saved) {
  std::uint64_t sum = 0;
  for (auto member : job.getMembers()) {
    bool isSaved = member.getFact().getResidency() == wire::Residency::SAVED;
    if (isSaved == saved) sum += member.getFact().getBytes();
  }
  return sum;
}

std::string bytesOrNothing(std::uint64_t bytes) {
  return bytes == 0 ? "" : showBytes(bytes);
}

std::vector<std::string> waitsFor(wire::JobStatus::Reader job) {
  std::vector<std::string> all;
  for (auto key : job.getWaitsFor()) all.push_back(textOf(key));
  return all;
}

// "busy" says no more than that somebody else holds, and who is told anyway.
std::string causeOf(wire::JobStatus::Reader job) {
  std::string cause = text(job.getCause());
  return cause == "busy" && job.getWaitsFor().size() > 0 ? "" : cause;
}

// Nobody of it waits: it is in a switch for the sake of another.
bool leaves(wire::JobStatus::Reader job) {
  return text(job.getPhase()) == "switching" && job.getPlace() == 0 && job.getWaitsFor().size() > 0;
}

// "quiesce of process 4711 on n0 runs for 12 s"
std::string lateText(wire::LateCall::Reader late) {
  std::vector<std::string> pids;
  for (auto pid : late.getPids()) pids.push_back(std::to_string(pid));
  std::string about = pids.empty() ? textOf(late.getKey()) : "process " + joined(pids, ", ");
  return text(late.getCall()) + " of " + about + " on " + text(late.getNode()) + " runs for " +
         showDuration(late.getForUs());
}

std::string whatEnds(wire::LateCall::Reader late) {
  return "tsctl evict --kill " + textOf(late.getKey()) + " ends it";
}

// What a person can do about it now; nothing for what ends by itself.
std::string wayOut(wire::JobStatus::Reader job) {
  std::string name = textOf(job.getKey());
  if (job.getLate().size() > 0) return whatEnds(job.getLate()[0]);
  std::string fault = text(job.getFault());
  if (text(job.getPhase()) == "broken") return "tsctl evict --kill " + name + " ends it";
  if (fault.empty()) return "";
  return "tsctl clear-fault " + name + " lets it be tried again, tsctl evict --kill " + name +
         " ends it";
}

// Fault, cause, who is in the way, detail: whatever there is.
std::string reasonOf(wire::JobStatus::Reader job) {
  std::vector<std::string> parts;
  if (job.getFault().size() > 0) parts.push_back("fault " + text(job.getFault()));
  if (!causeOf(job).empty()) parts.push_back(causeOf(job));
  if (job.getWaitsFor().size() > 0)
    parts.push_back((leaves(job) ? "moved out for " : "waits for ") + joined(waitsFor(job)));
  for (auto late : job.getLate()) parts.push_back(lateText(late));
  if (job.getDetail().size() > 0) parts.push_back(text(job.getDetail()));
  if (!wayOut(job).empty()) parts.push_back(wayOut(job));
  return joined(parts, "; ");
}

bool hasSince(wire::JobStatus::Reader job) {
  return job.getSinceUs() > 0;
}

std::string since(wire::JobStatus::Reader job) {
  return hasSince(job) ? showDuration(job.getSinceUs()) : "";
}

std::string headline(Status::Reader status) {
  std::size_t holding = 0, waiting = 0;
  for (auto job : status.getJobs()) {
    if (text(job.getPhase()) == "holding") ++holding;
    if (job.getPlace() > 0) ++waiting;
  }
  return "tsmasterd " + text(status.getVersion()) + ", generation " +
         std::to_string(status.getGeneration().getNumber()) + ", up " +
         showDuration(status.getUptimeUs()) + ": " + counted(status.getNodes().size(), "node") +
         ", " + counted(status.getGroups().size(), "group") + ", " +
         counted(status.getJobs().size(), "job") + " (" + std::to_string(holding) + " holding, " +
         std::to_string(waiting) + " waiting)\n";
}

std::string sentenceAbout(wire::JobStatus::Reader job) {
  std::string phase = text(job.getPhase());
  std::string label = text(job.getLabel());
  std::string name = textOf(job.getKey()) + (label.empty() ? "" : " (" + label + ")");
  std::string time = hasSince(job) ? " for " + showDuration(job.getSinceUs()) : "";
  if (job.getPlace() > 0) {
    return name + " has waited" + time + " and is number " + std::to_string(job.getPlace()) +
           " in the queue of " + text(job.getKey().getGroup());
  }
  if (phase == "holding") {
    return name + " has held its devices" + time + ", " + std::to_string(job.getEntered()) +
           " of " + counted(job.getParticipants(), "participant") + " in the slice";
  }
  if (leaves(job)) return name + " is being moved out for " + joined(waitsFor(job));
  if (phase == "parked")
    return name + " has yielded; nobody waits, so its state stayed on the device";
  if (phase == "idle") return name + " does not ask for a turn";
  return name + " is " + phase + time;
}

}  // namespace

std::string showGroups(Status::Reader status) {
  Table table({"GROUP", "POLICY", "HOLDING", "WAITING, IN ORDER", ">SWITCHES"});
  for (auto group : status.getGroups()) {
    table.row({text(group.getName()), group.getPaused() ? "paused" : text(group.getPolicy()),
               listed(group.getHolders()), listed(group.getQueue()),
               std::to_string(group.getSwitches())});
  }
  return table.empty() ? "no group yet: one begins with its first job\n" : table.text();
}

std::string showJobs(Status::Reader status, const std::string& group) {
  Table table({"JOB", "STATE", ">SINCE", ">PLACE", "DEVICES", ">ON DEVICE", ">SAVED", "WHY"});
  for (auto job : status.getJobs()) {
    if (!group.empty() && text(job.getKey().getGroup()) != group) continue;
    table.row({textOf(job.getKey()), text(job.getPhase()), since(job),
               job.getPlace() == 0 ? "" : std::to_string(job.getPlace()), claimOf(job),
               bytesOrNothing(bytesWhere(job, false)), bytesOrNothing(bytesWhere(job, true)),
               reasonOf(job)});
  }
  if (!table.empty()) return table.text();
  return group.empty() ? "no job now: a job appears when its program joins\n"
                       : "no job in group " + group + " now\n";
}

std::string showNodes(Status::Reader status) {
  Table table(
      {"NODE", "STATE", ">SINCE", ">JOBS", ">DEVICE", "NAME", ">IN USE", ">MEMORY", "ADDRESS"});
  for (auto node : status.getNodes()) {
    std::vector<std::string> row{text(node.getName()), text(node.getState()),
                                 showDuration(node.getSinceUs()), std::to_string(node.getJobs())};
    if (node.getDevices().size() == 0) {
      row.insert(row.end(), {"", "no device", "", "", text(node.getAddress())});
      table.row(row);
    }
    bool first = true;
    for (auto device : node.getDevices()) {
      if (!first) row = {"", "", "", ""};
      std::uint64_t total = device.getTotalBytes();
      std::uint64_t used = total - std::min(total, device.getFreeBytes());
      row.insert(row.end(), {std::to_string(device.getIndex()), text(device.getName()),
                             total == 0 ? "" : showBytes(used), total == 0 ? "" : showBytes(total),
                             first ? text(node.getAddress()) : ""});
      table.row(row);
      first = false;
    }
  }
  if (table.empty()) return "no node has connected yet: start tsnoded on each\n";
  std::string out = table.text();
  for (auto node : status.getNodes()) {
    for (auto late : node.getLate()) {
      out += textOf(late.getKey()) + ": " + lateText(late) + "; " + whatEnds(late) + "\n";
    }
  }
  return out;
}

std::string showStatus(Status::Reader status) {
  return headline(status) + "\n" + showGroups(status) + "\n" + showJobs(status, "") + "\n" +
         showNodes(status);
}

std::string showWhy(capnp::List<wire::JobStatus>::Reader jobs) {
  if (jobs.size() == 0) return "";
  auto job = jobs[0];
  std::string out = sentenceAbout(job) + "\n";
  auto line = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) out += "  " + name + std::string(10 - name.size(), ' ') + value + "\n";
  };
  line("devices", claimOf(job));
  line("state", bytesOrNothing(bytesWhere(job, false)));
  line("saved", bytesOrNothing(bytesWhere(job, true)));
  line("cause", explainCause(causeOf(job)));
  line("fault", text(job.getFault()));
  for (auto late : job.getLate()) line("late", lateText(late));
  line("detail", text(job.getDetail()));
  line("way out", wayOut(job));
  for (unsigned i = 1; i < jobs.size(); ++i) {
    line(i == 1 ? "before it" : "", sentenceAbout(jobs[i]));
    for (auto late : jobs[i].getLate()) line("", lateText(late) + "; " + whatEnds(late));
  }
  return out;
}

}  // namespace ts::cli
