// A connection to tsmasterd as an operator. Nothing here waits longer than the timeout.
#pragma once

#include <capnp/capability.h>

#include <memory>
#include <optional>

#include "cli/failure.h"
#include "cli/loop.h"
#include "cli/places.h"
#include "timeslice.capnp.h"
#include "wire/auth.h"
#include "wire/link.h"

namespace ts::cli {

class Master {
public:
  // Connects, proves who we are, enters. Throws Failure; unreachable says where it looked and why.
  Master(Loop& loop, const Places& places, std::chrono::microseconds timeout);
  KJ_DISALLOW_COPY(Master);

  wire::OperatorSession::Client& session() { return *session_; }

  // Sends a request and waits for its results.
  template <class Params, class Results>
  capnp::Response<Results> call(capnp::Request<Params, Results> request) {
    return waitFor<capnp::Response<Results>>(request.send());
  }
  // Resolves when the connection has ended.
  kj::Promise<void> whenClosed() { return link_->whenClosed(); }
  Failure failureOf(const kj::Exception& exception) const;
  Failure lateFailure() const;
  const std::string& auth() const { return auth_; }  // as the master has it

private:
  template <class T>
  T waitFor(kj::Promise<T> promise) {
    try {
      return within(loop_, timeout_, kj::mv(promise));
    } catch (const kj::Exception& e) {
      throw failureOf(e);
    } catch (const Late&) {
      throw lateFailure();
    }
  }
  void enter(const std::string& auth, uid_t masterUid);
  Failure unreachable(const std::string& cause) const;

  Loop& loop_;
  Place place_;
  std::chrono::microseconds timeout_;
  bool connected_ = false;
  bool authDiffers_ = false;  // that is why we could not enter
  std::string auth_;
  std::unique_ptr<Auth> prover_;
  std::optional<Link> link_;
  std::optional<wire::OperatorSession::Client> session_;
};

}  // namespace ts::cli
