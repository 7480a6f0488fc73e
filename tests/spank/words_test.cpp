// What a user and an administrator may write, and what they are told otherwise.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "options.h"
#include "plugstack.h"
}

using Catch::Matchers::Contains;

namespace {

std::string problemOf(tsp_option which, const std::string& value) {
  char problem[TSP_PROBLEM_BYTES] = "";
  bool fine = tsp_check(which, "--x", value.c_str(), problem);
  CHECK(fine == (problem[0] == '\0'));
  return problem;
}

tsp_words wordsOf(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (auto& w : words) pointers.push_back(w.data());
  tsp_words out;
  tsp_words_read(int(pointers.size()), pointers.data(), "n7", &out);
  return out;
}

tsp_wishes gangOf(const char* text) {
  tsp_wishes wishes{};
  std::strcpy(wishes.text[TSP_GANG], text);
  return wishes;
}

}  // namespace

TEST_CASE("a value that is right is taken as it is", "[spank]") {
  for (auto [which, value] :
       std::vector<std::pair<tsp_option, std::string>>{{TSP_GROUP, "rl"},
                                                       {TSP_GROUP, "A.b_c-9"},
                                                       {TSP_GROUP, std::string(63, 'a')},
                                                       {TSP_PRIORITY, "0"},
                                                       {TSP_PRIORITY, "-10000"},
                                                       {TSP_PRIORITY, "10000"},
                                                       {TSP_BACKEND, "cuda"},
                                                       {TSP_MODE, "cooperative"},
                                                       {TSP_LAUNCH, "gated"},
                                                       {TSP_LAUNCH, "open"},
                                                       {TSP_GANG, "tasks"},
                                                       {TSP_GANG, "no"},
                                                       {TSP_GANG, "0"},
                                                       {TSP_GANG, "1000000"}}) {
    CHECK(problemOf(which, value).empty());
  }
}

TEST_CASE(
    "FF-F2: a value that is wrong is named with what to write, and holds nothing that could be run",
    "[spank]") {
  CHECK(problemOf(TSP_GROUP, "a b") == "--x=a b: use 1 to 63 of A-Z a-z 0-9 . _ -");
  CHECK(problemOf(TSP_GROUP, "$(id)\n../x\x1b") ==
        "--x=$(id)?../x?: use 1 to 63 of A-Z a-z 0-9 . _ -");
  for (const auto& value : {std::string(), std::string(64, 'a'), std::string(65536, 'a')}) {
    auto problem = problemOf(TSP_GROUP, value);
    CHECK_THAT(problem, Contains("use 1 to 63"));
    CHECK(problem.size() < TSP_PROBLEM_BYTES);
  }
  for (auto value : {"1.5", "ten", "10001", "-10001", "99999999999999999999", "-", ""})
    CHECK_THAT(problemOf(TSP_PRIORITY, value), Contains("from -10000 to 10000"));
  CHECK_THAT(problemOf(TSP_BACKEND, "a-name-of-16-byte"), Contains("use cuda, none or turns"));
  CHECK(problemOf(TSP_MODE, "transparent") ==
        "--x=transparent: it is not available yet; use cooperative");
  CHECK(problemOf(TSP_LAUNCH, "shut") == "--x=shut: use gated or open");
  CHECK_THAT(problemOf(TSP_GANG, "-1"), Contains("tasks or no"));
  CHECK_THAT(problemOf(TSP_GANG, "1000001"), Contains("tasks or no"));
}

TEST_CASE("the gang is the step's tasks unless the user counts otherwise", "[spank]") {
  for (auto [text, tasks, gang] : std::vector<std::tuple<const char*, unsigned, unsigned>>{
           {"", 4, 4}, {"tasks", 4, 4}, {"no", 4, 0}, {"0", 4, 0}, {"8", 4, 8}, {"", 0, 0}}) {
    auto wishes = gangOf(text);
    CHECK(tsp_gang(&wishes, tasks) == gang);
  }
}

TEST_CASE("without words the plugin has its defaults", "[spank]") {
  auto words = wordsOf({});
  CHECK(std::string(words.socket) == "/run/timeslice/node.sock");
  CHECK(words.timeout_ms == 1000);
  CHECK(words.gather_ms == 60000);
  CHECK(words.on_error == TSP_FAIL);
  CHECK(std::string(words.client).empty());
  CHECK(std::string(words.preload) == "/lib/preload.so");
  CHECK(std::string(words.trouble).empty());
}

TEST_CASE("each word of plugstack.conf is heard", "[spank]") {
  auto words = wordsOf({"socket=/run/%n/s%n", "timeout_ms=20", "gather_ms=30",
                        "on_error=standalone", "client=/opt/libtimeslice.so.0", "preload=none"});
  CHECK(std::string(words.socket) == "/run/n7/sn7");
  CHECK(words.timeout_ms == 20);
  CHECK(words.gather_ms == 30);
  CHECK(words.on_error == TSP_STANDALONE);
  CHECK(std::string(words.client) == "/opt/libtimeslice.so.0");
  CHECK(std::string(words.preload).empty());
  CHECK(std::string(words.trouble).empty());
}

TEST_CASE("a word that is wrong is named, the first of several", "[spank]") {
  auto trouble = [](const std::string& word) -> std::string {
    return wordsOf({"timeout_ms=20", word, "nonsense"}).trouble;
  };
  CHECK(trouble("sockets=/x") ==
        "plugstack.conf: 'sockets=/x' is unknown; there are socket= timeout_ms= gather_ms= "
        "on_error=fail|standalone client= preload=");
  CHECK(trouble("socket=run/x") == "plugstack.conf: 'socket=run/x' is no absolute path");
  CHECK_THAT(trouble("socket=/" + std::string(200, 'a')), Contains("is too long"));
  CHECK_THAT(trouble("timeout_ms=0"), Contains("from 1 to 3600000"));
  CHECK_THAT(trouble("timeout_ms=1s"), Contains("'timeout_ms=1s' is not a whole number"));
  CHECK_THAT(trouble("on_error=ignore"), Contains("'on_error=ignore' is unknown"));
}
