#include "scontrol/slurm_word.h"

#include <catch2/catch.hpp>

using namespace ts;
using Job = SlurmWord::Job;

TEST_CASE("a job of the queue runs unless its state says that nothing of it does", "[scontrol]") {
  SlurmWord word;
  parseQueue(
      "17 RUNNING\n18 PENDING\n19 SUSPENDED\n20 COMPLETING\n21 REQUEUE_HOLD\n22 CONFIGURING\n"
      "23 A_STATE_OF_LATER\n24 STOPPED\n25 NODE_FAIL\n",
      word);
  CHECK(word.jobs == std::map<std::uint32_t, Job>{{17, Job::Running},
                                                  {18, Job::Queued},
                                                  {19, Job::Suspended},
                                                  {20, Job::Running},
                                                  {21, Job::Queued},
                                                  {22, Job::Running},
                                                  {23, Job::Running},
                                                  {24, Job::Running},
                                                  {25, Job::Queued}});
  CHECK(word.why.empty());
}

TEST_CASE("an empty queue has no jobs, and a line that is no job's makes all of it unheard",
          "[scontrol]") {
  SlurmWord empty;
  parseQueue("", empty);
  CHECK(empty.jobs.empty());
  CHECK(empty.why.empty());
  for (std::string line :
       {"CLUSTER: far", "17", "RUNNING 17", "17 RUNNING on n1", "4294967296 RUNNING", ""}) {
    SlurmWord word;
    parseQueue("16 RUNNING\n" + line + "\n18 RUNNING\n", word);
    CHECK(word.why == "squeue said \"" + line + "\", which is no job and its state");
  }
}

TEST_CASE("a job is there while it runs or is suspended", "[scontrol]") {
  SlurmWord word;
  parseQueue("17 RUNNING\n18 PENDING\n19 SUSPENDED\n", word);
  CHECK(word.isThere(17));
  CHECK_FALSE(word.isThere(18));
  CHECK(word.isThere(19));
  CHECK_FALSE(word.isThere(20));
}

TEST_CASE("a node is down by its state, drained or not answering or not", "[scontrol]") {
  SlurmWord word;
  parseNodes(
      "NodeName=n1 Arch=x86_64 OS=Linux 6.1 State=DOWN*+DRAIN ThreadsPerCore=1\n"
      "NodeName=n2 State=IDLE+DRAIN\nNodeName=n3 State=MIXED*\nNodeName=n4 State=DOWN\n",
      word);
  CHECK(word.nodes == std::set<std::string>{"n1", "n2", "n3", "n4"});
  CHECK(word.down == std::set<std::string>{"n1", "n4"});
}

TEST_CASE("nothing is concluded from a queue that not everybody may see", "[scontrol]") {
  SlurmWord open, closed;
  parseRules("PrivateData             = none\nPreemptMode             = OFF\n", open);
  CHECK(open.why.empty());
  CHECK(open.preempts.empty());
  parseRules("PrivateData             = accounts,jobs\n", closed);
  CHECK(closed.why == "PrivateData=accounts,jobs of slurm.conf hides jobs or nodes from this user");
}

TEST_CASE("FF-G11: a Slurm that stops jobs in turn is known by its rules", "[scontrol]") {
  SlurmWord word;
  parseRules("PreemptMode             = GANG,SUSPEND\n", word);
  CHECK(word.preempts == "GANG,SUSPEND");
}

TEST_CASE("a Slurm whose commands are missing says why it says nothing", "[scontrol]") {
  auto path = std::string(std::getenv("PATH"));
  ::setenv("PATH", "/nowhere", 1);
  auto word = askSlurm("", std::chrono::seconds(5));
  ::setenv("PATH", path.c_str(), 1);
  CHECK(word.why == "scontrol: No such file or directory");
}
