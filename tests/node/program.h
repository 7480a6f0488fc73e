// A local program of a test: a process of its own that speaks what the test tells it to.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <cstring>
#include <deque>
#include <optional>
#include <string>

#include "local/protocol.h"
#include "loop.h"

namespace ts::test {

// The kernel says who speaks, so each participant has to be a process. It connects, sends and
// receives on command and ends with the test at the latest.
class Program {
public:
  // `uid`: as whom it runs; needs root unless it is ours.
  Program(Loop& loop, std::string socket, std::optional<uid_t> uid = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void connect();
  void disconnect();
  // Raw bytes as one message.
  void sendBytes(const std::string& bytes);
  // Returns the request's number.
  std::uint64_t send(tsl_message message);
  // The same from a forked child of the program, on its connection.
  std::uint64_t sendFromChild(tsl_message message);
  void kill();
  // What is sent, and the end of a connection, wait for the node to wake.
  void letNodeSleep(bool on) { nodeSleeps_ = on; }

  bool hasMessage();
  tsl_message receive();  // turns the loop until one comes
  bool isClosedByNode();  // turns the loop until it is, or a message comes

  // One request and its reply.
  tsl_reply call(tsl_message message);
  tsl_reply hello();
  tsl_reply join(const std::string& group, const std::string& job, const std::string& devices = "",
                 const std::string& backend = "none", std::uint32_t gang = 0);
  std::uint64_t startAcquire(std::int64_t deadlineMs = -1);
  tsl_reply acquire(std::int64_t deadlineMs = -1);
  tsl_reply yield(std::uint64_t counter, std::uint32_t generation = 1);
  tsl_reply leave();
  // The reply to an earlier request; messages before it are a failure of the test.
  tsl_reply answerTo(std::uint64_t request);

private:
  void command(char what, const void* bytes = nullptr, std::size_t size = 0);

  Loop& loop_;
  pid_t pid_ = -1;
  kj::AutoCloseFd control_;
  std::uint64_t last_ = 0;  // request number
  std::deque<std::string> arrived_;
  bool reaped_ = false;
  bool nodeSleeps_ = false;
};

// Messages by their parts.
tsl_message message(tsl_type type);
tsl_message joinMessage(const std::string& group, const std::string& job,
                        const std::string& backend = "none", std::uint32_t gang = 0);
tsl_message claimMessage(const std::string& devices);
tsl_message acquireMessage(std::int64_t deadlineMs);
tsl_message yieldMessage(std::uint64_t counter, std::uint32_t generation = 1);
tsl_message pidMessage(tsl_type type, pid_t pid);

}  // namespace ts::test
