#include "cli/master.h"

#include "cli/words.h"
#include "config/users.h"
#include "wire/greet.h"

namespace ts::cli {
namespace {

// KJ puts the call before the cause: "connect: Connection refused".
std::string causeOf(const kj::Exception& exception) {
  std::string text = sentenceOf(exception);
  for (const char* call : {"connect: ", "connect(): "}) {
    if (text.starts_with(call)) text.erase(0, std::string(call).size());
  }
  return text;
}

std::string shown(const Place& place) {
  return place.address + " (" + (place.from.starts_with('/') ? "from " : "") + place.from + ")";
}

// On the master's own socket nobody is asked for a proof, nor by a master on this machine that
// wants none: then only root's would be believed.
uid_t masterUid(const Places& places) {
  if (auto uid = uidNamed(places.masterUser)) return *uid;
  bool isProven = places.auth == "munge" && !places.master.address.starts_with("unix:");
  if (!isProven || places.authByMaster) return 0;
  throw Failure(Exit::BadConfig, unknownMasterUser(places.masterUser, places.masterUserFrom));
}

}  // namespace

Master::Master(Loop& loop, const Places& places, std::chrono::microseconds timeout)
    : loop_(loop), place_(places.master), timeout_(timeout) {
  auto& network = loop_.io->getNetwork();
  auto stream = waitFor<kj::Own<kj::AsyncIoStream>>(
      network.parseAddress(place_.address.c_str()).then([](kj::Own<kj::NetworkAddress> address) {
        auto connecting = address->connect();
        return connecting.attach(kj::mv(address));
      }));
  connected_ = true;
  link_.emplace(kj::mv(stream), Link::Side::Caller);
  try {
    enter(places.auth, masterUid(places));
  } catch (const Failure&) {
    if (!places.authByMaster || !authDiffers_) throw;
    enter("none", 0);
  }
}

void Master::enter(const std::string& auth, uid_t masterUid) {
  prover_ = auth == "none" ? newNoAuth() : newMungeAuth();
  Auth& prover = *prover_;
  session_ = waitFor<wire::OperatorSession::Client>(
      greet(link_->peer<wire::Master>(), prover, runHere(), masterUid)
          .catch_([this](kj::Exception&& e) -> kj::Promise<Greeted> {
            authDiffers_ = isAuthMismatch(e);
            return kj::mv(e);
          })
          .then([this, &prover](Greeted greeted) {
            auth_ = greeted.auth;
            return enterOperator(kj::mv(greeted), prover, runHere());
          }));
}

Failure Master::failureOf(const kj::Exception& exception) const {
  if (!connected_) return unreachable(causeOf(exception));
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) {
    return unreachable("it closed the connection");
  }
  std::string text = sentenceOf(exception);
  // What the sentence calls "this side" is configured by an option here.
  if (isAuthMismatch(exception)) text += ", or give --auth to tsctl";
  return Failure(Exit::Failed, text);
}

// A place that nobody has named is mostly the wrong one.
Failure Master::unreachable(const std::string& cause) const {
  std::string start = "tsmasterd --config /etc/timeslice/master.toml";
  std::string cure =
      place_.from == kDefaultPlace
          ? "say where it is (master in /etc/timeslice/node.toml, TIMESLICE_MASTER or --master), "
            "or start it here: " +
                start
          : "start it there: " + start + ", or say where it is with --master or TIMESLICE_MASTER";
  return Failure(Exit::Unreachable,
                 "tsmasterd cannot be reached at " + shown(place_) + ": " + cause + "; " + cure);
}

Failure Master::lateFailure() const {
  return unreachable("no answer within " + showDuration(std::uint64_t(timeout_.count())));
}

}  // namespace ts::cli
