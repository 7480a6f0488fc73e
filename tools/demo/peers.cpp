#include "peers.h"

#include <unistd.h>

#include "sockets.h"

namespace demo {
namespace {

template <class T>
std::span<const std::byte> bytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> writableBytesOf(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

Peers::Peers(const Meeting& meeting) : rank_(meeting.rank), world_(meeting.world) {
  if (rank_ >= world_) {
    throw PeerError("rank " + std::to_string(rank_) + " of a world of " + std::to_string(world_) +
                    ": ranks count from 0");
  }
  if (world_ == 1) return;
  if (rank_ == 0) {
    collect(meeting);
    return;
  }
  sockets_.push_back(connectTo(meeting.address));
  sendAll(sockets_[0], bytesOf(rank_));
}

Peers::~Peers() {
  for (int socket : sockets_) close(socket);
}

void Peers::collect(const Meeting& meeting) {
  const int listener = meeting.listenFd >= 0 ? meeting.listenFd : listenAt(meeting.address);
  const auto end = std::chrono::steady_clock::now() + meeting.patience;
  sockets_.assign(world_ - 1, -1);
  for (unsigned k = 1; k < world_; ++k) {
    if (!readableBy(listener, end)) throw PeerError(missing(meeting.patience));
    const int socket = acceptFrom(listener);
    if (!readableBy(socket, end)) throw PeerError(missing(meeting.patience));
    unsigned rank = 0;
    receiveAll(socket, writableBytesOf(rank));
    if (rank == 0 || rank >= world_ || sockets_[rank - 1] >= 0) {
      throw PeerError("a second rank " + std::to_string(rank) + " in a world of " +
                      std::to_string(world_));
    }
    sockets_[rank - 1] = socket;
  }
  close(listener);
}

std::string Peers::missing(std::chrono::milliseconds patience) const {
  std::string text;
  for (unsigned rank = 1; rank < world_; ++rank) {
    if (sockets_[rank - 1] >= 0) continue;
    text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
  return text + " of " + std::to_string(world_) + " did not come within " +
         std::to_string(seconds) + " s; start every rank with the --peer of rank 0";
}

void Peers::exchange(std::span<const std::byte> own, std::span<std::byte> all) {
  if (rank_ != 0) {
    sendAll(sockets_[0], own);
    receiveAll(sockets_[0], all);
    return;
  }
  std::copy(own.begin(), own.end(), all.begin());
  for (std::size_t k = 0; k < sockets_.size(); ++k) {
    receiveAll(sockets_[k], all.subspan((k + 1) * own.size(), own.size()));
  }
  for (int socket : sockets_) sendAll(socket, all);
}

void Peers::sum(std::span<float> values) {
  if (world_ == 1) return;
  std::vector<float> all(values.size() * world_);
  exchange(std::as_bytes(values), std::as_writable_bytes(std::span(all)));
  for (std::size_t k = 0; k < values.size(); ++k) {
    float sum = all[k];
    for (unsigned rank = 1; rank < world_; ++rank) sum += all[rank * values.size() + k];
    values[k] = sum;
  }
}

std::vector<std::uint64_t> Peers::gather(std::uint64_t own) {
  std::vector<std::uint64_t> all(world_, own);
  if (world_ > 1) exchange(bytesOf(own), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace demo
