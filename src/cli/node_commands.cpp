#include "cli/node_commands.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/node.h"
#include "cli/words.h"
#include "timeslice/timeslice.h"
#include "wire/status_json.h"

namespace ts::cli {
namespace {

using Json = nlohmann::ordered_json;
using namespace std::chrono;

struct Moved {
  pid_t pid = 0;
  Node::Answer answer;
  bool ok() const { return answer.reply.status == TSL_OK; }
};

Moved move(Node& node, const Options& options, pid_t pid) {
  auto limit = options.deadline.value_or(minutes(2));
  tsl_message request{};
  request.u.pid = {pid, 0, duration_cast<milliseconds>(limit).count()};
  auto type = options.command == "snapshot" ? TSL_SNAPSHOT : TSL_RESTORE;
  // The node answers by its own deadline; the timeout is for the answer to arrive.
  return {pid, node.ask(type, request, limit + options.timeout)};
}

std::string sentence(const Options& options, const Moved& moved) {
  std::string name = options.command + " of pid " + std::to_string(moved.pid);
  if (moved.ok()) {
    return name + ": " + showBytes(moved.answer.reply.bytes) + " in " +
           showDuration(moved.answer.reply.move_us);
  }
  return name + " failed: " + ts_strerror(ts_status(moved.answer.reply.status)) + ": " +
         moved.answer.detail();
}

Json toJson(const Moved& moved) {
  return {{"pid", moved.pid},
          {"ok", moved.ok()},
          {"status", ts_strerror(ts_status(moved.answer.reply.status))},
          {"bytes", moved.answer.reply.bytes},
          {"took_s", double(moved.answer.reply.move_us) / 1e6},
          {"detail", moved.answer.detail()}};
}

}  // namespace

void moveProcesses(const Places& places, const Options& options) {
  Node node(places.node, options.timeout);
  Json all = Json::array();
  std::string failures;
  for (pid_t pid : options.pids) {
    Moved moved = move(node, options, pid);
    all.push_back(toJson(moved));
    std::string said = sentence(options, moved);
    if (!moved.ok()) failures += (failures.empty() ? "" : "\n") + said;
    if (moved.ok() && !options.json) std::puts(visible(said).c_str());
    std::fflush(stdout);
  }
  if (options.json) std::puts(textOf(all, 2).c_str());
  if (!failures.empty()) throw Failure(Exit::Failed, failures);
}

}  // namespace ts::cli
