#include "node/host_memory.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "temp_dir.h"

using namespace ts;
using namespace ts::node;
using ts::test::TempDir;

namespace {

// A tree like /proc and /sys/fs/cgroup.
struct Tree {
  TempDir dir;
  void write(const std::string& path, const std::string& text) {
    std::filesystem::path full = dir.path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
};

const JobName kA{"rl", "a"};

}  // namespace

TEST_CASE("MemAvailable is read in bytes", "[node]") {
  Tree t;
  t.write("/proc/meminfo",
          "MemTotal:  100 kB\nMemFree:  2 kB\nMemAvailable:  40 kB\nBuffers: 1 kB\n");
  CHECK(memAvailable(t.dir.path()) == 40 * 1024);
  CHECK(memAvailable() > 0);
}

TEST_CASE("FF-C2: every ancestor with a limit counts, less what cannot be dropped", "[node]") {
  Tree t;
  t.write("/proc/7/cgroup", "0::/slurm/job_1/step_0\n");
  t.write("/sys/fs/cgroup/slurm/job_1/memory.max", "1000\n");
  t.write("/sys/fs/cgroup/slurm/job_1/memory.current", "700\n");
  t.write("/sys/fs/cgroup/slurm/job_1/memory.stat", "anon 300\ninactive_file 200\nshmem 200\n");
  t.write("/sys/fs/cgroup/slurm/memory.max", "max\n");
  t.write("/sys/fs/cgroup/slurm/job_1/step_0/memory.max", "100\n");
  t.write("/sys/fs/cgroup/slurm/job_1/step_0/memory.current", "300\n");
  auto limits = cgroupLimits(7, kA, t.dir.path());
  REQUIRE(limits.size() == 2);
  CHECK(limits[0].room == 0);  // over its limit
  CHECK(limits[1].name == "cgroup /slurm/job_1");
  CHECK(limits[1].room == 500);
  CHECK(limits[1].jobs == std::vector<JobName>{kA});
}

TEST_CASE("version 1 of cgroups is read where it has the memory controller", "[node]") {
  Tree t;
  t.write("/proc/7/cgroup", "9:cpu,cpuacct:/x\n4:memory:/slurm/job_1\n0::/\n");
  t.write("/sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "1000\n");
  t.write("/sys/fs/cgroup/memory/slurm/job_1/memory.usage_in_bytes", "400\n");
  t.write("/sys/fs/cgroup/memory/slurm/job_1/memory.stat", "cache 9\ntotal_inactive_file 100\n");
  t.write("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "9223372036854771712\n");
  auto limits = cgroupLimits(7, kA, t.dir.path());
  REQUIRE(limits.size() == 1);
  CHECK(limits[0].room == 700);
}

TEST_CASE("a process that is gone has no limits", "[node]") {
  Tree t;
  CHECK(cgroupLimits(7, kA, t.dir.path()).empty());
}
