// Runs every scripts/*.txt against a Cluster. UPDATE_SCRIPTS=1 rewrites the expected output in
// place; read the diff before you commit it. In a script: commands, then `----`, then the recorded
// actions, then an empty line.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "story.h"

namespace {

// The script with its expectations replaced by what really happens.
std::string replay(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line, out, actions;
  ts::test::Story story;
  bool stepped = false;    // something happened since the last flush
  bool expecting = false;  // between `----` and the next empty line: old expectations, dropped
  auto flush = [&] {
    if (stepped) out += "----\n" + (actions.empty() ? "(nothing)\n" : actions);
    actions.clear();
    stepped = expecting = false;
  };
  while (std::getline(in, line)) {
    if (line == "----") expecting = true;
    if (line.empty()) flush();
    if (expecting) continue;
    out += line + "\n";
    if (line.empty() || line[0] == '#') continue;
    INFO(file.filename().string() + ": " + line);
    actions += story.run(line);
    stepped |= line.rfind("at ", 0) == 0;
  }
  flush();
  return out;
}

std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::filesystem::path scriptsDir() {
  const char* other = std::getenv("SCRIPTS_DIR");  // NOLINT(concurrency-mt-unsafe)
  return other ? other : SCRIPTS_DIR;
}

}  // namespace

TEST_CASE("every script produces its recorded actions", "[core][script]") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(scriptsDir())) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE_FALSE(files.empty());
  for (const auto& file : files) {
    DYNAMIC_SECTION(file.filename().string()) {
      std::string actual = replay(file);
      bool update = std::getenv("UPDATE_SCRIPTS") != nullptr;  // NOLINT(concurrency-mt-unsafe)
      if (update) std::ofstream(file) << actual;
      CHECK(actual == slurp(file));
    }
  }
}
