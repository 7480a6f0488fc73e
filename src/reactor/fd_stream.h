// A byte stream over a non-blocking socket or pipe, for few system calls per message.
#pragma once

#include <kj/async-io.h>

#include <array>
#include <vector>

#include "reactor/libevent_port.h"
#include "reactor/owned_fd.h"

namespace ts {

// Per message one read and one write, and no epoll_ctl(): readiness is registered once and told
// until it is read, so that a short read needs no second look; a small read takes what follows
// along into a buffer; small writes of one turn leave together before the loop sleeps.
class FdStream final : public kj::AsyncIoStream, private Flushable {
public:
  FdStream(LibeventPort& port, int fd, kj::uint flags);
  ~FdStream() noexcept(false);
  KJ_DISALLOW_COPY(FdStream);

  kj::Promise<size_t> tryRead(void* buffer, size_t minBytes, size_t maxBytes) override;
  kj::Promise<void> write(const void* buffer, size_t size) override;
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override;
  // Resolves when nobody can take what is written any more (hang-up or error, not a half-close).
  kj::Promise<void> whenWriteDisconnected() override;

  void shutdownWrite() override;
  void abortRead() override;
  void getsockopt(int level, int option, void* value, kj::uint* length) override;
  void setsockopt(int level, int option, const void* value, kj::uint length) override;
  kj::Maybe<int> getFd() const override { return fd_.get(); }

  // Nothing is read while the peer does not read: whoever only asks costs no memory. Not for two
  // sides that both ask, for each would wait for the other. Off at first.
  void readOnlyWhileRead(bool on) { readsYield_ = on; }

private:
  using Pieces = kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>>;

  kj::Promise<size_t> readSome(kj::byte* to, size_t min, size_t max, size_t done);
  size_t takeBuffered(kj::byte* to, size_t max);
  // Bytes for `to`, 0 at the end; what came beyond is kept. Negative: would block.
  ssize_t readOnce(kj::byte* to, size_t max);
  kj::Promise<void> whenReadable();
  void watchReads();
  static void onReadable(int, short, void* self);

  kj::Promise<void> writeAll(kj::ArrayPtr<const kj::byte> first, Pieces rest);
  // Bytes that went, negative: would block.
  ssize_t send(const struct iovec* pieces, size_t count);
  kj::Promise<void> whenWritable();
  kj::Promise<void> whenFlushed();
  bool isStuck() const { return blocked_ || waitingWrites_ > 0; }
  bool wakeReader();
  void finishShutdown();
  bool flush() override;
  static void onWritable(int, short, void* self);
  void checkDisconnected();
  static void onHangUp(int, short, void* self);

  static constexpr size_t kInbox = 4096;
  static constexpr size_t kOutbox = 64 << 10;  // a write that would exceed it waits for room

  LibeventPort& port_;
  OwnedFd fd_;

  OwnEvent readEvent_;    // made when a read first has to wait
  bool readable_ = true;  // until a read says otherwise
  bool watched_ = false;  // readEvent_ is added: not while nobody reads what is there
  kj::Own<kj::PromiseFulfiller<void>> reader_;
  std::array<kj::byte, kInbox> inbox_;
  size_t inboxBegin_ = 0;
  size_t inboxEnd_ = 0;

  OwnEvent writeEvent_;
  bool blocked_ = false;  // the kernel took no more; writeEvent_ is armed
  bool isSocket_ = true;  // until a send says otherwise
  bool shutdownAsked_ = false;
  kj::Own<kj::PromiseFulfiller<void>> writer_;
  std::vector<kj::byte> outbox_;
  unsigned waitingWrites_ = 0;  // of those that are too large for the outbox
  bool readsYield_ = false;
  kj::Own<kj::PromiseFulfiller<void>> yielding_;  // a read that waits for the peer to read
  kj::Maybe<kj::Exception> broken_;               // met by a flush: the next write reports it

  kj::Maybe<kj::ForkedPromise<void>> disconnected_;
  kj::AutoCloseFd hangUpFd_;  // a copy: libevent takes one kind of trigger for each descriptor
  OwnEvent hangUpEvent_;
  kj::Own<kj::PromiseFulfiller<void>> disconnect_;
};

}  // namespace ts
