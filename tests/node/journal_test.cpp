#include "node/journal.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "node/fence.h"
#include "node/registry.h"
#include "temp_dir.h"
#include "wire/greet.h"

using namespace ts::node;
using ts::test::TempDir;

namespace {

std::string fileOf(const TempDir& dir) {
  return dir / "journal";
}

std::string contentOf(const TempDir& dir) {  // without the room that is kept ahead
  std::ifstream in(fileOf(dir));
  std::string all(std::istreambuf_iterator<char>(in), {});
  return all.substr(0, all.find('\0'));
}

}  // namespace

TEST_CASE("a journal is read back as it was left", "[node]") {
  TempDir dir;
  {
    Journal j(dir.path());
    j.put("a", "1");
    j.put("b", "two\twith\nodd %09 signs");
    j.put("a", "3");
    j.put("c", "");
    j.erase("c");
  }
  Journal again(dir.path());
  CHECK(again.all() ==
        std::map<std::string, std::string>{{"a", "3"}, {"b", "two\twith\nodd %09 signs"}});
}

TEST_CASE("a step that was cut short counts for nothing, wherever it was cut", "[node]") {
  TempDir dir;
  std::string whole;
  {
    Journal j(dir.path());
    j.put("first", "1");
    j.keep({{"second", "2", false}, {"third", "3", false}, {"first", "", true}});
    whole = contentOf(dir);
  }
  auto stepAt = whole.find("=second");
  REQUIRE(stepAt != std::string::npos);
  for (auto cut = stepAt; cut <= whole.size(); ++cut) {
    std::ofstream(fileOf(dir)) << whole.substr(0, cut);
    Journal j(dir.path());
    bool complete = cut == whole.size();
    CHECK(j.all().contains("third") == complete);
    CHECK(j.all().contains("first") == !complete);
  }
}

TEST_CASE("a step of which only the end was copied counts for nothing", "[node]") {
  TempDir dir;
  {
    Journal j(dir.path());
    j.put("first", "1");
    j.put("second", "2");
  }
  auto content = contentOf(dir);
  content[content.find("=second")] = '\0';
  std::ofstream(fileOf(dir)) << content;
  Journal j(dir.path());
  CHECK(j.all() == std::map<std::string, std::string>{{"first", "1"}});
}

TEST_CASE("a step larger than the room that is left is kept whole", "[node]") {
  TempDir dir;
  std::string large(5u << 20, 'x');
  {
    Journal j(dir.path());
    j.put("small", "1");
    j.put("large", large);
  }
  Journal again(dir.path());
  CHECK(again.all().at("small") == "1");
  CHECK(again.all().at("large") == large);
}

TEST_CASE("a journal does not grow without end", "[node]") {
  TempDir dir;
  Journal j(dir.path());
  std::string value(1000, 'x');
  for (int i = 0; i < 5000; ++i) j.put("name" + std::to_string(i % 10), value);
  CHECK(std::filesystem::file_size(fileOf(dir)) < 3u << 20);
  CHECK(j.all().size() == 10);
}

TEST_CASE("one directory is one daemon's", "[node]") {
  TempDir dir;
  Journal j(dir.path());
  CHECK_THROWS(Journal(dir.path()));
}

TEST_CASE("a record that does not decode is named with its place and the way out", "[node]") {
  TempDir dir;
  auto why = [&](const std::string& name, const std::string& value) -> std::string {
    Journal journal(dir / "state");
    journal.put(name, value);
    try {
      Registry registry(journal);
      Fence fence(journal);
    } catch (const kj::Exception& e) {
      return ts::sentenceOf(e);
    }
    return "it is read";
  };
  auto [name, value] = GENERATE(table<std::string, std::string>({
      {"ids", "many"},
      {"job/rl/a", "rl a 0 0 high 0 cuda"},
      {"member/17", "17 rl a"},
      {"member/17", "17 rl nosuch 5 5 0 0 0 0"},
      {"grant/rl/a", "1 x 0"},
      {"epoch/x", "1 2 0"},
      {"order/rl/a/x", ""},
      {"order/rl/a/3", "fine"},
  }));
  auto said = why(name, value);
  CHECK(said.find("journal " + (dir / "state/journal") + ": record \"" + name + "\"") !=
        std::string::npos);
  CHECK(said.find("cannot be read: " + value) != std::string::npos);
  CHECK(said.ends_with("stop the jobs and remove the file"));
}
