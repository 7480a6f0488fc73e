// What the client's tests share: a fake node in a directory of its own, and an environment without
// us.
#pragma once

#include <timeslice/timeslice.h>

#include <cstdlib>
#include <string>

#include "catch2/catch.hpp"
#include "support/fake_node.h"
#include "support/temp_dir.h"

namespace ts::test {

// Removes what would decide instead of the test, and what a test has set, when it is over.
class CleanEnvironment {
public:
  CleanEnvironment() { clear(); }
  ~CleanEnvironment() { clear(); }
  CleanEnvironment(const CleanEnvironment&) = delete;
  CleanEnvironment& operator=(const CleanEnvironment&) = delete;
  void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

private:
  static void clear() {
    for (const char* name : {"TIMESLICE_SOCKET", "TIMESLICE_GROUP", "TIMESLICE_JOB",
                             "TIMESLICE_DEVICES", "TIMESLICE_BACKEND", "TIMESLICE_GANG",
                             "TIMESLICE_PRIORITY", "TIMESLICE_REQUIRED", "CUDA_VISIBLE_DEVICES"}) {
      ::unsetenv(name);
    }
  }
};

struct House {
  CleanEnvironment environment;
  TempDir dir;
  std::string socket = dir / "node.sock";
  FakeNode node{socket};

  ts_join_options options() const {
    ts_join_options options{};
    options.size = sizeof options;
    options.socket = socket.c_str();
    options.group = "rl";
    return options;
  }
};

// A handle that is left at the end of the test.
class Joined {
public:
  explicit Joined(const ts_join_options& options) { REQUIRE(ts_join(&options, &handle_) == TS_OK); }
  explicit Joined(const House& house) : Joined(house.options()) {}
  ~Joined() { leave(); }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

  void leave() {
    ts_leave(handle_);
    handle_ = nullptr;
  }
  operator ts_client*() const { return handle_; }
  ts_state state() const {
    ts_state state{};
    state.size = sizeof state;
    REQUIRE(ts_get_state(handle_, &state) == TS_OK);
    return state;
  }

private:
  ts_client* handle_ = nullptr;
};

inline ts_acquire_options within(std::int64_t deadlineMs) {
  ts_acquire_options options{};
  options.size = sizeof options;
  options.deadline_ms = deadlineMs;
  return options;
}

// Waits, as a loop does, until ts_fd() is readable.
void waitReadable(ts_client* client);

inline bool errorSays(const std::string& words) {
  INFO("last error: " << ts_last_error());
  return std::string(ts_last_error()).find(words) != std::string::npos;
}

}  // namespace ts::test
