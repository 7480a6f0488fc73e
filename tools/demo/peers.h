// The ranks of one job: they meet at rank 0 over TCP and add numbers up, to the same bits
// everywhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace demo {

struct PeerError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// So long a rank waits for another to come.
constexpr auto kPatience = std::chrono::seconds(30);

struct Meeting {
  unsigned rank = 0;
  unsigned world = 1;
  std::string address;  // "HOST:PORT" of rank 0
  int listenFd = -1;    // rank 0 only: an inherited listening socket, instead of the address
  std::chrono::milliseconds patience = kPatience;  // rank 0's, with the others
};

// Blocking; throws PeerError when a rank is gone. Every rank makes the same calls in the same
// order.
class Peers {
public:
  explicit Peers(const Meeting& meeting);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  unsigned rank() const { return rank_; }
  unsigned world() const { return world_; }

  // Adds the ranks' values in the order of the ranks: floating point, yet the same bits on each.
  void sum(std::span<float> values);
  // One number of each rank, in their order.
  std::vector<std::uint64_t> gather(std::uint64_t own);

private:
  void collect(const Meeting& meeting);
  std::string missing(std::chrono::milliseconds patience) const;
  void exchange(std::span<const std::byte> own, std::span<std::byte> all);

  unsigned rank_;
  unsigned world_;
  std::vector<int> sockets_;  // at rank 0: one per other rank, by rank - 1; elsewhere: to rank 0
};

}  // namespace demo
