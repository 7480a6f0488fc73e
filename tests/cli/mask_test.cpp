#include "cli/mask.h"

#include <catch2/catch.hpp>

using namespace ts;
using namespace ts::cli;

TEST_CASE("a job has one other name throughout a report", "[cli]") {
  Mask mask;
  mask.job("patients");
  mask.job("patients-7");
  CHECK(mask.apply("grant job=patients-7 holder=patients; g/patients-7 waits for \"patients\"") ==
        "grant job=job-2 holder=job-1; g/job-2 waits for \"job-1\"");
  CHECK(mask.apply("patients-70 and impatients stay") == "patients-70 and impatients stay");
}

TEST_CASE("a job with the name of a word is masked only where a name stands", "[cli]") {
  Mask mask;
  mask.job("a");
  CHECK(mask.apply("a call of g/a, job=a \"a\": a node has a job") ==
        "a call of g/job-1, job=job-1 \"job-1\": a node has a job");
}

TEST_CASE("jobs that have ended are known from the events, and who users are is not told",
          "[cli]") {
  Mask mask;
  mask.learnEvents("join group=g job=secret uid=1000 node=n1");
  mask.learnEvents("declared job=g/other");
  CHECK(mask.apply("join group=g job=secret uid=1000 phase=\"my work\" node=n1; g/other") ==
        "join group=g job=job-1 uid=masked phase=masked node=n1; g/job-2");
}

TEST_CASE("of users and of what jobs are given a report has only the number", "[cli]") {
  MasterConfig config;
  config.operators = {4321};
  auto& group = config.groups["trainers"];
  group.users = {1234, 1235};
  group.environment = {{"TOKEN", "hunter2"}};
  auto text = maskedConfig(config);
  for (const char* secret : {"4321", "1234", "TOKEN", "hunter2"}) {
    CHECK_THAT(text, !Catch::Contains(secret));
  }
  CHECK_THAT(text,
             Catch::Contains("[group.trainers]\n") && Catch::Contains("users = 2 users, masked"));
}
