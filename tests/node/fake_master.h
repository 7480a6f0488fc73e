// A master of a test: takes nodes in, remembers what they tell, orders what the test says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "loop.h"
#include "timeslice.capnp.h"
#include "wire/link.h"
#include "wire/translate.h"

namespace ts::test {

class FakeMaster {
public:
  explicit FakeMaster(Loop& loop);

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Closes every connection; nodes may come back.
  void dropConnections() { links_.clear(); }
  // No one listens any more, or again, at the same port.
  void stopListening();
  void listenAgain();

  Generation generation{1, 77};
  Outcome joinAnswer;      // to the joins that come
  bool holdJoins = false;  // until letJoins()
  void letJoins();
  bool holdAdmit = false;  // for ever
  bool holdEntry = false;  // of a session, until letEnter()
  void letEnter() { entry_->fulfill(); }
  std::uint64_t nextTicket = 1;
  std::uint64_t heartbeatUs = 60'000'000;
  bool nameIsTaken = false;                     // it refuses whoever comes
  std::map<std::uint32_t, std::uint64_t> free;  // by device, as the last heartbeat said

  // What nodes said, as "acquire 5 by 3" and the like, in order.
  std::vector<std::string> told;
  bool heard(const std::string& what) const;
  unsigned count(const std::string& beginning) const;
  unsigned sessions = 0;

  // By the last session.
  struct Known {
    std::uint64_t participant = 0;
    std::uint64_t request = 0;
    bool waiting = false;
    bool entered = false;
    Epoch epoch;
    std::uint64_t ticket = 0;
  };
  std::map<std::string, Known> participants;               // by job name; the last one of each
  std::map<std::string, std::vector<MemberFact>> members;  // by job name
  std::map<std::string, bool> granted;                     // by job name, as reported
  std::map<std::string, std::vector<std::string>> nodes;   // by job name, as reported

  // Orders. The outcome as soon as it is there.
  using Order = kj::Promise<Outcome>;
  Order prepare(const std::string& job, std::vector<MemberId> out, std::vector<MemberId> in);
  Order quiesce(const std::string& job, std::uint64_t deadlineUs = 10'000'000);
  Order release(const std::string& job);
  Order save(const std::string& job, MemberId member);
  Order restore(const std::string& job, MemberId member);
  Order grant(const std::string& job, std::uint64_t counter, std::vector<std::uint32_t> devices,
              std::vector<std::uint64_t> requests);
  Order endSlice(const std::string& job, std::uint64_t counter);
  Order dropBooking(const std::string& job);
  Order kill(const std::string& job);
  void refuse(std::uint64_t request, Cause cause, const std::string& detail);
  void askToYield(const std::string& job, std::uint64_t counter);
  void spans(const std::string& job, std::vector<std::string> nodes);

  std::uint64_t nextOperation = 1;  // to be set back by a test that repeats an order
  std::string group = "rl";
  wire::NodeDaemon::Client daemon() { return KJ_ASSERT_NONNULL(daemon_); }
  bool hasDaemon() const { return daemon_ != nullptr; }

private:
  class Bootstrap;
  class Door;
  class Session;
  kj::Promise<void> acceptLoop();
  template <class Request>
  Order send(Request request, const std::string& job);

  Loop& loop_;
  kj::Own<kj::ConnectionReceiver> listener_;
  unsigned port_ = 0;
  std::vector<kj::Own<Link>> links_;
  kj::Maybe<wire::NodeDaemon::Client> daemon_;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> heldJoins_;
  kj::Own<kj::PromiseFulfiller<void>> entry_;
  kj::Promise<void> accepting_ = kj::READY_NOW;
};

}  // namespace ts::test
