#include "master/order_request.h"

#include "core/describe.h"
#include "master/node_link.h"

namespace ts {

OperationId operationOf(const NodeOrder& order) {
  return std::visit([](const auto& o) { return o.operation; }, order);
}
NodeId nodeOf(const NodeOrder& order) {
  return std::visit([](const auto& o) { return o.node; }, order);
}
JobId jobOf(const NodeOrder& order) {
  return std::visit([](const auto& o) { return o.job; }, order);
}

namespace {

struct Verb {
  std::string_view operator()(const Prepare&) const { return "prepare"; }
  std::string_view operator()(const DropBooking&) const { return "drop-booking"; }
  std::string_view operator()(const Quiesce&) const { return "quiesce"; }
  std::string_view operator()(const Release&) const { return "release"; }
  std::string_view operator()(const Save&) const { return "save"; }
  std::string_view operator()(const Restore&) const { return "restore"; }
  std::string_view operator()(const Grant&) const { return "grant"; }
  std::string_view operator()(const EndSlice&) const { return "end-slice"; }
  std::string_view operator()(const Discard&) const { return "discard"; }
  std::string_view operator()(const Kill&) const { return "kill"; }
};

// Makes each call with a first segment that fits: the default would clear 8 KiB per message.
class Caller {
public:
  Caller(NodeLink& link, Directory& directory, const JobRecord& job)
      : link_(link), daemon_(link.daemon()), directory_(directory), job_(job) {}

  kj::Promise<Outcome> operator()(const Prepare& o) {
    auto request = daemon_.prepareRequest(room(o.outgoing.size() + o.incoming.size()));
    fill(request.initOrder(), o);
    write(o.outgoing, request.initOutgoing(unsigned(o.outgoing.size())));
    write(o.incoming, request.initIncoming(unsigned(o.incoming.size())));
    return answer(request, o);
  }
  kj::Promise<Outcome> operator()(const DropBooking& o) {
    auto request = daemon_.dropBookingRequest(room(0));
    fill(request.initOrder(), o);
    return answer(request, o);
  }
  kj::Promise<Outcome> operator()(const Quiesce& o) {
    auto request = daemon_.quiesceRequest(room(0));
    fill(request.initOrder(), o);
    request.setDeadlineUs(std::uint64_t(o.deadline.count()));
    return answer(request, o);
  }
  kj::Promise<Outcome> operator()(const Release& o) {
    auto request = daemon_.releaseRequest(room(0));
    fill(request.initOrder(), o);
    return answer(request, o);
  }
  kj::Promise<Outcome> operator()(const Save& o) {
    auto request = daemon_.saveRequest(room(o.devices.size()));
    return moved(request, o);
  }
  kj::Promise<Outcome> operator()(const Restore& o) {
    auto request = daemon_.restoreRequest(room(o.devices.size()));
    return moved(request, o);
  }
  kj::Promise<Outcome> operator()(const Grant& o) {
    auto request = daemon_.grantRequest(room(o.devices.size() + o.requests.size()));
    fill(request.initOrder(), o);
    toWire(o.epoch, request.initEpoch());
    toWire(o.devices, request.initDevices(unsigned(o.devices.size())));
    auto requests = request.initRequests(unsigned(o.requests.size()));
    for (unsigned i = 0; i < requests.size(); ++i) {
      auto* record = directory_.find(o.requests[i]);
      requests.set(i, record == nullptr ? 0 : record->local);
    }
    request.setWaitedUs(std::uint64_t(o.waited.count()));
    request.setRestored(o.restored);
    request.setBytes(o.bytes);
    return answer(request, o);
  }
  kj::Promise<Outcome> operator()(const EndSlice& o) {
    auto request = daemon_.endSliceRequest(room(0));
    fill(request.initOrder(), o);
    toWire(o.epoch, request.initEpoch());
    return answer(request, o);
  }
  kj::Promise<Outcome> operator()(const Discard& o) {
    auto request = daemon_.discardRequest(room(0));
    fill(request.initOrder(), o);
    request.setMember(local(o.member));
    return answer(request, o);
  }
  kj::Promise<Outcome> operator()(const Kill& o) {
    auto request = daemon_.killRequest(room(8));
    fill(request.initOrder(), o);
    request.setWhy(kj::str("the master ordered it: ", text(o.why)));
    return answer(request, o);
  }

private:
  capnp::MessageSize room(std::size_t words) const {
    return {32 + words + (job_.name.group.size() + job_.name.name.size()) / 8, 0};
  }
  template <class O>
  void fill(wire::Order::Builder out, const O& order) {
    out.setOperation(std::uint64_t(order.operation));
    toWire(job_.name, out.initKey());
  }
  std::uint64_t local(MemberId member) const {
    auto* record = directory_.find(member);
    return record == nullptr ? 0 : record->local;
  }
  void write(const std::vector<MemberId>& members, capnp::List<std::uint64_t>::Builder out) const {
    for (unsigned i = 0; i < out.size(); ++i) out.set(i, local(members[i]));
  }
  template <class Request, class O>
  kj::Promise<Outcome> moved(Request& request, const O& o) {
    fill(request.initOrder(), o);
    request.setMember(local(o.member));
    toWire(o.devices, request.initDevices(unsigned(o.devices.size())));
    return answer(request, o);
  }
  template <class Request, class O>
  kj::Promise<Outcome> answer(Request& request, const O& o) {
    link_.answers().drop();
    link_.owed().give();
    return request.send().then([&link = link_, node = o.node](auto&& response) {
      auto outcome = fromWire(response.getOutcome(), node);
      link.answers().keep(kj::mv(response));
      return outcome;
    });
  }

  NodeLink& link_;
  wire::NodeDaemon::Client& daemon_;
  Directory& directory_;
  const JobRecord& job_;
};

}  // namespace

std::string_view verbOf(const NodeOrder& order) {
  return std::visit(Verb{}, order);
}

kj::Promise<Outcome> send(NodeLink& link, Directory& directory, const JobRecord& job,
                          const NodeOrder& order) {
  return std::visit(Caller(link, directory, job), order);
}

}  // namespace ts
