#include "simgpu/streams.h"

#include <algorithm>

#include "simgpu/cuda_abi.h"
#include "simgpu/quiet_thread.h"

namespace simgpu {

std::shared_ptr<Stream> Streams::create(Context& context, unsigned flags, bool isDefault) {
  auto stream = std::make_shared<Stream>();
  stream->context = &context;
  stream->flags = flags;
  stream->isDefault = isDefault;
  std::lock_guard lock(mutex_);
  all_.push_back(stream);
  return stream;
}

void Streams::close(const std::shared_ptr<Stream>& stream) {
  std::lock_guard lock(mutex_);
  stream->closed = true;
  if (!stream->hasThread) std::erase(all_, stream);  // else its thread does, after its last work
  changed_.notify_all();
}

// The default stream starts after all that was submitted to the blocking streams of its context,
// and they start after what was submitted to it.
std::vector<Ticket> Streams::orderedAfter(Stream& stream) {
  std::vector<Ticket> after = std::move(stream.waitFor);
  stream.waitFor.clear();
  if (stream.flags & CU_STREAM_NON_BLOCKING) return after;
  for (const auto& other : all_) {
    bool related = other->context == stream.context && other.get() != &stream &&
                   !(other->flags & CU_STREAM_NON_BLOCKING) &&
                   (stream.isDefault || other->isDefault);
    if (related && other->completed < other->submitted) after.push_back({other, other->submitted});
  }
  return after;
}

Ticket Streams::submit(const std::shared_ptr<Stream>& stream, std::function<void()> run) {
  std::lock_guard lock(mutex_);
  std::vector<Ticket> after = orderedAfter(*stream);
  std::uint64_t number = ++stream->submitted;
  stream->queue.push_back({number, std::move(after), std::move(run)});
  if (!stream->hasThread) quietThread([this, stream] { serve(stream); }).detach();
  stream->hasThread = true;
  changed_.notify_all();
  return {stream, number};
}

void Streams::runHere(const std::shared_ptr<Stream>& stream, const std::function<void()>& run) {
  std::unique_lock lock(mutex_);
  std::vector<Ticket> after = orderedAfter(*stream);
  Work work{++stream->submitted, std::move(after), run};
  changed_.wait(lock, [&] { return mayRun(*stream, work); });
  finish(lock, *stream, work);
}

void Streams::serve(const std::shared_ptr<Stream>& stream) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      return stream->queue.empty() ? stream->closed : mayRun(*stream, stream->queue.front());
    });
    if (stream->queue.empty()) {
      std::erase(all_, stream);
      return;
    }
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    finish(lock, *stream, work);
  }
}

void Streams::finish(std::unique_lock<std::mutex>& lock, Stream& stream, const Work& work) {
  for (const Ticket& t : work.after)
    stream.timeNs = std::max(stream.timeNs.load(), t.stream->timeNs.load());
  lock.unlock();
  work.run();
  lock.lock();
  stream.completed = work.number;
  changed_.notify_all();
}

void Streams::waitFor(const std::shared_ptr<Stream>& stream, const Ticket& ticket) {
  std::lock_guard lock(mutex_);
  if (!isDone(ticket)) stream->waitFor.push_back(ticket);
}

bool Streams::isDone(const Ticket& ticket) const {
  return ticket.stream == nullptr || ticket.stream->completed >= ticket.number;
}

bool Streams::mayRun(const Stream& stream, const Work& work) const {
  return stream.completed + 1 == work.number &&
         std::ranges::all_of(work.after, [this](const Ticket& t) { return isDone(t); });
}

bool Streams::isIdle() const {
  return std::ranges::all_of(all_, [](const auto& s) { return s->completed == s->submitted; });
}

Ticket Streams::last(const std::shared_ptr<Stream>& stream) {
  std::lock_guard lock(mutex_);
  return {stream, stream->submitted};
}

bool Streams::done(const Ticket& ticket) {
  std::lock_guard lock(mutex_);
  return isDone(ticket);
}

void Streams::await(const Ticket& ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return isDone(ticket); });
}

void Streams::awaitAllOf(const Context& context) {
  std::vector<Ticket> tickets;
  {
    std::lock_guard lock(mutex_);
    for (const auto& stream : all_)
      if (stream->context == &context) tickets.push_back({stream, stream->submitted});
  }
  for (const Ticket& ticket : tickets) await(ticket);
}

bool Streams::idle(Until until) {
  std::unique_lock lock(mutex_);
  if (until) return changed_.wait_until(lock, *until, [this] { return isIdle(); });
  changed_.wait(lock, [this] { return isIdle(); });
  return true;
}

}  // namespace simgpu
