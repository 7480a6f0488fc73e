#include "node/journal.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
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

constexpr std::size_t kHeader = 16;

std::uint64_t endOf(const std::string& file) {
  std::uint64_t end = 0;
  std::memcpy(&end, file.data() + 8, sizeof(end));
  return end;
}

std::string contentOf(const TempDir& dir) {  // without the room that is kept ahead
  std::ifstream in(fileOf(dir));
  std::string all(std::istreambuf_iterator<char>(in), {});
  return all.substr(0, endOf(all));
}

void write(const TempDir& dir, const std::string& content) {
  std::ofstream(fileOf(dir)) << content;
}

// Why the journal is not taken, or "".
std::string refusalOf(const TempDir& dir) {
  try {
    Journal j(dir.path());
  } catch (const kj::Exception& e) {
    return ts::sentenceOf(e);
  }
  return "";
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
  CHECK(again.all() == Records::Values{{"a", "3"}, {"b", "two\twith\nodd %09 signs"}});
}

TEST_CASE("a step that was cut short counts for nothing", "[node]") {
  TempDir dir;
  std::string first, whole;
  {
    Journal j(dir.path());
    j.put("first", "1");
    first = contentOf(dir);
    std::array<Records::Change, 3> step{
        {{"second", "2", false}, {"third", "3", false}, {"first", "", true}}};
    j.keep(step);
    whole = contentOf(dir);
  }
  // Killed before it had said that there is more.
  auto cut = whole;
  std::copy_n(first.begin(), kHeader, cut.begin());
  for (auto written = first.size(); written <= cut.size(); ++written) {
    write(dir, cut.substr(0, written));
    CHECK(Journal(dir.path()).all() == Records::Values{{"first", "1"}});
  }
}

TEST_CASE("FF-D5: a journal that is not as it was written is refused, with what is lost",
          "[node]") {
  TempDir dir;
  std::string whole;
  {
    Journal j(dir.path());
    j.put("job/rl/a", "rl a 0 0 0 0 none");
    j.put("second", "2");
    j.erase("second");
    whole = contentOf(dir);
  }
  auto broken = whole;
  SECTION("shorter") {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      write(dir, whole.substr(0, size));
      CHECK(refusalOf(dir).find("is damaged: ") != std::string::npos);
    }
  }
  SECTION("another byte") {
    for (std::size_t i = kHeader; i < whole.size(); ++i) {
      broken = whole;
      broken[i] = char(broken[i] ^ 1);
      write(dir, broken);
      CHECK(refusalOf(dir).find("is damaged: ") != std::string::npos);
    }
  }
  SECTION("half emptied") {
    std::fill(broken.begin() + std::ptrdiff_t(whole.find("second")), broken.end(), '\0');
    write(dir, broken);
    auto why = refusalOf(dir);
    CHECK(why.find("journal " + fileOf(dir) + " is damaged: ") == 0);
    CHECK(why.find("among them rl/a") != std::string::npos);
    CHECK(why.ends_with("then remove the file and start tsnoded again"));
  }
  SECTION("a step in the middle is gone") {
    auto at = whole.find("=second"), end = whole.find("-second");
    broken = whole.substr(0, at) + whole.substr(end);
    auto size = std::uint64_t(broken.size());
    std::memcpy(broken.data() + 8, &size, sizeof(size));
    write(dir, broken);
    CHECK(refusalOf(dir).find("a checksum is wrong at byte ") != std::string::npos);
  }
}

namespace {

// No file of this process grows any more, as on a full disk.
class FullDisk {
public:
  explicit FullDisk(rlim_t most) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now{most, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("on a full disk a journal goes on, and says when nothing new should be begun", "[node]") {
  TempDir dir;
  Journal j(dir.path());
  auto size = std::filesystem::file_size(fileOf(dir));
  std::string value(1000, 'x');
  {
    FullDisk full(size);
    for (int i = 0; i < 5000; ++i) j.put("name" + std::to_string(i % 10), value);
    auto why = j.whyFull();
    CHECK(why.find("no room for ") == 0);
    CHECK(why.find(dir.path()) != std::string::npos);
    CHECK(why.find(std::strerror(EFBIG)) != std::string::npos);
    CHECK(why.ends_with("make room there"));
  }
  CHECK(j.whyFull() == "");
  CHECK(j.all().size() == 10);
}

TEST_CASE("a daemon that starts on a full disk finds its journal as it was", "[node]") {
  TempDir dir;
  std::string large(300'000, 'x');
  std::uintmax_t size = 0;
  {
    Journal j(dir.path());
    size = std::filesystem::file_size(fileOf(dir));
    j.put("large", large);
  }
  FullDisk full(size);
  CHECK(Journal(dir.path()).all().at("large") == large);
}

TEST_CASE("what has no room at all is refused, and what was there stays", "[node]") {
  TempDir dir;
  {
    Journal j(dir.path());
    j.put("small", "1");
    FullDisk full(std::filesystem::file_size(fileOf(dir)));
    try {
      j.put("large", std::string(5u << 20, 'x'));
      FAIL("it has been taken");
    } catch (const kj::Exception& e) {
      CHECK(e.getType() == kj::Exception::Type::OVERLOADED);
    }
    j.put("small", "2");
  }
  CHECK(Journal(dir.path()).all() == Records::Values{{"small", "2"}});
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
