#include "problems.h"

#include <catch2/catch.hpp>

using namespace demo;

TEST_CASE("the verifier counts the digits that are right", "[demo]") {
  const Problem problem = {{7, 9, 4, 0}, {5, 1, 6, 0}};  // 497 and 615
  const std::uint8_t sum[] = {2, 1, 1};                  // 1112 modulo 1000
  const std::uint8_t nearly[] = {2, 1, 2};
  const std::uint8_t difference[] = {2, 8, 8};  // -118 modulo 1000
  CHECK(verify(Task::Add, problem, sum) == 1);
  CHECK(verify(Task::Add, problem, nearly) == Approx(2 / 3.0));
  CHECK(verify(Task::Subtract, problem, difference) == 1);
  CHECK(verify(Task::Subtract, problem, sum) == Approx(1 / 3.0));
}

TEST_CASE("problems that are held out are never trained on", "[demo]") {
  for (const Problem& problem : trainingProblems(1, 2000)) REQUIRE_FALSE(isHeldOut(problem));
  for (const Problem& problem : heldOutProblems(1, 2000)) REQUIRE(isHeldOut(problem));
}

TEST_CASE("whoever ignores the problem is right in one digit of ten", "[demo]") {
  const std::vector<Problem> problems = heldOutProblems(3, 20000);
  for (std::uint8_t digit : {0, 4, 9}) {
    const std::vector<std::uint8_t> stubborn(problems.size() * kDigits, digit);
    CHECK(mean(verifyAll(Task::Add, problems, stubborn, 1)) == Approx(kChance).margin(0.01));
    CHECK(mean(verifyAll(Task::Subtract, problems, stubborn, 1)) == Approx(kChance).margin(0.01));
  }
}
