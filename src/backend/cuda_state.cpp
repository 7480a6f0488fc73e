#include "backend/cuda_state.h"

#include <condition_variable>
#include <system_error>
#include <thread>

namespace ts::cuda {
namespace {

// A process that never called cuInit may be reported as running; it has no restore thread.
bool hasContext(const Driver& driver, pid_t pid) {
  if (driver.getRestoreThreadId == nullptr) return true;
  int tid = 0;
  Result result = driver.getRestoreThreadId(pid, &tid);
  return result != Result::NotInitialized && result != Result::InvalidValue;
}

StateRead known(TargetState state) {
  return {.state = state, .answered = true};
}

StateRead ask(const Driver& driver, pid_t pid) {
  ProcessState state{};
  Result result = driver.getState(pid, &state);
  if (result == Result::NotInitialized) return known(TargetState::NoContext);
  if (result != Result::Success)
    return {.detail = "cuCheckpointProcessGetState: " + driver.nameOf(result), .answered = true};
  switch (state) {
    case ProcessState::Running:
      return known(hasContext(driver, pid) ? TargetState::Running : TargetState::NoContext);
    case ProcessState::Locked:
      return known(TargetState::Locked);
    case ProcessState::Checkpointed:
      return known(TargetState::Saved);
    case ProcessState::Failed:
      return known(TargetState::Failed);
  }
  return {.detail = "unknown state " + std::to_string(static_cast<int>(state)),
          .answered = true,
          .lasting = true};
}

}  // namespace

struct StateReader::Query {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  StateRead result;

  void finish(StateRead read) {
    {
      std::lock_guard lock(mutex);
      result = std::move(read);
      done = true;
    }
    changed.notify_all();
  }
};

StateRead StateReader::read(pid_t pid, std::chrono::milliseconds patience) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  StateRead silent{.detail = "the driver has not answered cuCheckpointProcessGetState for " +
                             std::to_string(patience.count()) + " ms"};
  auto finished = [&](Query& query, std::unique_lock<std::mutex>& lock) {
    return query.changed.wait_until(lock, deadline, [&] { return query.done; });
  };
  // An answer to an older question may be older than what happened since, so it is not taken.
  while (std::shared_ptr<Query> older = underWay(pid)) {
    std::unique_lock lock(older->mutex);
    if (!finished(*older, lock)) return silent;
  }
  std::shared_ptr<Query> query = start(pid);
  std::unique_lock lock(query->mutex);
  return finished(*query, lock) ? query->result : silent;
}

std::shared_ptr<StateReader::Query> StateReader::underWay(pid_t pid) {
  std::lock_guard lock(mutex_);
  std::erase_if(queries_, [](const auto& entry) {
    std::lock_guard guard(entry.second->mutex);
    return entry.second->done;
  });
  auto it = queries_.find(pid);
  return it == queries_.end() ? nullptr : it->second;
}

std::shared_ptr<StateReader::Query> StateReader::start(pid_t pid) {
  auto query = std::make_shared<Query>();
  try {
    std::thread([query, driver = driver_, pid] { query->finish(ask(*driver, pid)); }).detach();
  } catch (const std::system_error& error) {  // out of threads
    query->finish({.detail = std::string("cannot ask the driver: ") + error.what()});
  }
  std::lock_guard lock(mutex_);
  queries_[pid] = query;
  return query;
}

}  // namespace ts::cuda
