#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <sstream>

#include "config/config.h"
#include "support/temp_dir.h"

using namespace ts;

namespace {

std::string textOf(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

// The example with every "#key = ..." and "#[section]" taken at its word.
std::string uncommented(const std::string& path) {
  return std::regex_replace(textOf(path), std::regex("(^|\n)#(\\[|[A-Za-z_]+ = )"), "$1$2");
}

// What the file's errors call known where nothing is known: all keys of its top level.
template <class Config>
std::string errorsOf(Loaded<Config> (*load)(const std::string&), const std::string& text) {
  test::TempDir dir;
  std::ofstream(dir / "x.toml") << text;
  std::string all;
  for (const ConfigError& error : load(dir / "x.toml").errors) all += error.text + "\n";
  return all;
}

void checkNamesEveryKey(const std::string& errors, const std::string& example) {
  std::smatch match;
  REQUIRE(std::regex_search(errors, match, std::regex("known here: (.*)\n")));
  std::istringstream keys(match[1]);
  for (std::string key; std::getline(keys, key, ',');) {
    key.erase(0, key.find_first_not_of(' '));
    if (key == "group" || key == "defaults") continue;
    INFO(key);
    CHECK(example.find("\n#" + key + " = ") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("the example of the master is valid as it is and with every line in force", "[config]") {
  CHECK(loadMasterConfig(CONF_DIR "/master.toml").ok());
  CHECK(errorsOf(loadMasterConfig, uncommented(CONF_DIR "/master.toml")).empty());
}

TEST_CASE("the example of the node is valid as it is and with every line in force", "[config]") {
  CHECK(loadNodeConfig(CONF_DIR "/node.toml").ok());
  CHECK(errorsOf(loadNodeConfig, uncommented(CONF_DIR "/node.toml")).empty());
}

TEST_CASE("the examples name every key there is", "[config]") {
  checkNamesEveryKey(errorsOf(loadMasterConfig, "zzzzzzzzzz = 1\n"),
                     textOf(CONF_DIR "/master.toml"));
  checkNamesEveryKey(errorsOf(loadNodeConfig, "zzzzzzzzzz = 1\n"), textOf(CONF_DIR "/node.toml"));
  std::string group = errorsOf(loadMasterConfig, "[defaults]\nzzzzzzzzzz = 1\n");
  checkNamesEveryKey(group, textOf(CONF_DIR "/master.toml"));
}
