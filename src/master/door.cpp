#include "master/door.h"

#include <unistd.h>

#include "wire/translate.h"

namespace ts {
namespace {

kj::ArrayPtr<const kj::byte> bytes(const Nonce& nonce) {
  return kj::arrayPtr(nonce.data(), nonce.size());
}

class Door final : public wire::Door::Server {
public:
  Door(House& house, Peer peer, Nonces nonces)
      : house_(house), peer_(std::move(peer)), nonces_(std::move(nonces)) {}

protected:
  kj::Promise<void> enterNode(EnterNodeContext context) override {
    return proven(Role::Node, text(context.getParams().getCredential()))
        .then([this, context](Verdict verdict) mutable {
          if (verdict.proven && verdict.uid != 0 && verdict.uid != ::geteuid())
            refuse(Role::Node, "a node daemon is root, this is uid " + std::to_string(verdict.uid));
          return house_.reception.enter(context, peer_.address, peer_.hangUp).then([this] {
            peer_.entered(Role::Node);
          });
        });
  }

  kj::Promise<void> enterOperator(EnterOperatorContext context) override {
    return proven(Role::Operator, text(context.getParams().getCredential()))
        .then([this, context](Verdict verdict) mutable {
          auto results = context.getResults(capnp::MessageSize{8, 1});
          results.setSession(house_.operators.open(
              verdict.proven ? std::optional<uid_t>(verdict.uid) : std::nullopt));
          peer_.entered(Role::Operator);
        });
  }

private:
  kj::Promise<Verdict> proven(Role role, std::string credential) {
    if (peer_.uid) return Verdict{.ok = true, .proven = true, .uid = *peer_.uid};
    auto verdict = std::make_shared<Verdict>();
    return house_
        .offload([&auth = house_.auth, role, nonces = nonces_, credential = std::move(credential),
                  verdict] { *verdict = auth.check(role, nonces, credential); })
        .then([this, role, verdict]() -> Verdict {
          if (!verdict->ok) refuse(role, verdict->why);
          return *verdict;
        });
  }

  [[noreturn]] void refuse(Role role, const std::string& why) {
    Line line("refused");
    line.add("role", describe(role)).add("address", peer_.address).add("why", why);
    if (house_.refusals.admits(line)) house_.log.warning(line);
    kj::throwFatalException(
        sentence("the master lets no such " + std::string(describe(role)) + " in: " + why));
  }

  House& house_;
  Peer peer_;
  Nonces nonces_;
};

class Entrance final : public wire::Master::Server {
public:
  Entrance(House& house, Peer peer) : house_(house), peer_(std::move(peer)) {}

protected:
  kj::Promise<void> greet(GreetContext context) override {
    auto params = context.getParams();
    VersionRange theirs{params.getMinVersion(), params.getMaxVersion()};
    auto version = commonVersion(kWireVersions, theirs);
    if (!version)
      kj::throwFatalException(sentence("no common version of the protocol: the master speaks " +
                                       describe(kWireVersions) + ", you speak " +
                                       describe(theirs)));
    auto nonce = params.getNonce();
    if (nonce.size() != kNonceBytes)
      kj::throwFatalException(sentence("a nonce has " + std::to_string(kNonceBytes) +
                                       " bytes, yours has " + std::to_string(nonce.size())));
    Nonces nonces{Nonce(nonce.begin(), nonce.end()), newNonce()};
    return proof(nonces).then([this, context, nonces, version](Proof proof) mutable {
      if (!proof.ok) kj::throwFatalException(sentence(proof.why));
      auto results = context.getResults();
      results.setVersion(*version);
      results.setNonce(bytes(nonces.master));
      toWire(house_.life.generation(), results.initGeneration());
      results.setCredential(proof.credential);
      results.setAuth(peer_.uid ? "peer" : house_.auth.name());
      results.setDoor(kj::heap<Door>(house_, peer_, nonces));
    });
  }

private:
  kj::Promise<Proof> proof(const Nonces& nonces) {
    if (peer_.uid) return Proof{.ok = true};
    auto proof = std::make_shared<Proof>();
    return house_
        .offload(
            [&auth = house_.auth, nonces, proof] { *proof = auth.prove(Role::Master, nonces); })
        .then([proof] { return *proof; });
  }

  House& house_;
  Peer peer_;
};

}  // namespace

wire::Master::Client newEntrance(House& house, Peer peer) {
  return kj::heap<Entrance>(house, std::move(peer));
}

}  // namespace ts
