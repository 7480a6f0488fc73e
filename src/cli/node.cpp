#include "cli/node.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/words.h"
#include "reactor/seqpacket.h"

namespace ts::cli {

std::string Node::Answer::detail() const {
  return {reply.detail, ::strnlen(reply.detail, sizeof reply.detail)};
}

Node::Node(const Place& place, std::chrono::microseconds timeout)
    : place_(place), timeout_(timeout) {
  connect();
  tsl_message hello{};
  hello.u.hello = {TSL_VERSION, TSL_VERSION};
  Answer answer = ask(TSL_HELLO, hello, timeout);
  if (answer.reply.status != TSL_OK) throw Failure(Exit::Failed, "tsnoded: " + answer.detail());
}

void Node::connect() {
  if (place_.address.empty() || place_.address.size() > 107) {
    throw Failure(Exit::Usage, place_.from + ": the path of tsnoded's socket has 1 to 107 bytes");
  }
  int error = connectSeqpacket(place_.address, socket_, timeout_);
  if (error == EAGAIN) throw unreachable("its backlog is full");
  if (error != 0) throw unreachable(std::strerror(error));  // NOLINT(concurrency-mt-unsafe)
}

// What could not even be read is answered under the number 0.
bool Node::isOurs(const tsl_message& answer) const {
  if (answer.header.magic != TSL_MAGIC || answer.header.type != TSL_REPLY) return false;
  return answer.header.request == lastRequest_ ||
         (answer.header.request == 0 && answer.u.reply.status == TSL_PROTOCOL);
}

Node::Answer Node::ask(tsl_type type, const tsl_message& request,
                       std::chrono::microseconds patience) {
  const Until until{Clock::now() + patience, patience};
  tsl_message message = request;
  message.header = {TSL_MAGIC, TSL_VERSION, std::uint16_t(type), ++lastRequest_};
  send(message, until);
  while (true) {
    tsl_message answer{};
    Packet packet = receivePacket(socket_, &answer, sizeof answer);
    if (packet.kind == Packet::Kind::Closed) throw unreachable("it closed the connection");
    if (packet.kind == Packet::Kind::WouldBlock) {
      waitFor(POLLIN, until);
      continue;
    }
    if (packet.size == sizeof answer && isOurs(answer))
      return {answer.u.reply, std::move(packet.fds)};
  }
}

void Node::send(const tsl_message& message, const Until& until) {
  while (true) {
    switch (sendPacket(socket_, &message, sizeof message)) {
      case Sent::Yes:
        return;
      case Sent::Closed:
        throw unreachable("it closed the connection");
      case Sent::WouldBlock:
        waitFor(POLLOUT, until);
    }
  }
}

void Node::waitFor(short events, const Until& until) {
  using std::chrono::milliseconds;
  auto left = std::chrono::ceil<milliseconds>(until.deadline - Clock::now());
  pollfd state{socket_, events, 0};
  int ready = left.count() <= 0 ? 0 : ::poll(&state, 1, int(std::min<long>(left.count(), 1 << 30)));
  if (ready == 0) {
    throw unreachable("no answer within " + showDuration(std::uint64_t(until.patience.count())));
  }
}

Failure Node::unreachable(const std::string& cause) const {
  return Failure(Exit::Unreachable, "tsnoded cannot be reached at " + place_.address + " (" +
                                        (place_.from.starts_with('/') ? "from " : "") +
                                        place_.from + "): " + cause +
                                        "; start it: tsnoded --config /etc/timeslice/node.toml, or "
                                        "say where it is with --socket or "
                                        "TIMESLICE_SOCKET");
}

}  // namespace ts::cli
