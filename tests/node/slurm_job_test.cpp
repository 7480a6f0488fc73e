#include "node/slurm_job.h"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace ts::node;

TEST_CASE("a process's Slurm job stands in its cgroup, of either version", "[node]") {
  CHECK(slurmJobIn("/slurm/uid_1000/job_17/step_0/task_0") == 17);
  CHECK(slurmJobIn("/slurm_n1/uid_0/job_4294967290/step_batch") == 4294967290);
  CHECK(slurmJobIn("/system.slice/slurmstepd.scope/job_18/step_0/user/task_1") == 18);
  for (auto other :
       {"/", "", "/user.slice/job_17", "/slurm/uid_1000", "/slurm/job_", "/slurm/job_x"})
    CHECK_FALSE(slurmJobIn(other));
}

TEST_CASE("a slurmstepd shows whose it is", "[node]") {
  CHECK(slurmJobInTitle("slurmstepd: [17.0]") == 17);
  CHECK(slurmJobInTitle("slurmstepd: [18.batch]") == 18);
  for (auto other : {"", "slurmstepd", "bash: [17.0]", "slurmstepd: [x]"})
    CHECK_FALSE(slurmJobInTitle(other));
}

TEST_CASE("a process that comes from no slurmstepd and has no such cgroup is of no Slurm job",
          "[node]") {
  auto self = readProcess(::getpid());
  REQUIRE(self);
  self->cgroup = "/";
  CHECK_FALSE(slurmJobOf(*self));
  self->cgroup = "/slurm/uid_0/job_3/step_0";
  CHECK(slurmJobOf(*self) == 3);
}
