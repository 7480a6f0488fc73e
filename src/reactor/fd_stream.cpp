#include "reactor/fd_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ts {

FdStream::FdStream(LibeventPort& port, int fd, kj::uint flags) : port_(port), fd_(fd, flags) {}

FdStream::~FdStream() noexcept(false) {
  // What was promised as written goes out, as far as the kernel takes it without waiting.
  if (!outbox_.empty() && !blocked_) flush();
  port_.forget(*this);
}

// --- reading -----------------------------------------------------------------------------------

kj::Promise<size_t> FdStream::tryRead(void* buffer, size_t minBytes, size_t maxBytes) {
  if (readsYield_ && isStuck()) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    yielding_ = kj::mv(paf.fulfiller);
    return paf.promise.then(
        [this, buffer, minBytes, maxBytes] { return tryRead(buffer, minBytes, maxBytes); });
  }
  auto* to = static_cast<kj::byte*>(buffer);
  size_t have = takeBuffered(to, maxBytes);
  if (have >= minBytes) return have;
  return readSome(to + have, minBytes - have, maxBytes - have, have);
}

size_t FdStream::takeBuffered(kj::byte* to, size_t max) {
  size_t n = std::min(max, inboxEnd_ - inboxBegin_);
  if (n > 0) std::memcpy(to, inbox_.data() + inboxBegin_, n);
  inboxBegin_ += n;
  return n;
}

kj::Promise<size_t> FdStream::readSome(kj::byte* to, size_t min, size_t max, size_t done) {
  while (true) {
    ssize_t n = readable_ ? readOnce(to, max) : -1;
    if (n < 0) {
      return whenReadable().then(
          [this, to, min, max, done] { return readSome(to, min, max, done); });
    }
    if (n == 0) return done;  // EOF
    done += size_t(n);
    if (size_t(n) >= min) return done;
    to += n;
    min -= size_t(n);
    max -= size_t(n);
  }
}

ssize_t FdStream::readOnce(kj::byte* to, size_t max) {
  size_t spare = max < kInbox ? kInbox : 0;
  iovec iov[2] = {{to, max}, {inbox_.data(), spare}};
  ssize_t n;
  KJ_NONBLOCKING_SYSCALL(n = ::readv(fd_.get(), iov, spare > 0 ? 2 : 1));
  // Short: most likely there is no more. If there is, or the end, the loop is told at its next look.
  if (n < 0 || (n > 0 && size_t(n) < max + spare)) readable_ = false;
  if (n <= 0) return n;
  size_t own = std::min(size_t(n), max);
  inboxBegin_ = 0;
  inboxEnd_ = size_t(n) - own;
  return ssize_t(own);
}

kj::Promise<void> FdStream::whenReadable() {
  auto paf = kj::newPromiseAndFulfiller<void>();
  reader_ = kj::mv(paf.fulfiller);
  if (!watched_) watchReads();
  return kj::mv(paf.promise);
}

void FdStream::watchReads() {
  if (readEvent_ == nullptr) {
    readEvent_.reset(
        event_new(port_.base(), fd_.get(), EV_READ | EV_PERSIST, &FdStream::onReadable, this));
    KJ_REQUIRE(readEvent_ != nullptr, "event_new failed", fd_.get());
  }
  KJ_REQUIRE(event_add(readEvent_.get(), nullptr) == 0, "event_add failed", fd_.get());
  watched_ = true;
}

void FdStream::onReadable(int, short, void* self) {
  auto& stream = *static_cast<FdStream*>(self);
  stream.port_.guard([&] {
    stream.readable_ = true;
    if (stream.reader_.get() != nullptr && stream.reader_->isWaiting()) {
      stream.reader_->fulfill();
      return;
    }
    event_del(stream.readEvent_.get());  // it would be told in each turn
    stream.watched_ = false;
  });
}

void FdStream::abortRead() {
  KJ_SYSCALL(::shutdown(fd_.get(), SHUT_RD));
}

// --- writing -----------------------------------------------------------------------------------

kj::Promise<void> FdStream::write(const void* buffer, size_t size) {
  auto piece = kj::arrayPtr(static_cast<const kj::byte*>(buffer), size);
  if (outbox_.size() + size <= kOutbox) return write(kj::arrayPtr(&piece, 1));
  return writeAll(piece, nullptr);
}

kj::Promise<void> FdStream::write(Pieces pieces) {
  KJ_IF_MAYBE (e, broken_) {
    return kj::cp(*e);
  }
  size_t size = 0;
  for (auto& piece : pieces) size += piece.size();
  if (size == 0) return kj::READY_NOW;
  if (outbox_.size() + size > kOutbox) {
    return writeAll(pieces[0], pieces.slice(1, pieces.size()));
  }
  for (auto& piece : pieces) outbox_.insert(outbox_.end(), piece.begin(), piece.end());
  if (!blocked_) port_.flushLater(*this);
  return kj::READY_NOW;
}

