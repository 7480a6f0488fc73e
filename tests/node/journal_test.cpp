#include "node/journal.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "temp_dir.h"

using namespace ts::node;
using ts::test::TempDir;

namespace {

std::string fileOf(const TempDir& dir) { return dir / "journal"; }

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
  CHECK(again.all() == std::map<std::string, std::string>{{"a", "3"}, {"b", "two\twith\nodd %09 signs"}});
}

TEST_CASE("a step that was cut short counts for nothing, wherever it was cut", "[node]") {
  TempDir dir;
  std::string whole;
  {
    Journal j(dir.path());
    j.put("first", "1");
    j.keep({{"second", "2", false}, {"third", "3", false}, {"first", "", true}});
    std::ifstream in(fileOf(dir));
    whole.assign(std::istreambuf_iterator<char>(in), {});
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
