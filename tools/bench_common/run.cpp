#include "bench_common/run.h"

#include <cstdio>
#include <exception>

#include "bench_common/process.h"

namespace ts::bench {

int runBench(CLI::App& app, int argc, char** argv, const std::function<void()>& measure) {
  constexpr int kUsage = 2;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  prepareProcess();
  catchSignals();
  try {
    measure();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
    return signalled() != 0 ? 128 + signalled() : 1;
  }
  return 0;
}

}  // namespace ts::bench
