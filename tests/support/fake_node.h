// A node daemon for tests of who speaks to one: obeys a test instead of a master, and remembers
// what it was asked. Runs on a thread of its own; every method may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "local/protocol.h"

namespace ts::test {

class FakeNode {
public:
  // What came in; `text` is a line for people and for tests that read it from the executable.
  struct Seen {
    tsl_message message;
    int connection;
    std::string text;
  };

  explicit FakeNode(std::string socket);
  ~FakeNode();
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;

  // How requests of a type are answered from now on. At first all succeed, acquires with epochs
  // that grow from 1. A held acquire still is answered at its deadline and when it is cancelled.
  void answer(tsl_type type, int status, const std::string& detail = "");
  void hold(tsl_type type);
  // Never answered, as by a daemon that hangs; the first `closes` cost the connection.
  void ignore(tsl_type type, std::size_t closes = 0);

  // The oldest held request.
  void grant();
  void refuse(int status, const std::string& detail = "");

  void askYield();
  void resumeWith(std::uint64_t epoch);  // the slice that joins, and the next acquire, find it in
  void startFromGate(std::uint64_t epoch);  // the slice that the next join takes over
  void voidSlices();                        // no participant is in any, as after an eviction
  void setWaiters(std::uint32_t waiters);

  void sendRaw(const std::string& bytes);  // to every connection
  void closeAll();
  void goAway();    // the connections end and nobody listens
  void comeBack();  // as a restarted daemon
  void freeze();    // accepts and reads nothing
  void thaw();

  // Waits until `count` messages of a type have come since the start; answers the last of these.
  tsl_message waitFor(tsl_type type, std::size_t count = 1);
  void waitClosed(std::size_t count = 1);  // connections that their clients closed
  std::size_t count(tsl_type type) const;
  std::string devices() const;  // of the last join, the pieces joined
  // Called on the node's thread with each line that comes.
  void onSeen(std::function<void(const std::string&)> f);

private:
  enum class Way { Answer, Hold, Ignore };
  struct Rule {
    Way way = Way::Answer;
    int status = TSL_OK;
    std::string detail;
    std::size_t closes = 0;
  };
  struct Held {
    int connection;
    std::uint16_t type;
    std::uint64_t request;
    std::int64_t deadlineUs;  // of the monotonic clock; -1: none
  };

  void run();
  void turn();
  int timeout() const;
  void post(std::function<void()> f);
  void runPosted();
  void listen();
  void stopListening();
  void acceptAll();
  void readFrom(int fd);
  void closeConnection(int fd, bool byClient);
  void take(int fd, const tsl_message& message);
  bool grows(int fd, const tsl_message& message);
  void obey(int fd, const tsl_message& message);
  void cancel(const tsl_message& message);
  void endOverdue();
  void keepSlice(const std::string& name, std::uint16_t type, std::uint64_t epoch);
  void reply(int fd, std::uint16_t type, std::uint64_t request, int status,
             const std::string& detail);
  void remember(int fd, const tsl_message& message);

  const std::string socket_;
  int listener_ = -1;
  int wake_;
  bool ending_ = false;
  bool frozen_ = false;
  std::vector<int> connections_;
  std::map<int, std::uint64_t> last_;  // request numbers, as the node checks them
  std::map<std::uint16_t, Rule> rules_;
  std::vector<Held> held_;
  std::map<int, std::string> names_;             // of connections: who has joined there
  std::map<std::string, std::uint64_t> slices_;  // by name; survive their connections
  std::uint64_t epoch_ = 0;
  std::uint64_t resume_ = 0;
  std::uint64_t fromGate_ = 0;
  std::uint32_t waiters_ = 0;
  std::string claim_;
  std::function<void(const std::string&)> onSeen_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::function<void()>> posted_;
  std::uint64_t postedCount_ = 0, doneCount_ = 0;
  std::vector<Seen> seen_;
  std::size_t closed_ = 0;
  std::string devices_;

  std::thread thread_;  // last: it uses all the others
};

std::string describe(const tsl_message& message);

}  // namespace ts::test
