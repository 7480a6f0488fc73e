#include "master/outlook.h"

#include "core/describe.h"
#include "master/sentences.h"

namespace ts {
namespace {

std::string seconds(Duration d) {
  return std::to_string((d.count() + 500'000) / 1'000'000) + " s";
}

std::string nameOf(const JobRecord& job) {
  return "job " + job.name.group + "/" + job.name.name;
}

// "job rl/17.0, holding for 12 s"
std::string first(Shell& shell, JobId id) {
  auto* job = shell.directory().find(id);
  auto view = shell.cluster().view(id);
  if (job == nullptr || !view) return "a job that has ended";
  std::string out = nameOf(*job) + ", " + std::string(text(view->phase));
  if (view->since) out += " for " + seconds(shell.now() - *view->since);
  return out;
}

// What is left of the first one's turn counts as half of one.
std::string expectation(const Shell& shell, GroupId group, std::uint32_t before) {
  auto mean = shell.meters().meanHold(group);
  if (!mean || before == 0) return "";
  return "; at " + seconds(*mean) + " a turn so far its own may come in about " +
         seconds(*mean * (2 * before - 1) / 2);
}

std::string whyWaiting(Shell& shell, const JobView& view, std::uint32_t before) {
  if (view.waitsFor.empty()) {
    if (!view.detail.empty()) return withNames(shell.directory(), view.detail);
    return view.cause == Cause::None ? "its turn is about to come" : std::string(text(view.cause));
  }
  std::string out = "before it is " + first(shell, view.waitsFor.front());
  if (before > 1) out += ", and " + std::to_string(before - 1) + " more";
  return out + expectation(shell, view.group, before);
}

}  // namespace

Outlook outlookOf(Shell& shell, const JobName& name) {
  auto* job = shell.directory().find(name);
  auto view = job == nullptr ? std::nullopt : shell.cluster().view(job->id);
  if (!view) return {.text = "the master does not know job " + name.group + "/" + name.name};
  Outlook out;
  if (view->participants < job->options.gang) {
    out.missing = job->options.gang - view->participants;
    out.text = std::to_string(view->participants) + " of its " + std::to_string(job->options.gang) +
               " tasks are ready";
    return out;
  }
  out.before = std::uint32_t(view->waitsFor.size());
  auto group = shell.cluster().view(view->group);
  if (group && group->paused) {
    out.text = "an operator paused group " + name.group;
    return out;
  }
  out.text = whyWaiting(shell, *view, out.before);
  return out;
}

}  // namespace ts
