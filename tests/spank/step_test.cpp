// What a step is called, whatever its user has put into its environment.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "support/fake_node.h"
#include "support/temp_dir.h"

extern "C" {
#include "step.h"
}

using namespace ts::test;

namespace {

constexpr std::uint32_t kJob = 1017;
std::map<std::string, std::string> environment;

}  // namespace

// Slurm's, for a step of one task.
extern "C" {
spank_err_t spank_get_item(spank_t, spank_item_t item, ...) {
  va_list args;
  va_start(args, item);
  auto* out = va_arg(args, std::uint32_t*);
  va_end(args);
  *out = item == S_JOB_ID ? kJob : item == S_JOB_TOTAL_TASK_COUNT ? 1 : 0;
  return spank_err_t(ESPANK_SUCCESS);
}

spank_err_t spank_getenv(spank_t, const char* name, char* out, int bytes) {
  auto it = environment.find(name);
  if (it == environment.end()) return spank_err_t(ESPANK_ENV_NOEXIST);
  std::snprintf(out, std::size_t(bytes), "%s", it->second.c_str());
  return spank_err_t(ESPANK_SUCCESS);
}

spank_err_t spank_setenv(spank_t, const char*, const char*, int) {
  return spank_err_t(ESPANK_SUCCESS);
}

spank_err_t spank_unsetenv(spank_t, const char*) {
  return spank_err_t(ESPANK_SUCCESS);
}

void slurm_error(const char*, ...) {}

const char* tsp_node_name() {
  return "n1";
}
}

namespace {

// As the node is asked about it.
std::string nameOf(std::map<std::string, std::string> variables) {
  TempDir dir;
  auto socket = dir / "node.sock";
  FakeNode node(socket);
  std::snprintf(tsp_plugin.words.socket, sizeof tsp_plugin.words.socket, "%s", socket.c_str());
  tsp_plugin.words.timeout_ms = 60000;
  environment = std::move(variables);
  environment["TIMESLICE_GROUP"] = "rl";
  tsp_step_user_init(nullptr);
  return node.waitFor(TSL_STEP_BEGIN).u.step.job;
}

std::string nameOfPart(const std::string& first) {
  return nameOf({{"SLURM_JOB_ID", first}, {"SLURM_HET_SIZE", "3"}, {"SLURM_NTASKS", "3"}});
}

}  // namespace

TEST_CASE("a step is named after its job, and after its run", "[spank]") {
  CHECK(nameOf({{"SLURM_JOB_ID", "1017"}}) == "1017.0");
  CHECK(nameOf({{"SLURM_JOB_ID", "1017"}, {"SLURM_RESTART_COUNT", "2"}}) == "1017-2.0");
}

TEST_CASE("FF-F1: no step takes another job's name from its user's environment", "[spank]") {
  CHECK(nameOf({{"SLURM_JOB_ID", "1016"}}) == "1017.0");
  for (const char* forged : {"1018", "889", "17", "x", ""}) CHECK(nameOfPart(forged) == "1017.0");
}

TEST_CASE("the parts of a heterogeneous job are named after the first", "[spank]") {
  CHECK(nameOfPart("1016") == "1016.0");
  CHECK(nameOfPart("890") == "890.0");
}
