// What local programs ask, and who may ask it: reads requests, checks the speaker, hands them on.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/by_pid.h"
#include "node/claim.h"
#include "node/participants.h"

namespace ts::node {

class Reception final : public LocalHandler {
public:
  struct Parts {
    Participants& participants;
    ByPid& byPid;
    std::vector<NamedDevice> devices;
    std::set<std::string> backends;  // that a job may join with
    std::string defaultBackend;
    std::function<std::string()> status;  // a few words
    std::function<void(ConnectionId, std::uint64_t request)> doctor;  // answers later, at length
  };
  explicit Reception(Parts parts) : parts_(std::move(parts)) {}

  void received(Connection& from, const tsl_message& message, pid_t speaker) override;
  void closed(Connection& connection) override;

private:
  void hello(Connection& from, const tsl_message& message);
  void join(Connection& from, std::uint64_t request, const tsl_join& what);
  void status(Connection& from, std::uint64_t request);

  Parts parts_;
  std::map<ConnectionId, std::string> claims_;  // pieces, until the join
};

}  // namespace ts::node
