#include <kj/debug.h>

#include "node/causes.h"
#include "node/facts.h"
#include "node/orders.h"

// The schema's NodeDaemon over Orders: reads parameters, writes results, decides nothing.
namespace ts::node {
namespace {

std::vector<std::uint32_t> indices(capnp::List<std::uint32_t>::Reader list) {
  std::vector<std::uint32_t> out;
  for (auto index : list) out.push_back(index);
  return out;
}

std::vector<MemberId> memberIds(capnp::List<std::uint64_t>::Reader list) {
  std::vector<MemberId> out;
  for (auto id : list) out.push_back(MemberId{id});
  return out;
}

constexpr auto kQuiesceSlack = 5 * kj::SECONDS;  // a lock that overruns its own deadline

}  // namespace

class Orders::Daemon final : public wire::NodeDaemon::Server {
public:
  Daemon(Orders& orders, std::uint64_t session) : orders_(orders), session_(session) {}

  kj::Promise<void> prepare(PrepareContext context) override {
    auto p = context.getParams();
    auto out = memberIds(p.getOutgoing());
    auto in = memberIds(p.getIncoming());
    auto order = read(p.getOrder(), "prepare");
    bool asksDriver = !orders_.parts_.preparation.isWeightless(out, in);
    if (asksDriver) order.limit = orders_.parts_.callLimit;
    return obey(context, order, [&o = orders_, job = order.job, out, in] {
      return o.parts_.preparation.prepare(job, out, in);
    });
  }
  kj::Promise<void> dropBooking(DropBookingContext context) override {
    auto order = read(context.getParams().getOrder(), "drop-booking");
    order.givesBack = true;
    return obey(context, order, [&o = orders_, job = order.job]() -> Soon<Outcome> {
      o.parts_.bookings.drop(job);
      return Outcome{};
    });
  }
  kj::Promise<void> quiesce(QuiesceContext context) override {
    auto p = context.getParams();
    auto deadline = p.getDeadlineUs() * kj::MICROSECONDS;
    auto order = read(p.getOrder(), "quiesce");
    order.moves = true;
    if (isHeavy(order)) order.limit = deadline + kQuiesceSlack;
    return obey(context, order, [&o = orders_, job = order.job, deadline] {
      return o.parts_.mover.quiesce(job, deadline);
    });
  }
  kj::Promise<void> release(ReleaseContext context) override {
    auto order = read(context.getParams().getOrder(), "release");
    order.moves = true;
    if (isHeavy(order)) order.limit = orders_.parts_.callLimit;
    return obey(context, order,
                [&o = orders_, job = order.job] { return o.parts_.mover.release(job); });
  }
  kj::Promise<void> save(SaveContext context) override {
    auto p = context.getParams();
    auto order = read(p.getOrder(), "save");
    order.moves = true;
    order.member = MemberId{p.getMember()};
    if (isHeavy(order)) order.limit = orders_.parts_.saveDeadline;
    return obey(context, order, [&o = orders_, job = order.job, member = order.member] {
      return o.parts_.mover.save(job, member);
    });
  }
  kj::Promise<void> restore(RestoreContext context) override {
    auto p = context.getParams();
    auto order = read(p.getOrder(), "restore");
    order.moves = true;
    order.member = MemberId{p.getMember()};
    if (isHeavy(order)) order.limit = orders_.parts_.restoreDeadline;
    return obey(context, order, [&o = orders_, job = order.job, member = order.member] {
      return o.parts_.mover.restore(job, member);
    });
  }
  kj::Promise<void> grant(GrantContext context) override {
    auto p = context.getParams();
    auto order = read(p.getOrder(), "grant");
    order.moves = true;
    if (isHeavy(order)) order.limit = orders_.parts_.callLimit;
    GrantOrder g{.job = order.job,
                 .epoch = fromWire(p.getEpoch()),
                 .devices = indices(p.getDevices()),
                 .waitedUs = p.getWaitedUs(),
                 .restored = p.getRestored(),
                 .bytes = p.getBytes()};
    order.grants = g.epoch;
    for (auto id : p.getRequests()) g.requests.push_back(RequestId{id});
    return obey(context, order, [&o = orders_, g] { return o.grant(g); });
  }
  kj::Promise<void> endSlice(EndSliceContext context) override {
    auto p = context.getParams();
    auto epoch = fromWire(p.getEpoch());
    auto order = read(p.getOrder(), "end-slice");
    order.givesBack = true;
    order.ends = epoch;
    return obey(context, order, [&o = orders_, job = order.job, epoch]() -> Soon<Outcome> {
      return o.endSlice(job, epoch);
    });
  }
  kj::Promise<void> discard(DiscardContext context) override {
    auto p = context.getParams();
    auto order = read(p.getOrder(), "discard");
    if (isHeavy(order)) order.limit = orders_.parts_.callLimit;
    return obey(context, order, [&o = orders_, member = MemberId{p.getMember()}] {
      return o.parts_.mover.discard(member);
    });
  }
  kj::Promise<void> kill(KillContext context) override {
    auto p = context.getParams();
    auto order = read(p.getOrder(), "kill");
    // What comes before the kill is bounded by itself.
    if (isHeavy(order)) {
      order.limit = kClearingQuiesce * 2 + orders_.parts_.saveDeadline + orders_.parts_.callLimit;
    }
    return obey(context, order, [&o = orders_, job = order.job, why = text(p.getWhy())] {
      return o.kill(job, why);
    });
  }
  kj::Promise<void> refuse(RefuseContext context) override {
    checkCurrent();
    auto p = context.getParams();
    RefuseOrder order{.request = RequestId{p.getRequest()}, .holder = text(p.getHolder())};
    order.why.code = Outcome::Code::Refused;
    order.why.cause = causeFromWire(p.getCause());
    order.why.need = p.getNeed();
    order.why.free = p.getFree();
    order.why.detail = text(p.getDetail());
    orders_.parts_.participants.refused(order);
    return kj::READY_NOW;
  }
  kj::Promise<void> askToYield(AskToYieldContext context) override {
    checkCurrent();
    auto p = context.getParams();
    orders_.parts_.participants.askToYield(fromWire(p.getKey()), fromWire(p.getEpoch()));
    return kj::READY_NOW;
  }
  kj::Promise<void> spans(SpansContext context) override {
    checkCurrent();
    auto p = context.getParams();
    std::set<std::string> nodes;
    for (auto name : p.getNodes()) nodes.insert(text(name));
    orders_.parts_.registry.setNodes(fromWire(p.getKey()), std::move(nodes));
    orders_.parts_.registry.setGathered(fromWire(p.getKey()), fromWire(p.getGathered()));
    return kj::READY_NOW;
  }
  kj::Promise<void> heartbeat(HeartbeatContext) override {
    checkCurrent();
    return kj::READY_NOW;
  }

private:
  static Order read(wire::Order::Reader reader, const char* verb) {
    return {.operation = OperationId{reader.getOperation()},
            .job = fromWire(reader.getKey()),
            .verb = verb};
  }

