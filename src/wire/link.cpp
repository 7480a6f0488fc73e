#include "wire/link.h"

namespace ts {
namespace {

using VatSide = capnp::rpc::twoparty::Side;

capnp::ReaderOptions bounded() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = kMaxMessageBytes / sizeof(capnp::word);
  options.nestingLimit = 32;
  return options;
}

}  // namespace

Link::Link(kj::Own<kj::AsyncIoStream> stream, Side side, capnp::Capability::Client bootstrap)
    : stream_(kj::mv(stream)),
      network_(*stream_, side == Side::Caller ? VatSide::CLIENT : VatSide::SERVER, bounded()),
      rpc_(capnp::makeRpcServer(network_, kj::mv(bootstrap))) {
  // Calls under way hold their messages: a peer that only asks waits for its answers.
  rpc_.setFlowLimit(kMaxMessageBytes / sizeof(capnp::word));
}

Link::~Link() noexcept(false) = default;

capnp::Capability::Client Link::bootstrap() {
  capnp::MallocMessageBuilder message(8);
  auto vat = message.initRoot<capnp::rpc::twoparty::VatId>();
  // The other end: the listener's for a caller.
  vat.setSide(network_.getSide() == VatSide::CLIENT ? VatSide::SERVER : VatSide::CLIENT);
  return rpc_.bootstrap(vat);
}

}  // namespace ts
