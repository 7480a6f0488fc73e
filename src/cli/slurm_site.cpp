#include "cli/slurm_site.h"

#include <sstream>

#include "cli/failure.h"
#include "cli/program_output.h"

namespace ts::cli {
namespace {

std::string trimmed(const std::string& text) {
  auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string firstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string scontrol(std::vector<std::string> words, std::chrono::microseconds timeout) {
  words.insert(words.begin(), "scontrol");
  ProgramOutput said = outputOf(words, timeout);
  if (!said.why.empty()) {
    throw Failure(Exit::Unreachable,
                  "scontrol: " + said.why +
                      "; install Slurm's client commands here (Debian: slurm-client), or run this "
                      "where they are");
  }
  if (said.exit != 0) {
    throw Failure(Exit::Unreachable,
                  "scontrol ended with " + std::to_string(said.exit) + ": " +
                      firstLine(said.err.empty() ? said.out : said.err) +
                      "; start slurmctld, or set SLURM_CONF to the site's slurm.conf");
  }
  return said.out;
}

}  // namespace

std::string valueOf(const SlurmRecord& record, const std::string& key) {
  auto at = record.find(key);
  return at == record.end() || at->second == "(null)" ? "" : at->second;
}

SlurmRecord parseSlurmConfig(const std::string& text) {
  SlurmRecord config;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto equals = line.find('=');
    if (equals != std::string::npos)
      config[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  }
  return config;
}

// A value may have spaces (OS=Linux 6.1 ...): a word without '=' belongs to the value before it.
std::vector<SlurmRecord> parseSlurmRecords(const std::string& text) {
  std::vector<SlurmRecord> records;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    SlurmRecord record;
    std::string key;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      auto equals = word.find('=');
      if (equals != std::string::npos && equals > 0) {
        key = word.substr(0, equals);
        record[key] = word.substr(equals + 1);
      } else if (!key.empty()) {
        record[key] += " " + word;
      }
    }
    if (!record.empty()) records.push_back(std::move(record));
  }
  return records;
}

SlurmSite askSlurm(std::chrono::microseconds timeout) {
  return {parseSlurmConfig(scontrol({"show", "config"}, timeout)),
          parseSlurmRecords(scontrol({"--all", "--oneliner", "show", "partition"}, timeout)),
          parseSlurmRecords(scontrol({"--all", "--oneliner", "show", "node"}, timeout))};
}

}  // namespace ts::cli
