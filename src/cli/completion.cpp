#include "cli/completion.h"

#include <algorithm>

#include "cli/options.h"
#include "cli/words.h"

namespace ts::cli {
namespace {

// What may stand where: words that are always the same, files, or names that the master knows.
struct Values {
  enum class Kind { Words, Files, Names };
  const char* of;  // an option, or a command for what stands behind it
  Kind kind;
  const char* what;
};

constexpr Values kValues[] = {
    {"--auth", Values::Kind::Words, "munge none"},
    {"--backend", Values::Kind::Words, "cuda none turns"},
    {"--node-config", Values::Kind::Files, ""},
    {"--socket", Values::Kind::Files, ""},
    {"--output", Values::Kind::Files, ""},
    {"--master-config", Values::Kind::Files, ""},
    {"--master", Values::Kind::Files, ""},
    {"--group", Values::Kind::Names, "groups"},
    {"completion", Values::Kind::Words, "bash zsh fish"},
    {"why", Values::Kind::Names, "jobs"},
    {"evict", Values::Kind::Names, "jobs"},
    {"clear-fault", Values::Kind::Names, "jobs"},
    {"pause", Values::Kind::Names, "groups"},
    {"resume", Values::Kind::Names, "groups"},
    {"drain", Values::Kind::Names, "nodes"},
    {"undrain", Values::Kind::Names, "nodes"},
    {"declare-dead", Values::Kind::Names, "nodes"},
};

const Values* valuesOf(const std::string& name) {
  const auto* found = std::ranges::find_if(kValues, [&](const Values& v) { return name == v.of; });
  return found == std::end(kValues) ? nullptr : found;
}

// Of a section of `tsctl status --json`, as it is printed: one key a line. Names need no unquoting.
constexpr const char* kNamesIn =
    "tsctl --timeout 1s --json status 2>/dev/null | awk -F'\"' -v want=$SECTION '"
    "/^  \"/ {s = $2} "
    "s == want && /^      \"group\"/ {g = $4 \"/\"} "
    "s == want && /^      \"name\"/ {print $4; if (g) print g $4}'";

std::string namesIn(const std::string& section) {
  std::string command = kNamesIn;
  const std::string place = "$SECTION";
  return command.replace(command.find(place), place.size(), section);
}

std::vector<std::string> valuedOptions(const std::vector<CommandInfo>& all) {
  std::vector<std::string> options;
  for (const CommandInfo& command : all) {
    for (const std::string& option : command.valued) {
      if (std::ranges::count(options, option) == 0) options.push_back(option);
    }
  }
  return options;
}

std::string namesOf(const std::vector<CommandInfo>& all) {
  std::vector<std::string> names;
  for (const CommandInfo& command : all) names.push_back(command.name);
  return joined(names, " ");
}

// --- bash ---------------------------------------------------------------------------------------

std::string bashWords(const Values& values) {
  if (values.kind == Values::Kind::Files) return "-A file";
  return values.kind == Values::Kind::Words
             ? "-W '" + std::string(values.what) + "'"
             : "-W \"$(_tsctl_names " + std::string(values.what) + ")\"";
}

std::string bashReply(const std::string& words) {
  return "COMPREPLY=($(compgen " + words + " -- \"$current\"))";
}

// What follows an option that takes a value is that value, never the command.
std::string bashAfterOptions(const std::vector<CommandInfo>& all) {
  std::string text = "  case $previous in\n", others;
  for (const std::string& option : valuedOptions(all)) {
    if (const Values* values = valuesOf(option)) {
      text += "    " + option + ") " + bashReply(bashWords(*values)) + "; return ;;\n";
    } else {
      others += (others.empty() ? "" : "|") + option;
    }
  }
  return text + "    " + others + ") return ;;\n  esac\n";
}

std::string bashCommand(const CommandInfo& command) {
  std::string options = bashReply("-W '" + joined(command.options, " ") + "'");
  const Values* values = valuesOf(command.name);
  if (values == nullptr) return "    " + command.name + ") " + options + " ;;\n";
  return "    " + command.name + ") if [[ $current == -* ]]; then " + options + "; else " +
         bashReply(bashWords(*values)) + "; fi ;;\n";
}

// zsh runs it too, through bashcompinit. After -- it is the program's turn.
std::string bashFunction(const std::vector<CommandInfo>& all) {
  std::string text = "_tsctl_names() {\n  " + namesIn("\"$1\"") +
                     "\n}\n"
                     "_tsctl() {\n"
                     "  local current=${COMP_WORDS[COMP_CWORD]} previous='' command='' word i\n"
                     "  COMPREPLY=()\n"
                     "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                     "    word=${COMP_WORDS[i]}\n"
                     "    if [[ $word == -- ]]; then\n"
                     "      COMPREPLY=($(compgen -A command -A file -- \"$current\"))\n"
                     "      return\n"
                     "    fi\n"
                     "    case $previous in\n"
                     "      " +
                     joined(valuedOptions(all), "|") +
                     ") ;;\n"
                     "      *) if [[ -z $command && $word != -* ]]; then command=$word; fi ;;\n"
                     "    esac\n"
                     "    previous=$word\n"
                     "  done\n" +
                     bashAfterOptions(all) +
                     "  case $command in\n"
                     "    '') " +
                     bashReply("-W '" + namesOf(all) + " --help --version'") + " ;;\n";
  for (const CommandInfo& command : all) text += bashCommand(command);
  return text + "  esac\n}\n";
}

// --- fish ---------------------------------------------------------------------------------------

// As fish reads it again.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fishWords(const Values& values) {
  if (values.kind == Values::Kind::Files) return " -r -F";
  return " -x -a '" +
         (values.kind == Values::Kind::Words ? std::string(values.what)
                                             : "(__tsctl_names " + std::string(values.what) + ")") +
         "'";
}

std::string fishCommand(const CommandInfo& command, const std::vector<std::string>& valued) {
  std::string text = "complete -c tsctl -n __fish_use_subcommand -a " + command.name + " -d " +
                     quoted(command.summary) + "\n";
  std::string seen = "complete -c tsctl -n '__fish_seen_subcommand_from " + command.name + "'";
  for (const std::string& option : command.options) {
    const Values* values = valuesOf(option);
    bool takesValue = std::ranges::count(valued, option) > 0;
    text += seen + " -l " + option.substr(2) +
            (values != nullptr ? fishWords(*values)
             : takesValue      ? " -x"
                               : "") +
            "\n";
  }
  const Values* values = valuesOf(command.name);
  return values == nullptr ? text : text + seen + fishWords(*values) + "\n";
}

std::string fish(const std::vector<CommandInfo>& all) {
  std::string text =
      "function __tsctl_names\n  " + namesIn("$argv[1]") + "\nend\ncomplete -c tsctl -f\n";
  const auto valued = valuedOptions(all);
  for (const CommandInfo& command : all) text += fishCommand(command, valued);
  return text;
}

}  // namespace

std::string completionFor(const std::string& shell) {
  auto all = commands();
  if (shell == "fish") return fish(all);
  std::string function = bashFunction(all) + "complete -F _tsctl tsctl\n";
  if (shell == "bash") return function;
  return "#compdef tsctl\nautoload -U +X bashcompinit && bashcompinit\n" + function;
}

}  // namespace ts::cli
