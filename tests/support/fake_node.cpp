#include "support/fake_node.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace ts::test {

namespace {

std::int64_t nowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string fieldOf(const char* text, std::size_t limit) {
  return {text, ::strnlen(text, limit)};
}

std::string processOf(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return std::to_string(peer.pid) + " ";
}

}  // namespace

std::string describe(const tsl_message& m) {
  const std::string number = std::to_string(m.header.request);
  switch (m.header.type) {
    case TSL_HELLO:
      return "hello " + number;
    case TSL_CLAIM:
      return "claim " + number + " devices=" + fieldOf(m.u.claim.devices, TSL_TEXT_DEVICES);
    case TSL_JOIN:
      return "join " + number + " group=" + m.u.join.group + " job=" + m.u.join.job +
             " gang=" + std::to_string(m.u.join.gang) +
             " priority=" + std::to_string(m.u.join.priority) + " backend=" + m.u.join.backend;
    case TSL_ACQUIRE:
      return "acquire " + number + " deadline=" + std::to_string(m.u.acquire.deadline_ms) +
             " phase=" + m.u.acquire.phase;
    case TSL_CANCEL:
      return "cancel " + number + " target=" + std::to_string(m.u.cancel.target);
    case TSL_YIELD:
      return "yield " + number + " epoch=" + std::to_string(m.u.yield.epoch_counter);
    case TSL_LEAVE:
      return "leave " + number;
    default:
      return "type=" + std::to_string(m.header.type) + " " + number;
  }
}

FakeNode::FakeNode(std::string socket)
    : socket_(std::move(socket)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  listen();
  thread_ = std::thread([this] { run(); });
}

FakeNode::~FakeNode() {
  post([this] { ending_ = true; });
  thread_.join();
  stopListening();
  while (!connections_.empty()) closeConnection(connections_.front(), false);
  ::close(wake_);
}

// Runs `f` on the node's thread and returns when it has run.
void FakeNode::post(std::function<void()> f) {
  std::unique_lock lock(mutex_);
  posted_.push_back(std::move(f));
  const std::uint64_t mine = ++postedCount_;
  ::eventfd_write(wake_, 1);
  changed_.wait(lock, [&] { return doneCount_ >= mine; });
}

void FakeNode::runPosted() {
  std::vector<std::function<void()>> work;
  {
    std::lock_guard lock(mutex_);
    work.swap(posted_);
  }
  for (auto& f : work) f();
  std::lock_guard lock(mutex_);
  doneCount_ += work.size();
  changed_.notify_all();
}

void FakeNode::run() {
  while (!ending_) turn();
}

int FakeNode::timeout() const {
  std::int64_t next = -1;
  for (const Held& h : held_) {
    if (h.deadlineUs >= 0 && (next < 0 || h.deadlineUs < next)) next = h.deadlineUs;
  }
  if (next < 0) return -1;
  return static_cast<int>(std::max<std::int64_t>(0, (next - nowUs() + 999) / 1000));
}

void FakeNode::turn() {
  std::vector<pollfd> fds{{wake_, POLLIN, 0}};
  if (!frozen_) {
    fds.push_back({listener_, POLLIN, 0});
    for (int fd : connections_) fds.push_back({fd, POLLIN, 0});
  }
  ::poll(fds.data(), fds.size(), timeout());
  for (std::size_t i = 1; i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    if (i == 1) {
      acceptAll();
    } else {
      readFrom(fds[i].fd);
    }
  }
  endOverdue();
  if (fds[0].revents == 0) return;
  eventfd_t count;
  ::eventfd_read(wake_, &count);
  runPosted();
}

void FakeNode::listen() {
  listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, sizeof address.sun_path - 1);
  ::unlink(socket_.c_str());
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, 64) != 0) {
    throw std::runtime_error("cannot listen on " + socket_ + ": " + std::strerror(errno));
  }
}

void FakeNode::stopListening() {
  if (listener_ < 0) return;
  ::unlink(socket_.c_str());
  ::close(listener_);
  listener_ = -1;
}

