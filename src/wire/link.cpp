#include "wire/link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cstring>

namespace ts {
namespace {

using VatSide = capnp::rpc::twoparty::Side;

// Cap'n Proto reads a message in two or more small pieces. One read of the kernel serves them all, and
// often the next message too.
class BufferedStream final : public kj::AsyncIoStream {
public:
  explicit BufferedStream(kj::Own<kj::AsyncIoStream> inner) : inner_(kj::mv(inner)) {}

  kj::Promise<size_t> tryRead(void* to, size_t minBytes, size_t maxBytes) override {
    size_t had = take(to, maxBytes);
    if (had >= minBytes) return had;
    auto* rest = static_cast<kj::byte*>(to) + had;
    size_t wanted = minBytes - had;
    if (wanted >= sizeof(buffer_))
      return inner_->tryRead(rest, wanted, maxBytes - had).then([had](size_t n) { return had + n; });
    return inner_->tryRead(buffer_, wanted, sizeof(buffer_))
        .then([this, rest, room = maxBytes - had, had](size_t n) {
          begin_ = 0;
          end_ = n;
          return had + take(rest, room);
        });
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    return inner_->write(buffer, size);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return inner_->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner_->whenWriteDisconnected(); }
  void shutdownWrite() override { inner_->shutdownWrite(); }
  void abortRead() override { inner_->abortRead(); }
  void getsockopt(int level, int option, void* value, kj::uint* length) override {
    inner_->getsockopt(level, option, value, length);
  }
  void setsockopt(int level, int option, const void* value, kj::uint length) override {
    inner_->setsockopt(level, option, value, length);
  }
  kj::Maybe<int> getFd() const override { return inner_->getFd(); }

private:
  size_t take(void* to, size_t room) {
    size_t n = std::min(room, end_ - begin_);
    std::memcpy(to, buffer_ + begin_, n);
    begin_ += n;
    return n;
  }

  kj::Own<kj::AsyncIoStream> inner_;
  size_t begin_ = 0;
  size_t end_ = 0;
  kj::byte buffer_[8192];
};

// Nagle would hold a grant back until the peer acknowledges what came before it.
kj::Own<kj::AsyncIoStream> prepared(kj::Own<kj::AsyncIoStream> stream) {
  KJ_IF_MAYBE (fd, stream->getFd()) {
    int on = 1;
    // Fails on a unix socket, which does not delay anything.
    (void)::setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return kj::heap<BufferedStream>(kj::mv(stream));
}

capnp::ReaderOptions bounded() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = kMaxMessageBytes / sizeof(capnp::word);
  options.nestingLimit = 32;
  return options;
}

}  // namespace

Link::Link(kj::Own<kj::AsyncIoStream> stream, Side side, capnp::Capability::Client bootstrap)
    : stream_(prepared(kj::mv(stream))),
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
