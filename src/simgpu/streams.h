// Streams: work in order, each on a thread of its own; and the default stream that orders itself
// with all that do not refuse.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/gate.h"

namespace simgpu {

struct Context;
struct Stream;

// A point in a stream: done when everything up to it is done.
struct Ticket {
  std::shared_ptr<Stream> stream;  // null: done
  std::uint64_t number = 0;
};

struct Work {
  std::uint64_t number;
  std::vector<Ticket> after;
  std::function<void()> run;
};

struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  bool isDefault = false;
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  // When the work so far ended, as modelled: a thread that wakes up late costs the stream no time.
  std::atomic<std::uint64_t> timeNs = 0;
  std::deque<Work> queue;
  std::vector<Ticket> waitFor;  // of cuStreamWaitEvent: for the next work
  bool hasThread = false;
  bool closed = false;  // the thread ends when the queue is empty
};

class Streams {
public:
  std::shared_ptr<Stream> create(Context& context, unsigned flags, bool isDefault);
  void close(const std::shared_ptr<Stream>& stream);

  Ticket submit(const std::shared_ptr<Stream>& stream, std::function<void()> run);
  // In its turn, on the calling thread; back when done.
  void runHere(const std::shared_ptr<Stream>& stream, const std::function<void()>& run);
  void waitFor(const std::shared_ptr<Stream>& stream, const Ticket& ticket);

  Ticket last(const std::shared_ptr<Stream>& stream);
  bool done(const Ticket& ticket);
  void await(const Ticket& ticket);
  void awaitAllOf(const Context& context);
  bool idle(Until until);  // all work of all streams is done

private:
  std::vector<Ticket> orderedAfter(Stream& stream);
  bool isDone(const Ticket& ticket) const;
  bool mayRun(const Stream& stream, const Work& work) const;
  bool isIdle() const;
  void serve(const std::shared_ptr<Stream>& stream);
  void finish(std::unique_lock<std::mutex>& lock, Stream& stream, const Work& work);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Stream>> all_;
};

}  // namespace simgpu
