// Catch2's main, compiled once for every test executable. Each case is also written to a file under
// $TIMESLICE_TEST_REPORT, so that tools/test counts cases and not executables.
#define CATCH_CONFIG_MAIN
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

class CaseReport : public Catch::TestEventListenerBase {
public:
  using TestEventListenerBase::TestEventListenerBase;

  void testRunStarting(const Catch::TestRunInfo&) override {
    const char* folder = std::getenv("TIMESLICE_TEST_REPORT");  // NOLINT(concurrency-mt-unsafe)
    if (folder == nullptr) return;
    std::filesystem::path exe = std::filesystem::read_symlink("/proc/self/exe");
    file_.open(std::filesystem::path(folder) /
               (exe.filename().string() + "." + std::to_string(::getpid())));
    file_ << "exe\t" << exe.string() << std::endl;
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (!file_.is_open()) return;
    file_ << resultOf(stats.totals.assertions) << '\t' << stats.testInfo.name
          << std::endl;  // flushed: a later crash must not lose it
  }

private:
  // A case that returns before it has asserted anything has found that it cannot run here.
  static const char* resultOf(const Catch::Counts& assertions) {
    if (assertions.total() == 0) return "skipped";
    return assertions.allOk() ? "passed" : "failed";
  }

  std::ofstream file_;
};

}  // namespace

CATCH_REGISTER_LISTENER(CaseReport)
