#include "scontrol/records.h"

#include <sstream>

namespace ts {
namespace {

std::string trimmed(const std::string& text) {
  auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
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

}  // namespace ts
