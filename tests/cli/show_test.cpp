#include "cli/show.h"

#include <capnp/message.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/status_sample.h"
#include "wire/status_json.h"

using namespace ts;
using namespace ts::cli;

namespace {

struct Sample {
  capnp::MallocMessageBuilder message;
  Status::Builder status = message.initRoot<Status>();
  Sample() { test::sampleStatus(status); }
};

}  // namespace

TEST_CASE("the status is a headline and three tables", "[cli]") {
  Sample sample;
  CHECK(
      showStatus(sample.status) ==
      "tsmasterd 0.1.0, generation 3, up 2 h: 2 nodes, 1 group, 3 jobs (1 holding, 1 waiting)\n"
      "\n"
      "GROUP  POLICY  HOLDING  WAITING, IN ORDER  SWITCHES\n"
      "rl     fifo    a        b                       412\n"
      "\n"
      "JOB   STATE     SINCE  PLACE  DEVICES      ON DEVICE     SAVED  WHY\n"
      "rl/a  holding  12.3 s         n0:0,1 n1:0   31.0 GiB\n"
      "rl/b  waiting   4.0 s      1  n0:0,1 n1:0             20.0 GiB  waits for rl/a\n"
      "rl/c  faulted   1.5 s         n0:0,1 n1:0                       fault restore; "
      "CUDA_ERROR_UNKNOWN (999); tsctl clear-fault rl/c lets it be tried again, tsctl evict --kill "
      "rl/c ends it\n"
      "\n"
      "NODE  STATE    SINCE  JOBS  DEVICE  NAME           IN USE   MEMORY  ADDRESS\n"
      "n0    up       1 min     3       0  NVIDIA H200  41.0 GiB  141 GiB  10.0.0.1:5000\n"
      "                                 1  NVIDIA H200  41.0 GiB  141 GiB\n"
      "n1    suspect   0 us     0          no device\n");
}

TEST_CASE("jobs can be those of one group", "[cli]") {
  Sample sample;
  CHECK(showJobs(sample.status, "other") == "no job in group other now\n");
  CHECK_THAT(showJobs(sample.status, "rl"), Catch::Contains("rl/a"));
}

TEST_CASE("P54: an empty cluster says what to do", "[cli]") {
  capnp::MallocMessageBuilder message;
  auto status = message.initRoot<Status>();
  CHECK(showJobs(status, "") == "no job now: a job appears when its program joins\n");
  CHECK_THAT(showNodes(status), Catch::Contains("start tsnoded"));
  CHECK_THAT(showGroups(status), Catch::Contains("first job"));
}

TEST_CASE("busy is no reason where the holder is named", "[cli]") {
  Sample sample;
  sample.status.getJobs()[1].setCause("busy");
  CHECK_THAT(showJobs(sample.status, ""),
             Catch::Contains("waits for rl/a") && !Catch::Contains("busy"));
}

TEST_CASE("why tells what a job waits for and who is before it", "[cli]") {
  Sample sample;
  capnp::MallocMessageBuilder message;
  auto jobs = message.initRoot<wire::OperatorSession::WhyResults>().initJobs(2);
  jobs.setWithCaveats(0, sample.status.getJobs()[1]);
  jobs.setWithCaveats(1, sample.status.getJobs()[0]);
  CHECK(showWhy(jobs) ==
        "rl/b has waited for 4.0 s and is number 1 in the queue of rl\n"
        "  devices   n0:0,1 n1:0\n"
        "  saved     20.0 GiB\n"
        "  before it rl/a has held its devices for 12.3 s, 2 of 2 participants in the slice\n");
  sample.status.getJobs()[1].setLabel("rollout");
  jobs.setWithCaveats(0, sample.status.getJobs()[1]);
  CHECK_THAT(showWhy(jobs), Catch::StartsWith("rl/b (rollout) has waited"));
  sample.status.getJobs()[1].setCause("paused");
  jobs.setWithCaveats(0, sample.status.getJobs()[1]);
  CHECK_THAT(showWhy(jobs),
             Catch::Contains("cause     paused: an operator paused the group: tsctl resume"));
  jobs.setWithCaveats(0, sample.status.getJobs()[2]);
  CHECK_THAT(showWhy(jobs), Catch::Contains("fault     restore\n") &&
                                Catch::Contains("way out   tsctl clear-fault rl/c lets"));
}

TEST_CASE("a job that is moved out says for whom", "[cli]") {
  Sample sample;
  auto job = sample.status.getJobs()[0];
  job.setPhase("switching");
  job.setPlace(0);
  job.initWaitsFor(1)[0].setGroup("rl");
  job.getWaitsFor()[0].setName("b");
  CHECK_THAT(showJobs(sample.status, ""), Catch::Contains("moved out for rl/b"));
  capnp::MallocMessageBuilder message;
  auto jobs = message.initRoot<wire::OperatorSession::WhyResults>().initJobs(1);
  jobs.setWithCaveats(0, job);
  CHECK_THAT(showWhy(jobs), Catch::Contains("rl/a is being moved out for rl/b"));
}

TEST_CASE("FF-A4: a call that is late is shown with its process, for how long, and what ends it",
          "[cli]") {
  Sample sample;
  auto fill = [](wire::LateCall::Builder late) {
    late.setNode("n0");
    late.initKey().setGroup("rl");
    late.getKey().setName("a");
    late.setCall("quiesce");
    late.initPids(1).set(0, 4711);
    late.setForUs(12'000'000);
  };
  fill(sample.status.getJobs()[0].initLate(1)[0]);
  fill(sample.status.getNodes()[0].initLate(1)[0]);
  const char* told =
      "quiesce of process 4711 on n0 runs for 12.0 s; tsctl evict --kill rl/a ends it";
  CHECK_THAT(showJobs(sample.status, ""), Catch::Contains(told));
  CHECK_THAT(showNodes(sample.status), Catch::Contains(std::string("rl/a: ") + told + "\n"));
  auto json = toJson(Status::Reader(sample.status));
  CHECK(json["jobs"][0]["late"] == json["nodes"][0]["late"]);
  CHECK(json["nodes"][0]["late"][0]["for_s"] == 12.0);
}

TEST_CASE("the status as JSON has units in its names and every bit of an id", "[cli]") {
  Sample sample;
  auto json = toJson(Status::Reader(sample.status));
  CHECK(json["generation"]["id"] == "fedcba9876543210");
  CHECK(json["uptime_s"] == 7200.0);
  CHECK(json["jobs"][0]["epoch"]["counter"] == 7);
  CHECK(json["jobs"][0]["since_s"] == 12.3);
  CHECK(json["jobs"][1]["waits_for"] == nlohmann::ordered_json::array({"rl/a"}));
  CHECK(json["jobs"][1]["members"][0]["residency"] == "saved");
  CHECK(json["jobs"][1]["claim"][0]["devices"] == nlohmann::ordered_json::array({0, 1}));
  CHECK(json["jobs"][2]["since_s"] == 1.5);
  CHECK(json["jobs"][0]["late"].empty());
  CHECK(json["nodes"][0]["devices"][1]["free_bytes"] == 100ull << 30);
}

TEST_CASE("text that is no UTF-8 does not break JSON", "[cli]") {
  capnp::MallocMessageBuilder message;
  auto line = message.initRoot<wire::EventLine>();
  line.setText("bad \xff byte");
  CHECK_THAT(textOf(toJson(wire::EventLine::Reader(line))),
             Catch::Contains("bad \xef\xbf\xbd byte"));
}
