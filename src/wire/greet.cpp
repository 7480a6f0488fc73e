#include "wire/greet.h"

#include "wire/translate.h"

namespace ts {
namespace {

kj::ArrayPtr<const kj::byte> bytes(const Nonce& nonce) {
  return kj::arrayPtr(nonce.data(), nonce.size());
}

// Runs `call` where blocking is fine and brings its value back.
template <class R>
kj::Promise<R> offloaded(const Offload& offload, std::function<R()> call) {
  auto value = std::make_shared<R>();
  return offload([value, call = std::move(call)] { *value = call(); }).then([value] {
    return std::move(*value);
  });
}

// Stands where an exception has its source file, which no peer can set.
constexpr const char* kMismatch = "auth mismatch";

kj::Exception mismatch(const std::string& theirs, const std::string& ours) {
  return kj::Exception(kj::Exception::Type::FAILED, kMismatch, 0,
                       kj::str("the master has auth = \"", theirs, "\", this side has \"", ours,
                               "\"; set `auth` to the same on both sides"));
}

// The master's proof, once its answer is here.
kj::Promise<void> believeMaster(const Greeted& greeted, std::string credential, Auth& auth,
                                const Offload& offload, uid_t masterUid) {
  if (greeted.auth == "peer") return kj::READY_NOW;  // its unix socket: the file system says whose
  if (greeted.auth != auth.name()) return mismatch(greeted.auth, auth.name());
  return offloaded<Verdict>(offload,
                            [&auth, nonces = greeted.nonces, credential] {
                              return auth.check(Role::Master, nonces, credential);
                            })
      .then([masterUid](Verdict verdict) -> kj::Promise<void> {
        if (!verdict.ok) return sentence("the master cannot prove itself: " + verdict.why);
        if (verdict.proven && verdict.uid != masterUid && verdict.uid != 0)
          return sentence("the master runs as uid " + std::to_string(verdict.uid) +
                          ", this side believes only uid " + std::to_string(masterUid));
        return kj::READY_NOW;
      });
}

// Our own credential: empty where the socket itself says who we are.
kj::Promise<std::string> credentialFor(Role role, const Greeted& greeted, Auth& auth,
                                       const Offload& offload) {
  if (greeted.auth == "peer") return std::string();
  return offloaded<Proof>(
             offload, [&auth, role, nonces = greeted.nonces] { return auth.prove(role, nonces); })
      .then([](Proof proof) -> kj::Promise<std::string> {
        if (!proof.ok) return sentence(proof.why);
        return std::move(proof.credential);
      });
}

kj::Promise<NodeEntry> entered(Generation highest, NodeEntry entry) {
  bool older = entry.generation.number < highest.number;
  bool other = entry.generation.number == highest.number && entry.generation != highest;
  if (older || other)
    return sentence("the master has generation " + std::to_string(entry.generation.number) +
                    ", this node follows " + (other ? "another master of" : "") + " generation " +
                    std::to_string(highest.number));
  return kj::mv(entry);
}

}  // namespace

Offload runHere() {
  return [](std::function<void()> call) -> kj::Promise<void> {
    call();
    return kj::READY_NOW;
  };
}

kj::Promise<Greeted> greet(wire::Master::Client master, Auth& auth, Offload offload,
                           uid_t masterUid) {
  Nonce ours = newNonce();
  auto request = master.greetRequest();
  request.setMinVersion(kWireVersions.min);
  request.setMaxVersion(kWireVersions.max);
  request.setNonce(bytes(ours));
  return request.send().then([ours, &auth, offload = std::move(offload),
                              masterUid](auto response) -> kj::Promise<Greeted> {
    auto nonce = response.getNonce();
    Greeted greeted{.version = response.getVersion(),
                    .generation = fromWire(response.getGeneration()),
                    .auth = text(response.getAuth()),
                    .nonces = {ours, Nonce(nonce.begin(), nonce.end())},
                    .door = response.getDoor()};
    if (!commonVersion(kWireVersions, {greeted.version, greeted.version}))
      return sentence("the master chose version " + std::to_string(greeted.version) +
                      " of the protocol, this side speaks " + describe(kWireVersions));
    auto believed =
        believeMaster(greeted, text(response.getCredential()), auth, offload, masterUid);
    return believed.then([greeted = kj::mv(greeted)]() mutable { return kj::mv(greeted); });
  });
}

kj::Promise<NodeEntry> enterNode(Greeted greeted, NodeHello hello, Auth& auth, Offload offload) {
  auto proof = credentialFor(Role::Node, greeted, auth, offload);
  return proof.then([greeted = kj::mv(greeted), hello = kj::mv(hello)](
                        std::string credential) mutable -> kj::Promise<NodeEntry> {
    auto request = greeted.door.enterNodeRequest();
    request.setCredential(credential);
    request.setName(hello.name);
    request.setInstance(hello.instance);
    toWire(hello.highest, request.initHighest());
    request.setDaemon(kj::mv(hello.daemon));
    hello.report(request.initReport());
    return request.send().then([highest = hello.highest](auto response) {
      return entered(highest, {.session = response.getSession(),
                               .generation = fromWire(response.getGeneration()),
                               .heartbeatUs = response.getHeartbeatUs()});
    });
  });
}

kj::Promise<wire::OperatorSession::Client> enterOperator(Greeted greeted, Auth& auth,
                                                         Offload offload) {
  auto proof = credentialFor(Role::Operator, greeted, auth, offload);
  return proof.then([greeted = kj::mv(greeted)](std::string credential) mutable {
    auto request = greeted.door.enterOperatorRequest();
    request.setCredential(credential);
    return request.send().then(
        [](auto response) -> wire::OperatorSession::Client { return response.getSession(); });
  });
}

bool isAuthMismatch(const kj::Exception& exception) {
  return std::string_view(exception.getFile()) == kMismatch;
}

// An exception that comes over the wire keeps its text and nothing else.
constexpr std::string_view kNameTaken = "the name is taken: ";

kj::Exception nameTaken(const std::string& text) {
  return sentence(std::string(kNameTaken) + text);
}

bool isNameTaken(const kj::Exception& exception) {
  return sentenceOf(exception).starts_with(kNameTaken);
}

kj::Exception sentence(std::string text, kj::Exception::Type type) {
  return kj::Exception(type, __FILE__, __LINE__, kj::str(text));
}

namespace {

// What the libraries below say is for those who know them.
std::string inOurWords(std::string text) {
  static constexpr std::string_view kHost = "params.host = ";
  auto host = text.find(kHost);
  if (text.find("DNS lookup failed") != text.npos && host != text.npos) {
    auto from = host + kHost.size();
    return "the name \"" + text.substr(from, text.find(';', from) - from) +
           "\" has no address: is it right, and does this machine's DNS know it?";
  }
  if (text.find("too many segments") != text.npos)
    return "what answers there does not speak our protocol: is the port right (6830, not 6831)?";
  return text;
}

}  // namespace

std::string sentenceOf(const kj::Exception& exception) {
  auto description = exception.getDescription();
  std::string text(description.begin(), description.size());
  static constexpr std::string_view kRemote = "remote exception: ";
  while (text.starts_with(kRemote)) text.erase(0, kRemote.size());
  return inOurWords(std::move(text));
}

}  // namespace ts
