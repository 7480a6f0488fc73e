#include "bench_common/client_turns.h"

#include <poll.h>
#include <timeslice/timeslice.h>

namespace ts::bench {
namespace {

void check(ts_status status, const char* call) {
  if (status != TS_OK) {
    die(std::string(call) + ": " + ts_strerror(status) + ": " + ts_last_error());
  }
}

ts_client* join(const std::string& socket, const Job& job, std::uint32_t gang) {
  ts_join_options options{};
  options.size = sizeof options;
  options.socket = socket.c_str();
  options.group = job.group.c_str();
  options.job = job.name.c_str();
  options.devices = job.devices.c_str();
  options.backend = job.backend.c_str();
  options.gang = gang;
  options.deadline_ms = 60'000;
  ts_client* client = nullptr;
  check(ts_join(&options, &client), "join");
  return client;
}

// As a program on one node does it: the call blocks.
class OneNode final : public Turns {
public:
  explicit OneNode(ts_client* client) : client_(client) {}
  ~OneNode() override { ts_leave(client_); }
  void ask() override {}
  void untilHeld() override { check(ts_acquire(client_, nullptr, nullptr), "acquire"); }
  void yield() override { check(ts_yield(client_), "yield"); }

private:
  ts_client* client_;
};

// All of a job's participants in one process, as a loop does it.
class ManyNodes final : public Turns {
public:
  explicit ManyNodes(std::vector<ts_client*> clients) : clients_(std::move(clients)) {}
  ~ManyNodes() override {
    for (ts_client* client : clients_) ts_leave(client);
  }
  void ask() override {
    for (ts_client* c : clients_) check(ts_acquire_start(c, nullptr), "acquire");
  }
  void untilHeld() override {
    finishAll([](ts_client* c) { return ts_acquire_finish(c, nullptr); }, "acquire");
  }
  void yield() override {
    for (ts_client* c : clients_) check(ts_yield_start(c), "yield");
    finishAll([](ts_client* c) { return ts_yield_finish(c); }, "yield");
  }

private:
  // One after the other, as the floor does: all of them are needed.
  template <class F>
  void finishAll(F finish, const char* call) {
    for (ts_client* c : clients_) {
      pollfd waiting{ts_fd(c), POLLIN, 0};
      ts_status status;
      do {
        ::poll(&waiting, 1, -1);
        status = finish(c);
      } while (status == TS_ERR_BUSY);
      check(status, call);
    }
  }

  std::vector<ts_client*> clients_;
};

}  // namespace

std::unique_ptr<Turns> clientTurns(const std::vector<std::string>& sockets, const Job& job) {
  const auto gang = std::uint32_t(sockets.size() > 1 ? sockets.size() : 0);
  std::vector<ts_client*> clients;
  for (const std::string& socket : sockets) {
    clients.push_back(join(socket, job, gang));
  }
  if (clients.size() == 1) return std::make_unique<OneNode>(clients.front());
  return std::make_unique<ManyNodes>(std::move(clients));
}

}  // namespace ts::bench
