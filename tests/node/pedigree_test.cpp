#include "node/pedigree.h"

#include <catch2/catch.hpp>
#include <map>
#include <sstream>

using namespace ts;
using namespace ts::node;

namespace {

const JobName kA{"rl", "a"};
const JobName kB{"rl", "b"};

// Processes by pid; who is not said otherwise comes from init, in a session of its own.
struct Machine {
  std::map<pid_t, Process> processes;
  std::vector<Root> roots;

  Process& add(pid_t pid, pid_t parent, pid_t session = 0, std::string cgroup = "/") {
    return processes[pid] = {
               {pid, std::uint64_t(pid)}, parent, session ? session : pid, 1000, std::move(cgroup)};
  }
  void joins(pid_t pid, const JobName& job) { roots.push_back({job, processes.at(pid)}); }
  std::optional<JobName> jobOf(pid_t pid) {
    auto kin = kinOf(pid);
    return kin ? std::optional(kin->job) : std::nullopt;
  }
  std::optional<Kinship> kinOf(pid_t pid) {
    return node::jobOf(processes.at(pid), roots, [&](pid_t p) -> std::optional<Process> {
      auto it = processes.find(p);
      return it == processes.end() ? std::nullopt : std::optional(it->second);
    });
  }
};

}  // namespace

TEST_CASE("a process belongs to its nearest ancestor's job", "[node]") {
  Machine m;
  m.add(10, 1);
  m.add(11, 10);
  m.add(12, 11);
  m.add(13, 12);
  m.joins(10, kA);
  m.joins(12, kB);
  CHECK(m.jobOf(10) == kA);
  CHECK(m.jobOf(11) == kA);
  CHECK(m.jobOf(12) == kB);
  CHECK(m.jobOf(13) == kB);
}

TEST_CASE("an orphan belongs to the one job of its session", "[node]") {
  Machine m;
  m.add(10, 1, 10);
  m.add(20, 1, 10);
  m.joins(10, kA);
  CHECK(m.jobOf(20) == kA);
  m.add(21, 1, 10).uid = 2000;  // not another user's
  CHECK_FALSE(m.jobOf(21));
  m.add(11, 1, 10);
  m.joins(11, kB);
  CHECK_FALSE(m.jobOf(20));  // rather a stranger than the wrong job
}

TEST_CASE("an orphan in a session of its own belongs to the one job of its cgroup", "[node]") {
  Machine m;
  m.add(10, 1, 10, "/slurm/job_7");
  m.add(20, 1, 20, "/slurm/job_7");
  m.add(30, 1, 30, "/");
  m.joins(10, kA);
  CHECK(m.jobOf(20) == kA);
  CHECK_FALSE(m.jobOf(30));
}

TEST_CASE("two programs that one shell started are no kin", "[node]") {
  Machine m;
  m.add(5, 1, 5, "/user/ssh");    // sshd
  m.add(10, 5, 10, "/user/ssh");  // the shell
  m.add(11, 10, 10, "/user/ssh");
  m.add(20, 10, 10, "/user/ssh");
  m.joins(11, kA);
  CHECK_FALSE(m.jobOf(20));
  m.add(21, 20, 10, "/user/ssh");
  CHECK_FALSE(m.jobOf(21));
  m.add(22, 10, 22, "/user/ssh");  // with setsid
  CHECK_FALSE(m.jobOf(22));
}

TEST_CASE("two programs of one service's script, or of two panes, are no kin", "[node]") {
  Machine m;
  m.add(10, 1, 10, "/service");  // the script, or the terminals' server
  m.add(11, 10, 10, "/service");
  m.add(20, 10, 10, "/service");
  m.add(30, 10, 30, "/service");
  m.joins(11, kA);
  CHECK_FALSE(m.jobOf(20));
  CHECK_FALSE(m.jobOf(30));
}

TEST_CASE("an orphan that a subreaper took is known by its session", "[node]") {
  Machine m;
  m.add(5, 1, 5);    // the subreaper
  m.add(10, 5, 10);  // leads the session
  m.add(11, 10, 10);
  m.add(20, 5, 10);   // its parent is gone
  m.add(21, 20, 10);  // and it has a child
  m.joins(11, kA);
  CHECK(m.jobOf(20) == kA);
  CHECK(m.jobOf(21) == kA);
}

TEST_CASE("what made a process a member is said", "[node]") {
  Machine m;
  m.add(10, 1, 10, "/slurm/job_7");
  m.add(11, 10, 10, "/slurm/job_7");
  m.add(20, 1, 10, "/slurm/job_7");
  m.add(30, 1, 30, "/slurm/job_7");
  m.joins(10, kA);
  CHECK(m.kinOf(10)->because == "joined");
  CHECK(m.kinOf(11)->because == "child");
  CHECK(m.kinOf(20)->because == "session");
  CHECK(m.kinOf(30)->because == "cgroup");
}

TEST_CASE("a stranger and a loop of parents belong to nobody", "[node]") {
  Machine m;
  m.add(10, 1);
  m.joins(10, kA);
  m.add(20, 21);
  m.add(21, 20);
  CHECK_FALSE(m.jobOf(20));
  m.add(10, 1, 99).identity.startTime = 99;  // the number was given to another
  CHECK_FALSE(m.jobOf(10));
}

TEST_CASE(
    "of all cgroups of a process the one with most steps counts, however long another's name is",
    "[node]") {
  auto deepest = [](const char* table) {
    std::istringstream in(table);
    return deepestCgroup(in);
  };
  CHECK(deepest("6:freezer:/slurm_n1/uid_0/job_1/step_0\n"
                "5:devices:/slurm_n1/uid_0/job_1/step_0/task_0\n"
                "4:memory:/engine/b62cb836a7d5d98f4076351ea3909c99b62cb836a7d5d98f4076351\n"
                "0::/\n") == "/slurm_n1/uid_0/job_1/step_0/task_0");
  CHECK(deepest("0::/user.slice\n") == "/user.slice");
  CHECK(deepest("1:name=systemd:/a:b/c\n0::/\n") == "/a:b/c");
  CHECK(deepest("0::/\n") == "/");
  CHECK(deepest("") == "/");
}
