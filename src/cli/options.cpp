#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include "cli/failure.h"
#include "cli/since.h"
#include "config/config.h"
#include "config/name.h"
#include "config/nearest.h"
#include "local/protocol.h"
#include "timeslice/timeslice.h"

namespace ts::cli {
namespace {

// The texts that still have to be read after CLI11 is done with them.
struct Raw {
  std::string timeout;
  std::string deadline;
  std::string since;
};

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 failed or refused, 2 usage, 69 a daemon cannot be reached, 78 bad "
    "configuration.";

std::string quoted(const std::string& text) {
  return "\"" + text + "\"";
}

// What CLI11 says of a range are all the digits that a double has.
auto wholeBetween(long low, long high) {
  return [low, high](const std::string& text) {
    long value = 0;
    const char* end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, value);
    bool fits = error == std::errc{} && stop == end && value >= low && value <= high;
    return fits ? std::string()
                : quoted(text) + " is no whole number from " + std::to_string(low) + " to " +
                      std::to_string(high);
  };
}

std::string checkPid(const std::string& text) {
  return wholeBetween(1, std::numeric_limits<pid_t>::max())(text).empty()
             ? ""
             : quoted(text) + " is no process id";
}

std::string checkName(const std::string& text) {
  return isName(text) ? "" : quoted(text) + " is no name: write 1 to 63 of A-Z a-z 0-9 . _ -";
}

std::string examples(std::initializer_list<const char*> lines) {
  std::string text = "Examples:";
  for (const char* line : lines) text += std::string("\n  ") + line;
  return text;
}

CLI::App* add(CLI::App& app, const char* name, const char* summary,
              std::initializer_list<const char*> lines) {
  CLI::App* command = app.add_subcommand(name, summary);
  command->fallthrough();
  command->footer(
      examples(lines) +
      "\n\nEverywhere: --json, --master, --socket, --auth, --timeout; see tsctl --help");
  return command;
}

void addCommon(CLI::App& app, Options& o, Raw& raw) {
  app.add_flag("--json", o.json, "Print JSON instead of a table");
  app.add_option("--master", o.master,
                 "Where tsmasterd listens: HOST:PORT or the path of its socket "
                 "(else TIMESLICE_MASTER, its socket on this machine, or `master` of node.toml)");
  app.add_option("--auth", o.auth, "munge or none (else `auth` of node.toml, else munge)")
      ->check(CLI::IsMember({"munge", "none"}));
  app.add_option("--socket", o.nodeSocket,
                 "Where tsnoded listens (else TIMESLICE_SOCKET, else `socket` of node.toml)");
  app.add_option("--node-config", o.nodeConfig, "The node's configuration")->capture_default_str();
  app.add_option("--timeout", raw.timeout,
                 "How long to wait for a daemon, like 500ms (default 5s)");
}

void addLooking(CLI::App& app, Options& o, Raw& raw) {
  add(app, "status", "Everything at a glance: groups, jobs, nodes",
      {"tsctl status", "tsctl status --json | jq .groups"});
  auto* jobs = add(app, "jobs", "Jobs: who holds, who waits, on which devices",
                   {"tsctl jobs", "tsctl jobs --group trainers"});
  jobs->add_option("--group", o.group, "Only of this group");
  add(app, "nodes", "Nodes, their devices and memory", {"tsctl nodes", "tsctl nodes --json"});
  auto* events = add(app, "events", "What happened: grants, yields, switches, faults",
                     {"tsctl events --since 1h", "tsctl events --follow",
                      "tsctl events --since 2026-01-31T08:00:00Z --json"});
  events->add_flag("-f,--follow", o.follow, "Go on with new ones as they come");
  events->add_option("--since", raw.since,
                     "From how long ago, like 30min, or a UTC time; or all (default 10min)");
  auto* why = add(app, "why", "What a job waits for, and who is before it",
                  {"tsctl why 417.0", "tsctl why trainers/417.0"});
  why->add_option("job", o.job, "NAME or GROUP/NAME")->required();
}

void addActing(CLI::App& app, Options& o) {
  auto* pause =
      add(app, "pause", "Let nobody in a group have a turn until resume", {"tsctl pause trainers"});
  pause->add_option("group", o.group, "The group")->required();
  auto* resume = add(app, "resume", "End a pause", {"tsctl resume trainers"});
  resume->add_option("group", o.group, "The group")->required();
  auto* evict = add(app, "evict", "End a job's part in its group; its processes go on",
                    {"tsctl evict trainers/417.0", "tsctl evict 417.0 --kill"});
  evict->add_option("job", o.job, "NAME or GROUP/NAME")->required();
  evict->add_flag("--kill", o.kill, "Kill its processes, too");
  auto* clear =
      add(app, "clear-fault", "Let a faulted job be tried again", {"tsctl clear-fault 417.0"});
  clear->add_option("job", o.job, "NAME or GROUP/NAME")->required();
  auto* drain = add(app, "drain", "Grant nothing more on a node", {"tsctl drain gpu-7"});
  drain->add_option("node", o.node, "The node")->required();
  auto* undrain = add(app, "undrain", "Take a drained node back", {"tsctl undrain gpu-7"});
  undrain->add_option("node", o.node, "The node")->required();
  auto* dead =
      add(app, "declare-dead", "Give up a node that cannot be reached: its slices are void",
          {"tsctl declare-dead gpu-7"});
  dead->add_option("node", o.node, "The node")->required();
  auto* ended = add(app, "slurm-ended", "Say that Slurm ends a job, as its EpilogSlurmctld does",
                    {"tsctl slurm-ended \"$SLURM_JOB_ID\""});
  ended->add_option("job", o.slurmJob, "The number of the job")
      ->required()
      ->check(CLI::PositiveNumber);
}

void addJobOptions(CLI::App& command, Options& o) {
  command.add_option("--group", o.group, "The group to take turns in")
      ->required()
      ->check(checkName);
  command.add_option("--job", o.job, "The job's name in the group (default: NAME.PID)")
      ->check(checkName);
  command.add_option("--devices", o.devices,
                     "Its devices, like 0,1 or UUIDs (default: all visible)");
  command.add_option("--backend", o.backend,
                     "How its state moves: cuda, none, turns (default: the node's)");
  command.add_option("--gang", o.gang, "Participants that make one slice; 0: none")
      ->check(wholeBetween(0, TSL_MOST_IN_GANG));
  command
      .add_option("--priority", o.priority,
                  "Larger goes first where the policy is priority; -10000 to 10000")
      ->check(wholeBetween(-TSL_MOST_PRIORITY, TSL_MOST_PRIORITY));
}

void addHere(CLI::App& app, Options& o, Raw& raw) {
  auto* run = add(app, "run", "Start a program as a job on this node; it takes its turns itself",
                  {"tsctl run --group trainers -- python train.py",
                   "tsctl run --group trainers --devices 0,1 --priority 5 -- torchrun train.py"});
  addJobOptions(*run, o);
  auto* slice = add(app, "slice", "Take one turn, run a program during it, give the turn back",
                    {"tsctl slice --group trainers -- python evaluate.py",
                     "tsctl slice --group trainers --deadline 10min -- ./bench"});
  addJobOptions(*slice, o);
  slice->footer(
      "The program has the turn until it ends: it is not told when others want it. One that shall "
      "give the "
      "turn back in between uses libtimeslice, and tsctl run.\n\n" +
      slice->get_footer());
  slice->add_option("--phase", o.phase, "A label that tsctl why and --json show, such as rollout");
  slice->add_option("--deadline", raw.deadline, "Give up when the turn has not come by then");
  for (const char* name : {"snapshot", "restore"}) {
    bool save = std::string_view(name) == "snapshot";
    auto* move =
        add(app, name,
            save ? "Move a process's device state to host memory (tsnoded alone, no master)"
                 : "Bring it back and let the process go on",
            {save ? "tsctl snapshot --pid 4711" : "tsctl restore --pid 4711"});
    move->add_option("--pid", o.pids, "The process; several are moved one after the other")
        ->required()
        ->check(checkPid);
    move->add_option("--deadline", raw.deadline, "For each of them (default 2min)");
  }
  auto* doctor = add(app, "doctor", "What works here, and what to do about what does not",
                     {"tsctl doctor", "tsctl doctor --json", "tsctl doctor --slurm"});
  auto* slurm = doctor->add_flag("--slurm", o.slurm, "Whether Slurm is set up for time slicing");
  doctor
      ->add_option("--partition", o.partition,
                   "Look at this one (default: each in which jobs share nodes)")
      ->needs(slurm);
  auto* report = add(app, "report", "Write one file for a bug report, with nothing secret in it",
                     {"tsctl report", "tsctl report --output /tmp/report.tar"});
  report->add_option("--output", o.output, "The file (default: timeslice-report-TIME.tar)");
  report->add_option("--master-config", o.masterConfig, "The master's configuration")
      ->capture_default_str();
  auto* completion = add(app, "completion", "Completions for a shell",
                         {"tsctl completion bash > /etc/bash_completion.d/tsctl",
                          "tsctl completion zsh > ~/.zfunc/_tsctl",
                          "tsctl completion fish > ~/.config/fish/completions/tsctl.fish"});
  completion->add_option("shell", o.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

void define(CLI::App& app, Options& o, Raw& raw) {
  app.name("tsctl");
  app.description("Inspect and operate timeslice: whose turn it is on the GPUs, and why.");
  app.set_version_flag("--version", std::string("tsctl ") + ts_version());
  app.require_subcommand(1);
  app.footer(examples({"tsctl status", "tsctl why trainers/417.0", "tsctl doctor"}) + "\n\n" +
             kExitCodes);
  app.get_formatter()->column_width(26);
  addCommon(app, o, raw);
  addLooking(app, o, raw);
  addActing(app, o);
  addHere(app, o, raw);
}

std::chrono::microseconds durationOf(const char* option, const std::string& text) {
  std::chrono::microseconds value{0};
  std::string why;
  if (!parseDuration(text, value, why))
    throw Failure(Exit::Usage, std::string(option) + ": " + why);
  if (value.count() == 0) {
    throw Failure(Exit::Usage,
                  std::string(option) + " is \"" + text + "\"; write more than nothing");
  }
  return value;
}

void finish(Options& o, const Raw& raw) {
  if (!raw.timeout.empty()) o.timeout = durationOf("--timeout", raw.timeout);
  if (!raw.deadline.empty()) o.deadline = durationOf("--deadline", raw.deadline);
  if (o.command == "events") o.sinceUs = parseSince(raw.since.empty() ? "10min" : raw.since);
  bool runs = o.command == "run" || o.command == "slice";
  if (runs && o.program.empty()) {
    throw Failure(Exit::Usage, "no program; write it after --, like tsctl " + o.command +
                                   " --group " + o.group + " -- python train.py");
  }
  if (!runs && !o.program.empty()) {
    throw Failure(Exit::Usage, "tsctl " + o.command + " takes nothing after --, there is \"" +
                                   o.program.front() + "\"");
  }
}

std::vector<std::string> optionsOf(const CLI::App& app, const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::App* level : {command, &app}) {
    if (level == nullptr) continue;
    for (const CLI::Option* option : level->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

std::string withNearest(const std::string& sentence, const std::string& word,
                        const std::vector<std::string>& names) {
  std::string hint = nearest(word, names);
  return sentence + (hint.empty() ? "" : "; did you mean " + hint + "?");
}

// CLI11 takes an unknown command for an argument too many, and names what is required before what
// is unknown, so that a slip in --group looks like its absence.
std::string hintFor(const CLI::App& app, const CLI::App* command, bool hasProgram) {
  auto words = app.remaining(true);
  if (words.empty()) return "";
  const std::string& word = words.front();
  if (word.starts_with('-')) {
    std::string name = word.substr(0, word.find('='));
    return withNearest("there is no option " + name, name, optionsOf(app, command));
  }
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
    return withNearest("there is no command " + quoted(word), word, names);
  }
  bool runs = command->get_name() == "run" || command->get_name() == "slice";
  if (runs && !hasProgram) return "put -- before the program: -- " + word;
  return quoted(word) + " is one word too many";
}

std::string usageError(const CLI::App& app, const Options& o, const std::string& what) {
  auto chosen = app.get_subcommands();
  const CLI::App* command = chosen.empty() ? nullptr : chosen.front();
  std::string hint = hintFor(app, command, !o.program.empty());
  return "tsctl: " + (hint.empty() ? what : hint) + "; see tsctl" +
         (command == nullptr ? "" : " " + command->get_name()) + " --help\n";
}

void addOptions(const CLI::App& level, const std::vector<std::string>& except, CommandInfo& info) {
  for (const CLI::Option* option : level.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      std::string word = "--" + name;
      bool known = std::ranges::count(except, word) + std::ranges::count(info.options, word) > 0;
      if (known) continue;
      info.options.push_back(word);
      if (option->get_items_expected_max() > 0) info.valued.push_back(word);
    }
  }
}

}  // namespace

Parsed parseOptions(const std::vector<std::string>& arguments) {
  Parsed parsed;
  Raw raw;
  CLI::App app;
  define(app, parsed.options, raw);
  // What stands after -- is somebody else's command line.
  auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> before(arguments.begin(), dashes);
  if (dashes != arguments.end()) parsed.options.program.assign(dashes + 1, arguments.end());
  try {
    std::vector<std::string> reversed(before.rbegin(), before.rend());  // as CLI11 wants it
    app.parse(reversed);
    parsed.options.command = app.get_subcommands().front()->get_name();
    finish(parsed.options, raw);
  } catch (const CLI::Success& e) {  // --help, --version
    std::ostringstream out, unused;
    app.exit(e, out, unused);
    parsed.exit = 0;
    parsed.text = out.str();
  } catch (const CLI::ParseError& e) {
    parsed.exit = int(Exit::Usage);
    parsed.text = usageError(app, parsed.options, e.what());
  } catch (const Failure& e) {
    parsed.exit = int(e.exit());
    parsed.text = usageError(app, parsed.options, e.what());
  }
  return parsed;
}

std::vector<CommandInfo> commands() {
  Options options;
  Raw raw;
  CLI::App app;
  define(app, options, raw);
  std::vector<CommandInfo> all;
  for (CLI::App* command : app.get_subcommands({})) {
    CommandInfo info{command->get_name(), command->get_description(), {}, {}};
    addOptions(*command, {}, info);
    addOptions(app, {"--help", "--version"}, info);
    all.push_back(std::move(info));
  }
  return all;
}

}  // namespace ts::cli
