// The caller's side of greet: agrees on a version, learns who the master is, proves who we are.
#pragma once

#include <kj/async.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "timeslice.capnp.h"
#include "wire/auth.h"
#include "wire/generation.h"
#include "wire/version.h"

namespace ts {

// Where a call that may block runs. A daemon hands in its worker, a short-lived program none.
using Offload = std::function<kj::Promise<void>(std::function<void()>)>;
Offload runHere();

struct Greeted {
  std::uint16_t version = 0;
  Generation generation;
  std::string auth;  // what the master asks of us: "munge", "none", or "peer" on its unix socket
  Nonces nonces;
  wire::Door::Client door;
};

// Everything below fails with an exception whose text is a sentence for a person: no common
// version, another kind of auth, a master that cannot prove itself. `auth` must outlive the
// promise. `masterUid`: whose credential the master must have, where one is asked for; root's will
// do, too.
kj::Promise<Greeted> greet(wire::Master::Client master, Auth& auth, Offload offload,
                           uid_t masterUid);

struct NodeHello {
  std::string name;
  std::uint64_t instance = 0;  // of this life of the daemon
  Generation highest;          // that this node has seen; number 0: none
  wire::NodeDaemon::Client daemon;
  std::function<void(wire::NodeReport::Builder)> report;  // called when the message is made
};
struct NodeEntry {
  wire::NodeSession::Client session;
  Generation generation;  // to be remembered before the first order is obeyed
  std::uint64_t heartbeatUs = 0;
};
// Refuses a master whose generation is older than `highest`, or equal with another id.
kj::Promise<NodeEntry> enterNode(Greeted greeted, NodeHello hello, Auth& auth, Offload offload);

kj::Promise<wire::OperatorSession::Client> enterOperator(Greeted greeted, Auth& auth,
                                                         Offload offload);

// Whether greet() failed since the two sides have different kinds of auth.
bool isAuthMismatch(const kj::Exception& exception);

// The name of a node that is here already, and answers. `sentence` is the rest of the text.
kj::Exception nameTaken(const std::string& sentence);
bool isNameTaken(const kj::Exception& exception);

// A failure with exactly this sentence, for both sides.
kj::Exception sentence(std::string text, kj::Exception::Type type = kj::Exception::Type::FAILED);
// What a person should read of an exception that may have come over the wire.
std::string sentenceOf(const kj::Exception& exception);

}  // namespace ts
