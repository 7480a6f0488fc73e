#include "cli/options.h"

#include <catch2/catch.hpp>

#include "cli/completion.h"
#include "cli/since.h"

using namespace ts::cli;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

Options parse(const std::vector<std::string>& arguments) {
  Parsed parsed = parseOptions(arguments);
  INFO(parsed.text);
  REQUIRE_FALSE(parsed.exit);
  return parsed.options;
}

std::string mistake(const std::vector<std::string>& arguments) {
  Parsed parsed = parseOptions(arguments);
  CHECK(parsed.exit == 2);
  return parsed.text;
}

}  // namespace

TEST_CASE("options that hold everywhere stand before or after the command", "[cli]") {
  for (auto& words : {std::vector<std::string>{"--json", "--master", "m:1", "status"},
                      std::vector<std::string>{"status", "--master", "m:1", "--json"}}) {
    Options o = parse(words);
    CHECK(o.command == "status");
    CHECK(o.json);
    CHECK(o.master == "m:1");
    CHECK(o.timeout == 5s);
  }
  CHECK(parse({"nodes", "--timeout", "250ms"}).timeout == 250ms);
}

TEST_CASE("what stands after -- is the program, whatever it looks like", "[cli]") {
  Options o =
      parse({"slice", "--group", "g", "--deadline", "2 min", "--", "sh", "--json", "--", "-x"});
  CHECK(o.program == std::vector<std::string>{"sh", "--json", "--", "-x"});
  CHECK_FALSE(o.json);
  CHECK(o.deadline == 120s);
  CHECK(parse({"run", "--group", "g", "--", "status"}).command == "run");
}

TEST_CASE("each command takes what it is about", "[cli]") {
  CHECK(parse({"why", "g/a"}).job == "g/a");
  CHECK(parse({"pause", "g"}).group == "g");
  CHECK(parse({"evict", "a", "--kill"}).kill);
  CHECK(parse({"undrain", "n0"}).node == "n0");
  CHECK(parse({"snapshot", "--pid", "1", "2"}).pids == std::vector<pid_t>{1, 2});
  CHECK(parse({"snapshot", "--pid", "1", "--pid", "2"}).pids == std::vector<pid_t>{1, 2});
  CHECK(parse({"events", "-f"}).follow);
  CHECK(parse({"events", "--since", "all"}).sinceUs == 0);
  Options run = parse({"run", "--group", "g", "--gang", "2", "--priority", "-3", "--", "x"});
  CHECK(run.gang == 2);
  CHECK(run.priority == -3);
}

TEST_CASE("a mistake is named, with the way out, and is exit 2", "[cli]") {
  CHECK_THAT(mistake({}), Contains("see tsctl --help"));
  CHECK_THAT(mistake({"statsu"}), Contains("no command \"statsu\"; did you mean status?"));
  CHECK_THAT(mistake({"why"}), Contains("job is required; see tsctl why --help"));
  CHECK_THAT(mistake({"status", "--jsno"}), Contains("--jsno") && Contains("tsctl status --help"));
  CHECK_THAT(mistake({"status", "--timeout", "5"}), Contains("\"5\" has no unit"));
  CHECK_THAT(mistake({"status", "--timeout", "0s"}), Contains("more than nothing"));
  CHECK_THAT(mistake({"run", "--", "x"}), Contains("--group is required"));
  CHECK_THAT(mistake({"run", "--group", "g"}), Contains("no program; write it after --"));
  CHECK_THAT(mistake({"status", "--", "x"}), Contains("takes nothing after --"));
  for (const char* pid : {"0", "-1", "abc", "1.5", "4294967297"}) {
    CHECK(mistake({"snapshot", "--pid", pid}) == "tsctl: --pid: \"" + std::string(pid) +
                                                     "\" is no process id; see tsctl snapshot "
                                                     "--help\n");
  }
  CHECK_THAT(mistake({"completion", "tcsh"}), Contains("tcsh"));
  CHECK_THAT(mistake({"events", "--since", "yesterday"}), Contains("2026-01-31T08:00:00Z"));
}

TEST_CASE("a value out of its range is named with its option", "[cli]") {
  auto run = [](const char* option, const char* value) {
    return mistake({"run", "--group", "g", option, value, "--", "x"});
  };
  CHECK_THAT(run("--priority", "99999"),
             Contains("--priority: \"99999\" is no whole number from -10000 to 10000"));
  CHECK_THAT(run("--gang", "-1"), Contains("--gang: \"-1\" is no whole number from 0 to"));
  CHECK_THAT(run("--job", "a b"), Contains("--job: \"a b\" is no name"));
  CHECK_THAT(mistake({"run", "--group", "a/b", "--", "x"}),
             Contains("--group: \"a/b\" is no name"));
}

TEST_CASE("an unknown option is told with the nearest one, also where another is required",
          "[cli]") {
  CHECK_THAT(mistake({"status", "--jsno"}), Contains("no option --jsno; did you mean --json?"));
  CHECK_THAT(mistake({"run", "--gruop", "g", "--", "x"}),
             Contains("no option --gruop; did you mean --group?"));
  CHECK_THAT(mistake({"run", "--group", "g", "--prioriti=5", "--", "x"}),
             Contains("no option --prioriti; did you mean --priority?"));
}

TEST_CASE("a program without -- is told so", "[cli]") {
  CHECK_THAT(mistake({"slice", "--group", "g", "sh", "-c", "true"}),
             Contains("put -- before the program: -- sh"));
  CHECK_THAT(mistake({"pause", "g", "h"}), Contains("\"h\" is one word too many"));
}

TEST_CASE("help is exit 0, and every command shows an example of itself", "[cli]") {
  CHECK(parseOptions({"--help"}).exit == 0);
  CHECK(parseOptions({"--version"}).text == "tsctl 0.1.0\n");
  for (const CommandInfo& command : commands()) {
    Parsed help = parseOptions({command.name, "--help"});
    CHECK(help.exit == 0);
    CHECK_THAT(help.text, Contains("Examples:\n  tsctl " + command.name));
  }
}

TEST_CASE("a time is so long ago, a UTC time, or all", "[cli]") {
  CHECK(parseSince("1970-01-02T00:00:00Z") == 86'400'000'000ull);
  CHECK(parseSince("all") == 0);
  CHECK(parseSince("1h") < parseSince("1s"));
  CHECK_THROWS(parseSince("1970-01-02"));
}

TEST_CASE("completions know every command and its options", "[cli]") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    std::string script = completionFor(shell);
    for (const CommandInfo& command : commands()) CHECK_THAT(script, Contains(command.name));
  }
  CHECK_THAT(completionFor("bash"),
             Contains("evict) if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '--help "
                      "--kill --json"));
  CHECK_THAT(completionFor("zsh"), Catch::StartsWith("#compdef tsctl"));
  std::istringstream lines(completionFor("fish"));
  for (std::string line; std::getline(lines, line);) {
    int quotes = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\\')
        ++i;
      else if (line[i] == '\'')
        ++quotes;
    }
    INFO(line);
    CHECK(quotes % 2 == 0);
  }
  CHECK_THAT(completionFor("fish"), Contains("__fish_seen_subcommand_from evict' -l kill"));
}
