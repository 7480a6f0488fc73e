// libtimeslice for C++17: a Slice is held for as long as it lives. Header-only, over timeslice.h.
//
//   ts::Client client;                        // everything from TIMESLICE_* in the environment
//   {
//     ts::Slice slice(client, "train");       // blocks until the turn has come
//     ...                                     // touch the GPU
//   }                                         // yielded; never touch the GPU after this
//
// Threads, fork and being outside are as timeslice.h says. Failures throw ts::Error.
#ifndef TIMESLICE_TIMESLICE_HPP
#define TIMESLICE_TIMESLICE_HPP

#include <timeslice/timeslice.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace ts {

// What a call answered instead of TS_OK. what() is the sentence of ts_last_error().
class Error : public std::runtime_error {
public:
  explicit Error(ts_status status) : Error(status, ts_last_error()) {}
  Error(ts_status status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  ts_status status() const noexcept { return status_; }

private:
  ts_status status_;
};

// As ts_join_options; what is empty or 0 comes from the environment.
struct JoinOptions {
  std::string socket, group, job, devices, backend;
  std::uint32_t gang = 0;
  std::int32_t priority = 0;
  std::chrono::milliseconds deadline{0};  // for the join; 0: 10 s
};

// This process as a participant; leaves at the end of its life, and yields if need be. exit() ends
// no local object: a process that calls it inside has died, see timeslice.h.
class Client {
public:
  Client() : Client(JoinOptions{}) {}
  explicit Client(const JoinOptions& options) {
    ts_join_options raw{};
    raw.size = sizeof raw;
    raw.socket = orNull(options.socket);
    raw.group = orNull(options.group);
    raw.job = orNull(options.job);
    raw.devices = orNull(options.devices);
    raw.backend = orNull(options.backend);
    raw.gang = options.gang;
    raw.priority = options.priority;
    raw.deadline_ms = options.deadline.count();
    check(ts_join(&raw, &handle_));
  }
  ~Client() { ts_leave(handle_); }
  Client(Client&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // True when others wait and the hold limit is over: end the slice at the next good point.
  bool shouldYield() noexcept { return ts_should_yield(handle_) != 0; }

  // Gives up a waiting acquire; from any thread or a signal handler.
  void cancel() noexcept { static_cast<void>(!ts_cancel(handle_)); }

  // False outside: every call succeeds and does nothing.
  bool active() const { return state().active != 0; }
  ts_state state() const {
    ts_state state{};
    state.size = sizeof state;
    check(ts_get_state(handle_, &state));
    return state;
  }
  ts_client* handle() const noexcept { return handle_; }

  static void check(ts_status status) {
    if (status != TS_OK) throw Error(status);
  }

private:
  static const char* orNull(const std::string& text) {
    return text.empty() ? nullptr : text.c_str();
  }
  ts_client* handle_ = nullptr;
};

// From grant to yield. A second one inside the first costs nothing and waits for nobody.
class Slice {
public:
  // Blocks until the turn has come, the deadline is over, or ts_cancel() was called.
  // `phase` is a label for tsctl why, at most 31 bytes; `deadline` counts from now, 0: none.
  explicit Slice(Client& client, const std::string& phase = {},
                 std::chrono::milliseconds deadline = {})
      : handle_(client.handle()) {
    ts_acquire_options raw{};
    raw.size = sizeof raw;
    raw.deadline_ms = deadline.count();
    raw.phase = phase.c_str();
    grant_.size = sizeof grant_;
    Client::check(ts_acquire(handle_, &raw, &grant_));
  }

  // Nothing when the turn is not free now.
  static std::optional<Slice> tryNow(Client& client) {
    ts_grant grant{};
    grant.size = sizeof grant;
    const ts_status status = ts_try_acquire(client.handle(), &grant);
    if (status == TS_ERR_BUSY) return std::nullopt;
    Client::check(status);
    return Slice(client.handle(), grant);
  }

  // A yield that fails leaves nothing to do for who unwinds; call yield() to hear of it.
  ~Slice() {
    if (handle_ != nullptr) static_cast<void>(!ts_yield(handle_));
  }
  Slice(Slice&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), grant_(other.grant_) {}
  Slice& operator=(Slice&&) = delete;
  Slice(const Slice&) = delete;
  Slice& operator=(const Slice&) = delete;

  // Ends the slice before the end of its life; the second time throws NOT_ENTERED.
  void yield() {
    if (handle_ == nullptr)
      throw Error(TS_ERR_NOT_ENTERED, "yield: NOT_ENTERED: this Slice has yielded already");
    Client::check(ts_yield(std::exchange(handle_, nullptr)));
  }

  const ts_grant& grant() const noexcept { return grant_; }

private:
  Slice(ts_client* handle, const ts_grant& grant) : handle_(handle), grant_(grant) {}

  ts_client* handle_ = nullptr;
  ts_grant grant_{};
};

}  // namespace ts

#endif
