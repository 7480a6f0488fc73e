#include "log/log.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace ts;
using Catch::Matchers::Matches;

namespace {

struct Pipe {
  int in = -1, out = -1;
  Pipe() {
    int fds[2];
    REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
    in = fds[0];
    out = fds[1];
    REQUIRE(::fcntl(in, F_SETFL, O_NONBLOCK) == 0);
  }
  ~Pipe() {
    ::close(in);
    ::close(out);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  std::string read() const {
    std::string text;
    char buffer[4096];
    ssize_t n;
    while ((n = ::read(in, buffer, sizeof buffer)) > 0) text.append(buffer, size_t(n));
    return text;
  }
};

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  CHECK(begin == text.size());
  return lines;
}

}  // namespace

TEST_CASE("P71: a line is a verb and its keys, and a value with anything odd in it is quoted",
          "[log]") {
  Line line("grant");
  line.add("group", "trainers").add("job", "417.0").add("epoch", std::uint64_t(12));
  line.add("drift", std::int64_t(-3)).add("why", "no room: \"a\\b\"\nnext").add("empty", "");
  CHECK(line.text() ==
        "grant group=trainers job=417.0 epoch=12 drift=-3 "
        "why=\"no room: \\\"a\\\\b\\\"\\nnext\" empty=\"\"");
  CHECK(Line("x").add("k", std::string_view("\x1b[0m", 4)).text() == "x k=\"\\x1b[0m\"");
  CHECK(Line("x").add("k", "a=b").text() == "x k=\"a=b\"");
}

TEST_CASE("outside the journal a line ends in its level and the time", "[log]") {
  Pipe pipe;
  Log log(Level::Info, pipe.out);
  log.warning(Line("switch-slow").add("took_us", std::uint64_t(5)));
  CHECK_THAT(pipe.read(), Matches("switch-slow took_us=5 level=warning "
                                  "at=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{6}Z\n"));
}

TEST_CASE("in the journal a line begins with its priority", "[log]") {
  Pipe pipe;
  struct stat info {};
  REQUIRE(::fstat(pipe.out, &info) == 0);
  std::string stream = std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
  ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
  Log log(Level::Debug, pipe.out);
  Pipe other;
  Log elsewhere(Level::Info, other.out);  // inherited the variable, but writes to another place
  ::unsetenv("JOURNAL_STREAM");
  log.error(Line("a"));
  log.warning(Line("b"));
  log.info(Line("c"));
  log.debug(Line("d"));
  CHECK(pipe.read() == "<3>a\n<4>b\n<6>c\n<7>d\n");
  elsewhere.info(Line("e"));
  CHECK_THAT(other.read(), Matches("e level=info at=.*\n"));
}

TEST_CASE("what is below the threshold is not written, and the threshold can change", "[log]") {
  Pipe pipe;
  Log log(Level::Warning, pipe.out);
  log.info(Line("quiet"));
  CHECK(pipe.read().empty());
  CHECK_FALSE(log.enabled(Level::Info));
  log.setThreshold(Level::Debug);
  log.debug(Line("loud"));
  CHECK_THAT(pipe.read(), Catch::StartsWith("loud "));
}

TEST_CASE("the history gets info and above, whatever the threshold", "[log]") {
  Pipe pipe;
  Log log(Level::Error, pipe.out);
  std::vector<std::string> history;
  log.tee([&](Level, const std::string& text) { history.push_back(text); });
  log.info(Line("grant").add("job", "a"));
  log.debug(Line("noise"));
  log.error(Line("fault"));
  CHECK(history == std::vector<std::string>{"grant job=a", "fault"});
}

TEST_CASE("a reader that does not read loses lines, is told how many, and blocks nobody", "[log]") {
  Pipe pipe;
  Log log(Level::Info, pipe.out);
  constexpr int kLines = 5000;
  for (int i = 0; i < kLines; ++i) log.info(Line("tick").add("n", std::int64_t(i)));
  size_t kept = linesOf(pipe.read()).size();
  REQUIRE(kept < kLines);
  log.info(Line("again"));
  auto lines = linesOf(pipe.read());
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0],
             Catch::StartsWith("log-dropped lines=" + std::to_string(kLines - kept) + " "));
  CHECK_THAT(lines[1], Catch::StartsWith("again "));
}

TEST_CASE("a line longer than a pipe takes in one piece is cut", "[log]") {
  Pipe pipe;
  Log log(Level::Info, pipe.out);
  log.info(Line("long").add("text", std::string(10'000, 'x')));
  auto lines = linesOf(pipe.read());
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].size() == 4095);
  CHECK_THAT(lines[0], Matches("long text=x+ level=info at=.*Z"));
}

TEST_CASE("lines of several threads do not mix", "[log]") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  Log log(Level::Info, fds[1]);
  std::string text;
  std::thread reader([&] {
    char buffer[4096];
    ssize_t n;
    while ((n = ::read(fds[0], buffer, sizeof buffer)) > 0) text.append(buffer, size_t(n));
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&log, t] {
      for (int i = 0; i < 200; ++i) log.info(Line("tick").add("t", std::int64_t(t)));
    });
  }
  for (auto& writer : writers) writer.join();
  ::close(fds[1]);
  reader.join();
  ::close(fds[0]);
  for (const std::string& line : linesOf(text)) {
    CHECK_THAT(line, Matches("(tick t=[0-3]|log-dropped lines=[0-9]+) level=.* at=.*Z"));
  }
}

TEST_CASE("level names are read, and nothing else", "[log]") {
  bool ok = false;
  CHECK(parseLevel("warning", ok) == Level::Warning);
  CHECK(ok);
  parseLevel("Warn", ok);
  CHECK_FALSE(ok);
}
