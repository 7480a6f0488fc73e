// One Cap'n Proto connection: bounded messages; nonsense ends it and nothing else.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <cstdint>

namespace ts {

// A status of 10,000 jobs is some 10 MB; what a peer sends beyond the limit ends its connection.
inline constexpr std::uint64_t kMaxMessageBytes = 64ull << 20;

class Link {
public:
  enum class Side { Caller, Listener };

  // `bootstrap`: what the peer gets when it asks who we are; a caller has nothing to offer.
  Link(kj::Own<kj::AsyncIoStream> stream, Side side, capnp::Capability::Client bootstrap = nullptr);
  ~Link() noexcept(false);
  KJ_DISALLOW_COPY(Link);

  // The peer's bootstrap capability.
  template <class Interface>
  typename Interface::Client peer() {
    return bootstrap().castAs<Interface>();
  }

  // Resolves when the connection has ended, for whatever reason.
  kj::Promise<void> whenClosed() { return network_.onDisconnect(); }

private:
  capnp::Capability::Client bootstrap();

  kj::Own<kj::AsyncIoStream> stream_;
  capnp::TwoPartyVatNetwork network_;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc_;
};

}  // namespace ts
