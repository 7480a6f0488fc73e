// Nodes that come in: fences between masters, the node's report, its new session.
#pragma once

#include <functional>
#include <string>

#include "master/life.h"
#include "master/node_session.h"
#include "master/standing.h"
#include "reactor/workers.h"
#include "store/store.h"

namespace ts {

using EnterNode = capnp::CallContext<wire::Door::EnterNodeParams, wire::Door::EnterNodeResults>;

class Reception {
public:
  Reception(Shell& shell, Life& life, Standing& standing, kj::Timer& timer, Store& store,
            Workers& workers);

  // Nodes of the store that have not come yet are shown, as named.
  void expectKnown();

  // Takes the node in. Orders go to it only after the answer to enterNode has left: a node obeys
  // nobody whose generation it has not noted. `hangUp` ends the node's connection. Refused where
  // another daemon of that name is here and answers.
  kj::Promise<void> enter(EnterNode context, std::string address,
                          std::function<void(std::string why)> hangUp);

private:
  void admit(EnterNode context, std::string address, std::function<void(std::string why)> hangUp);
  [[noreturn]] void refuseRival(const NodeRecord& first, const std::string& address);
  void fence(const std::string& name, const Generation& highest);
  void open(NodeRecord& node, NodeSession& session);
  void remember(const NodeRecord& node);

  Shell& shell_;
  Life& life_;
  Standing& standing_;
  kj::Timer& timer_;
  Store& store_;
  Workers& workers_;
};

}  // namespace ts
