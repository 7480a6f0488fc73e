// Where every connection begins: greet, prove, then a session for a node or an operator.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "log/throttle.h"
#include "master/operators.h"
#include "master/reception.h"
#include "wire/auth.h"
#include "wire/greet.h"

namespace ts {

// Who is at the other end of a connection, as far as the kernel says.
struct Peer {
  std::string address;
  std::optional<uid_t> uid;  // of a unix socket: needs no other proof
  std::function<void(std::string why)> hangUp;
  std::function<void(Role)> entered;  // called once it has proved itself
};

// What all connections share.
struct House {
  Life& life;
  Auth& auth;
  Offload offload;
  Reception& reception;
  Operators& operators;
  Log& log;
  Throttle refusals{};  // strangers may come as fast as they like
  Throttle hangUps{};
};

// The bootstrap capability of one connection; `house` outlives it.
wire::Master::Client newEntrance(House& house, Peer peer);

}  // namespace ts
