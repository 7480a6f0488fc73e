// tsctl: inspects and operates timeslice.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/completion.h"
#include "cli/doctor.h"
#include "cli/failure.h"
#include "cli/master_commands.h"
#include "cli/node_commands.h"
#include "cli/options.h"
#include "cli/places.h"
#include "cli/report.h"
#include "cli/slurm_doctor.h"
#include "cli/turn.h"
#include "cli/words.h"
#include "wire/status_json.h"

namespace ts::cli {
namespace {

void print(const std::string& answer) {
  std::string text = visible(answer);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

Findings findingsFor(const Options& options) {
  if (options.slurm) return examineSlurm(options);
  Loop loop;
  return examine(loop, options);
}

int doctor(const Options& options) {
  Findings findings = findingsFor(options);
  print(options.json ? findingsJson(findings) : showFindings(findings));
  return int(anyFailed(findings) ? Exit::Failed : Exit::Ok);
}

int askMaster(const Options& options) {
  Loop loop;
  Master master(loop, findPlaces(options), options.timeout);
  const std::string& what = options.command;
  if (what == "events") {
    printEvents(loop, master, options);
  } else if (what == "status" || what == "jobs" || what == "nodes" || what == "why") {
    print(look(master, options));
  } else {
    print(act(master, options));
  }
  return 0;
}

int obey(const Options& options) {
  const std::string& what = options.command;
  if (what == "completion") {
    print(completionFor(options.shell));
    return 0;
  }
  if (what == "doctor") return doctor(options);
  if (what == "report") {
    Loop loop;
    print(report(loop, options));
    return 0;
  }
  if (what == "run") runProgram(findPlaces(options), options);
  if (what == "slice") return sliceProgram(findPlaces(options), options);
  if (what == "snapshot" || what == "restore") {
    moveProcesses(findPlaces(options), options);
    return 0;
  }
  return askMaster(options);
}

int fail(const Options& options, int exit, const std::string& cause) {
  std::string sentence = visible(cause);
  std::fprintf(stderr, "tsctl: %s\n", sentence.c_str());
  // Who reads JSON gets an object in any case. Snapshot and restore have printed theirs.
  bool printed = options.command == "snapshot" || options.command == "restore";
  if (options.json && !(printed && exit == int(Exit::Failed))) {
    print(textOf(nlohmann::ordered_json{{"error", sentence}, {"exit", exit}}, 2) + "\n");
  }
  return exit;
}

int run(int argc, char** argv) {
  Parsed parsed = parseOptions({argv + 1, argv + argc});
  if (parsed.exit) {
    std::FILE* to = *parsed.exit == 0 ? stdout : stderr;
    std::fputs(visible(parsed.text).c_str(), to);
    return *parsed.exit;
  }
  try {
    return obey(parsed.options);
  } catch (const Failure& failure) {
    return fail(parsed.options, int(failure.exit()), failure.what());
  } catch (const std::exception& e) {
    return fail(parsed.options, int(Exit::Failed), e.what());
  }
}

}  // namespace
}  // namespace ts::cli

int main(int argc, char** argv) {
  const int exit = ts::cli::run(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit;
  std::fprintf(stderr, "tsctl: the answer cannot be written to standard output: %s\n",
               std::strerror(errno));
  return exit == 0 ? int(ts::cli::Exit::Failed) : exit;
}
