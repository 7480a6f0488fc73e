#include "bench_common/player.h"

#include <sys/socket.h>
#include <unistd.h>

#include "bench_common/figures.h"

namespace ts::bench {
namespace {

void tell(int fd, std::int64_t value) {
  if (::send(fd, &value, sizeof value, MSG_NOSIGNAL) != sizeof value) ::_exit(1);
}

void play(int control, Turns& turns) {
  tell(control, 0);
  char verb;
  while (::recv(control, &verb, 1, 0) == 1) {
    if (verb == 'y') {
      const std::int64_t began = nowNs();
      turns.yield();
      tell(control, began);
      continue;
    }
    turns.ask();
    tell(control, 0);
    turns.untilHeld();
    tell(control, nowNs());
  }
}

}  // namespace

Player::Player(const std::function<std::unique_ptr<Turns>()>& make) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) die("no socket pair");
  process_ = Process([&] {
    ::close(ends[0]);
    play(ends[1], *make());
  });
  ::close(ends[1]);
  control_ = ends[0];
  hear();
}

Player::~Player() {
  ::close(control_);
}

std::int64_t Player::hear() {
  std::int64_t value = 0;
  untilReadable(control_, "what a player was told to do");
  if (::recv(control_, &value, sizeof value, 0) != sizeof value) die("a player has ended");
  return value;
}

std::int64_t Player::order(char verb) {
  if (::send(control_, &verb, 1, MSG_NOSIGNAL) != 1) die("a player has ended");
  return hear();
}

void Player::ask() {
  order('a');
}
std::int64_t Player::held() {
  return hear();
}
std::int64_t Player::yield() {
  return order('y');
}

std::vector<double> passBetween(Player& first, Player& second, int rounds,
                                const std::function<void()>& untilOtherWaits) {
  constexpr int kWarmUp = 3;
  std::vector<double> microseconds;
  Player* holder = &first;
  Player* other = &second;
  holder->ask();
  holder->held();
  for (int i = 0; i < rounds + kWarmUp; ++i) {
    other->ask();
    untilOtherWaits();
    const std::int64_t began = holder->yield();
    const std::int64_t held = other->held();
    if (i >= kWarmUp) microseconds.push_back(double(held - began) / 1000);
    std::swap(holder, other);
  }
  holder->yield();
  return microseconds;
}

}  // namespace ts::bench