void FakeNode::acceptAll() {
  int fd;
  while ((fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
    connections_.push_back(fd);
  }
}

void FakeNode::closeConnection(int fd, bool byClient) {
  std::erase(connections_, fd);
  last_.erase(fd);
  names_.erase(fd);
  std::erase_if(held_, [fd](const Held& h) { return h.connection == fd; });
  ::close(fd);
  if (!byClient) return;
  std::lock_guard lock(mutex_);
  ++closed_;
  changed_.notify_all();
}

void FakeNode::readFrom(int fd) {
  while (std::find(connections_.begin(), connections_.end(), fd) != connections_.end()) {
    tsl_message message;
    const ssize_t got = ::recv(fd, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      closeConnection(fd, true);
    } else if (got == sizeof message && message.header.magic == TSL_MAGIC) {
      take(fd, message);
    } else {
      closeConnection(fd, false);
    }
  }
}

void FakeNode::remember(int fd, const tsl_message& message) {
  const std::string line = describe(message);
  if (onSeen_) onSeen_(line);
  std::lock_guard lock(mutex_);
  if (message.header.type == TSL_JOIN) devices_ = claim_;
  seen_.push_back({message, fd, line});
  changed_.notify_all();
}

bool FakeNode::grows(int fd, const tsl_message& message) {
  if (message.header.type == TSL_CANCEL) return true;  // it has its acquire's
  std::uint64_t& last = last_[fd];
  if (message.header.request <= last) return false;
  last = message.header.request;
  return true;
}

void FakeNode::take(int fd, const tsl_message& message) {
  if (!grows(fd, message)) {
    reply(fd, message.header.type, message.header.request, TSL_PROTOCOL,
          "a number that does not grow");
    closeConnection(fd, false);
    return;
  }
  if (message.header.type == TSL_HELLO) claim_.clear();
  if (message.header.type == TSL_JOIN) names_[fd] = processOf(fd) + message.u.join.group;
  if (message.header.type == TSL_CLAIM) {
    claim_ += fieldOf(message.u.claim.devices, TSL_TEXT_DEVICES);
  }
  // What is held can be granted once it is seen; what is answered must have been seen before.
  const bool held = rules_[message.header.type].way == Way::Hold;
  if (!held) remember(fd, message);
  obey(fd, message);
  if (held) remember(fd, message);
}

void FakeNode::obey(int fd, const tsl_message& message) {
  const auto& header = message.header;
  if (header.type == TSL_CLAIM) return;
  Rule& rule = rules_[header.type];
  if (rule.way == Way::Ignore) {
    if (rule.closes == 0) return;
    --rule.closes;
    closeConnection(fd, false);
    return;
  }
  if (header.type == TSL_CANCEL) {
    cancel(message);
    return;
  }
  if (rule.way == Way::Answer) {
    reply(fd, header.type, header.request, rule.status, rule.detail);
    return;
  }
  const std::int64_t ms = header.type == TSL_ACQUIRE ? message.u.acquire.deadline_ms : -1;
  if (ms == 0) {
    reply(fd, header.type, header.request, TSL_BUSY, "job other holds");
    return;
  }
  held_.push_back({fd, header.type, header.request, ms < 0 ? -1 : nowUs() + ms * 1000});
}

void FakeNode::cancel(const tsl_message& message) {
  auto held = std::find_if(held_.begin(), held_.end(),
                           [&](const Held& h) { return h.request == message.u.cancel.target; });
  if (held == held_.end()) return;
  const Held found = *held;
  held_.erase(held);
  reply(found.connection, TSL_ACQUIRE, found.request, TSL_CANCELLED, "");
}

void FakeNode::endOverdue() {
  const std::int64_t now = nowUs();
  for (std::size_t i = 0; i < held_.size();) {
    if (held_[i].deadlineUs < 0 || held_[i].deadlineUs > now) {
      ++i;
      continue;
    }
    const Held found = held_[i];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    reply(found.connection, TSL_ACQUIRE, found.request, TSL_TIMED_OUT, "job other holds");
  }
}

void FakeNode::keepSlice(const std::string& name, std::uint16_t type, std::uint64_t epoch) {
  if (type == TSL_ACQUIRE) slices_[name] = epoch;
  if (type == TSL_YIELD || type == TSL_LEAVE) slices_.erase(name);
}

void FakeNode::reply(int fd, std::uint16_t type, std::uint64_t request, int status,
                     const std::string& detail) {
  tsl_message message{};
  message.header = {TSL_MAGIC, TSL_VERSION, TSL_REPLY, request};
  tsl_reply& r = message.u.reply;
  r.status = status;
  r.waiters = waiters_;
  detail.copy(r.detail, sizeof r.detail - 1);
  if (status == TSL_OK && type == TSL_ACQUIRE) {
    r.epoch_counter = resume_ != 0 ? resume_ : ++epoch_;
    resume_ = 0;
    r.epoch_generation = 1;
    r.waited_us = 7;
    r.bytes = 4096;
    r.restored = 1;
  }
  const std::string& name = names_[fd];
  if (status == TSL_OK && type == TSL_JOIN) {
    r.epoch_counter = resume_ != 0 ? resume_ : slices_[name];
    if (fromGate_ != 0) {
      r.epoch_counter = std::exchange(fromGate_, 0);
      r.flags = TSL_REPLY_FROM_GATE;
    }
    r.epoch_generation = r.epoch_counter != 0 ? 1 : 0;
  }
  if (status == TSL_OK) keepSlice(name, type, r.epoch_counter);
  ::send(fd, &message, sizeof message, MSG_NOSIGNAL);
}

void FakeNode::answer(tsl_type type, int status, const std::string& detail) {
  post([&] { rules_[type] = {Way::Answer, status, detail}; });
}
void FakeNode::hold(tsl_type type) {
  post([&] { rules_[type] = {Way::Hold, TSL_OK, ""}; });
}
void FakeNode::ignore(tsl_type type, std::size_t closes) {
  post([&] { rules_[type] = {Way::Ignore, TSL_OK, "", closes}; });
}

void FakeNode::grant() {
  refuse(TSL_OK);
}

void FakeNode::refuse(int status, const std::string& detail) {
  post([&] {
    if (held_.empty()) throw std::logic_error("nothing is held");
    const Held first = held_.front();
    held_.erase(held_.begin());
    reply(first.connection, first.type, first.request, status, detail);
  });
}

void FakeNode::askYield() {
  post([this] {
    tsl_message message{};
    message.header = {TSL_MAGIC, TSL_VERSION, TSL_ASK_YIELD, 0};
    message.u.reply.epoch_counter = epoch_;
    message.u.reply.waiters = waiters_;
    for (int fd : connections_) ::send(fd, &message, sizeof message, MSG_NOSIGNAL);
  });
}
void FakeNode::resumeWith(std::uint64_t epoch) {
  post([&] { resume_ = epoch; });
}
void FakeNode::startFromGate(std::uint64_t epoch) {
  post([&] { fromGate_ = epoch; });
}
void FakeNode::voidSlices() {
  post([this] { slices_.clear(); });
}
void FakeNode::setWaiters(std::uint32_t waiters) {
  post([&] { waiters_ = waiters; });
}
void FakeNode::sendRaw(const std::string& bytes) {
  post([&] {
    for (int fd : connections_) ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  });
}
void FakeNode::closeAll() {
  post([this] {
    while (!connections_.empty()) closeConnection(connections_.front(), false);
  });
}
void FakeNode::goAway() {
  post([this] {
    stopListening();
    while (!connections_.empty()) closeConnection(connections_.front(), false);
  });
}
void FakeNode::comeBack() {
  post([this] { listen(); });
}
void FakeNode::freeze() {
  post([this] { frozen_ = true; });
}
void FakeNode::thaw() {
  post([this] { frozen_ = false; });
}

void FakeNode::onSeen(std::function<void(const std::string&)> f) {
  post([&] { onSeen_ = std::move(f); });
}

tsl_message FakeNode::waitFor(tsl_type type, std::size_t count) {
  std::unique_lock lock(mutex_);
  const Seen* last = nullptr;
  changed_.wait(lock, [&] {
    std::size_t n = 0;
    for (const Seen& s : seen_) {
      if (s.message.header.type != type || ++n != count) continue;
      last = &s;
      return true;
    }
    return false;
  });
  return last->message;
}

void FakeNode::waitClosed(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ >= count; });
}

std::size_t FakeNode::count(tsl_type type) const {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(
      seen_.begin(), seen_.end(), [&](const Seen& s) { return s.message.header.type == type; }));
}

std::string FakeNode::devices() const {
  std::lock_guard lock(mutex_);
  return devices_;
}

}  // namespace ts::test