  // Only what can take long is watched: a turn with nothing to move wakes no timer.
  bool isHeavy(const Order& order) const {
    auto* backend = orders_.parts_.mover.backendOf(order.job);
    return backend && !backend->isWeightless();
  }

  void checkCurrent() const {
    if (orders_.isCurrent(session_)) return;
    // As if the line had broken: what it ordered is ordered again over the later one.
    kj::throwFatalException(sentence("this node has begun a later session; this one is void",
                                     kj::Exception::Type::DISCONNECTED));
  }

  template <class Context>
  kj::Promise<void> obey(Context context, Order order, Run run) {
    checkCurrent();
    context.releaseParams();
    auto outcome = orders_.obey(std::move(order), std::move(run));
    if (!outcome.isHere()) {
      return std::move(outcome).promise().then(
          [this, context](const Outcome& o) mutable { answer(context, o); });
    }
    answer(context, outcome.take());
    return kj::READY_NOW;
  }
  template <class Context>
  void answer(Context& context, const Outcome& outcome) {
    toWire(outcome, orders_.parts_.registry, context.getResults(room(outcome)).initOutcome());
  }
  // A first segment that fits: the default would clear 8 KiB per answer.
  static capnp::MessageSize room(const Outcome& outcome) {
    auto words = 32 + outcome.detail.size() / sizeof(capnp::word);
    for (const auto& fact : outcome.members) words += 8 + fact.devices.size();
    return {words, 0};
  }

  Orders& orders_;
  std::uint64_t session_;
};

wire::NodeDaemon::Client Orders::newDaemon() {
  return kj::heap<Daemon>(*this, ++session_);
}

}  // namespace ts::node
