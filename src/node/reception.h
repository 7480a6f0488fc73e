// What local programs ask, and who may ask it: reads requests, checks the speaker, hands them on.
#pragma once

#include <kj/timer.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "node/by_pid.h"
#include "node/claim.h"
#include "node/participants.h"
#include "node/steps.h"

namespace ts::node {

class Reception final : public LocalHandler {
public:
  struct Parts {
    Participants& participants;
    ByPid& byPid;
    Steps& steps;
    std::vector<NamedDevice> devices;
    std::map<std::string, std::string> backends;  // that a job may join with, or why it cannot
    std::string defaultBackend;
    kj::Timer& timer;
    std::function<std::string()> status;                              // a few words
    std::function<void(ConnectionId, std::uint64_t request)> doctor;  // answers later, at length
  };
  explicit Reception(Parts parts) : parts_(std::move(parts)) {}

  void received(Connection& from, const tsl_message& message, pid_t speaker) override;
  void closed(Connection& connection) override;
  void setBackend(const std::string& name, const std::string& whyNot) {
    parts_.backends[name] = whyNot;
  }

private:
  void hello(Connection& from, const tsl_message& message);
  void join(Connection& from, std::uint64_t request, const tsl_join& what);
  void step(Connection& from, std::uint64_t request, std::uint16_t type, const tsl_step& what);
  void beginStep(Connection& from, std::uint64_t request, const tsl_step& what);
  struct Wish {
    JobSpec spec;
    std::vector<std::uint32_t> devices;
    tsl_status status = TSL_OK;
    std::string why;  // it cannot be
  };
  Wish resolved(JobSpec spec, const std::string& claim);
  std::string takeClaim(const Connection& from);
  // Why a job with this backend cannot be on these devices, or nothing.
  std::string unsupported(const std::string& backend, const std::vector<std::uint32_t>& devices);
  void status(Connection& from, std::uint64_t request);

  Parts parts_;
  // Pieces, until the join. One byte more than a claim may have says that it was longer.
  std::map<ConnectionId, std::string> claims_;
};

}  // namespace ts::node
