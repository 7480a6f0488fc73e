#include "cli/completion.h"

#include "cli/options.h"
#include "cli/words.h"

namespace ts::cli {
namespace {

std::string namesOf(const std::vector<CommandInfo>& all) {
  std::vector<std::string> names;
  for (const CommandInfo& command : all) names.push_back(command.name);
  return joined(names, " ");
}

// zsh runs it too, through bashcompinit. After -- it is the program's turn.
std::string bashFunction(const std::vector<CommandInfo>& all) {
  std::string text =
      "_tsctl() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} command='' word i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    if [[ $word == -- ]]; then\n"
      "      COMPREPLY=($(compgen -A command -A file -- \"$current\"))\n"
      "      return\n"
      "    fi\n"
      "    if [[ -z $command && $word != -* ]]; then command=$word; fi\n"
      "  done\n"
      "  case $command in\n"
      "    '') COMPREPLY=($(compgen -W '" +
      namesOf(all) + " --help --version' -- \"$current\")) ;;\n";
  for (const CommandInfo& command : all) {
    std::string words = joined(command.options, " ");
    if (command.name == "completion") words = "bash zsh fish " + words;
    text +=
        "    " + command.name + ") COMPREPLY=($(compgen -W '" + words + "' -- \"$current\")) ;;\n";
  }
  return text + "  esac\n}\n";
}

// As fish reads it again.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish(const std::vector<CommandInfo>& all) {
  std::string text = "complete -c tsctl -f\n";
  for (const CommandInfo& command : all) {
    text += "complete -c tsctl -n __fish_use_subcommand -a " + command.name + " -d " +
            quoted(command.summary) + "\n";
    for (const std::string& option : command.options) {
      text += "complete -c tsctl -n '__fish_seen_subcommand_from " + command.name + "' -l " +
              option.substr(2) + "\n";
    }
  }
  return text +
         "complete -c tsctl -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
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