kj::Promise<void> FdStream::writeAll(kj::ArrayPtr<const kj::byte> first, Pieces rest) {
  KJ_IF_MAYBE (e, broken_) {
    return kj::cp(*e);
  }
  if (!outbox_.empty()) {
    if (!blocked_) flush();
    if (!outbox_.empty()) {
      return whenFlushed().then([this, first, rest] { return writeAll(first, rest); });
    }
  }
  while (true) {
    constexpr size_t kMaxIov = 64;
    iovec iov[kMaxIov];
    size_t count = 0;
    iov[count++] = {const_cast<kj::byte*>(first.begin()), first.size()};
    for (auto& piece : rest) {
      if (count == kMaxIov) break;
      iov[count++] = {const_cast<kj::byte*>(piece.begin()), piece.size()};
    }
    ssize_t n = send(iov, count);
    if (n < 0) {
      return whenWritable().then([this, first, rest] { return writeAll(first, rest); });
    }
    size_t sent = size_t(n);
    while (sent >= first.size()) {
      sent -= first.size();
      if (rest.size() == 0) return kj::READY_NOW;
      first = rest[0];
      rest = rest.slice(1, rest.size());
    }
    first = first.slice(sent, first.size());
  }
}

ssize_t FdStream::send(const iovec* pieces, size_t count) {
  ssize_t n;
  if (isSocket_) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces);
    message.msg_iovlen = count;
    do {
      n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n >= 0 || errno == EAGAIN || errno == EWOULDBLOCK) return n;
    if (errno != ENOTSOCK) KJ_FAIL_SYSCALL("sendmsg", errno);
    isSocket_ = false;
  }
  // A pipe: whoever writes to pipes ignores SIGPIPE.
  KJ_NONBLOCKING_SYSCALL(n = ::writev(fd_.get(), pieces, int(count)));
  return n;
}

bool FdStream::flush() {
  bool fulfilled = false;
  auto failure = kj::runCatchingExceptions([&] {
    iovec all{outbox_.data(), outbox_.size()};
    ssize_t n = outbox_.empty() ? 0 : send(&all, 1);
    if (n > 0) outbox_.erase(outbox_.begin(), outbox_.begin() + n);
  });
  KJ_IF_MAYBE (e, failure) {
    outbox_.clear();
    broken_ = kj::mv(*e);
  }
  if (!outbox_.empty()) {
    blocked_ = true;
    if (writeEvent_ == nullptr) {
      writeEvent_.reset(
          event_new(port_.base(), fd_.get(), EV_WRITE, &FdStream::onWritable, this));
    }
    KJ_REQUIRE(writeEvent_ != nullptr && event_add(writeEvent_.get(), nullptr) == 0,
               "cannot wait for room to write", fd_.get());
    return false;
  }
  if (shutdownAsked_) finishShutdown();
  if (writer_.get() != nullptr && writer_->isWaiting()) {
    writer_->fulfill();
    fulfilled = true;
  }
  return wakeReader() || fulfilled;
}

bool FdStream::wakeReader() {
  if (isStuck() || yielding_.get() == nullptr || !yielding_->isWaiting()) return false;
  yielding_->fulfill();
  return true;
}

kj::Promise<void> FdStream::whenFlushed() {
  auto paf = kj::newPromiseAndFulfiller<void>();
  writer_ = kj::mv(paf.fulfiller);
  return kj::mv(paf.promise);
}

kj::Promise<void> FdStream::whenWritable() {
  ++waitingWrites_;
  return port_.whenReady(fd_.get(), EV_WRITE).then([this] {
    --waitingWrites_;
    wakeReader();
  });
}

void FdStream::onWritable(int, short, void* self) {
  auto& stream = *static_cast<FdStream*>(self);
  stream.port_.guard([&] {
    stream.blocked_ = false;
    stream.flush();
  });
}

void FdStream::shutdownWrite() {
  shutdownAsked_ = true;
  if (!blocked_) flush();
}

void FdStream::finishShutdown() {
  shutdownAsked_ = false;
  // A peer that is gone already needs no farewell.
  if (::shutdown(fd_.get(), SHUT_WR) < 0 && errno != ENOTCONN) KJ_FAIL_SYSCALL("shutdown", errno);
}

// --- the rest ----------------------------------------------------------------------------------

kj::Promise<void> FdStream::whenWriteDisconnected() {
  KJ_IF_MAYBE (known, disconnected_) {
    return known->addBranch();
  }
  auto paf = kj::newPromiseAndFulfiller<void>();
  disconnect_ = kj::mv(paf.fulfiller);
  auto fork = paf.promise.fork();
  auto branch = fork.addBranch();
  disconnected_ = kj::mv(fork);
  int copy;
  KJ_SYSCALL(copy = ::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  hangUpFd_ = kj::AutoCloseFd(copy);
  hangUpEvent_.reset(
      event_new(port_.base(), copy, EV_READ | EV_PERSIST | EV_ET, &FdStream::onHangUp, this));
  KJ_REQUIRE(hangUpEvent_ != nullptr && event_add(hangUpEvent_.get(), nullptr) == 0,
             "cannot watch for the peer's end", fd_.get());
  checkDisconnected();
  return branch;
}

void FdStream::onHangUp(int, short, void* self) {
  auto& stream = *static_cast<FdStream*>(self);
  stream.port_.guard([&] { stream.checkDisconnected(); });
}

void FdStream::checkDisconnected() {
  if (disconnect_.get() == nullptr || !disconnect_->isWaiting()) return;
  pollfd state{fd_.get(), 0, 0};
  if (::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR))) disconnect_->fulfill();
}

void FdStream::getsockopt(int level, int option, void* value, kj::uint* length) {
  socklen_t n = *length;
  KJ_SYSCALL(::getsockopt(fd_.get(), level, option, value, &n));
  *length = n;
}

void FdStream::setsockopt(int level, int option, const void* value, kj::uint length) {
  KJ_SYSCALL(::setsockopt(fd_.get(), level, option, value, length));
}

}  // namespace ts
