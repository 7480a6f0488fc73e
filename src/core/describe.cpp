#include "describe.h"

#include <array>

namespace ts {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 does not deduce aggregates

// Builds `verb key=value key=value`; a key whose value is the usual one is left out.
class Line {
public:
  Line(const char* verb, const Names& names) : text_(verb), names_(names) {}

  Line& job(JobId id) { return id == JobId{} ? *this : put("job", names_.job(id)); }
  Line& holder(JobId id) { return id == JobId{} ? *this : put("holder", names_.job(id)); }
  Line& node(NodeId id) { return put("node", names_.node(id)); }
  Line& group(GroupId id) { return put("group", names_.group(id)); }
  Line& op(OperationId id) { return put("op", number(id)); }
  Line& epoch(Epoch e) { return put("epoch", ts::text(e)); }
  Line& cause(Cause c) { return c == Cause::None ? *this : put("cause", ts::text(c)); }
  Line& devices(const Devices& all) { return put("devices", ts::text(all, names_)); }
  Line& detail(const std::string& s) { return s.empty() ? *this : put("detail", '"' + s + '"'); }
  Line& put(const char* key, const std::string& value) {
    text_ += std::string(" ") + key + "=" + value;
    return *this;
  }
  Line& put(const char* key, std::uint64_t value) { return put(key, std::to_string(value)); }
  Line& some(const char* key, std::uint64_t value) { return value ? put(key, value) : *this; }
  Line& yes(const char* key, bool on) { return on ? put(key, "yes") : *this; }
  template <typename Id>
  Line& id(const char* key, Id value) {
    return put(key, number(value));
  }
  template <typename Id>
  Line& ids(const char* key, const std::vector<Id>& all) {
    std::string list;
    for (Id value : all) list += (list.empty() ? "" : ",") + number(value);
    return list.empty() ? *this : put(key, list);
  }
  Line& fact(const MemberFact& f) {
    id("member", f.member).put("residency", ts::text(f.residency));
    some("bytes", f.bytes).some("residue", f.residue);
    if (f.unreleased) put("released", "no");
    return f.devices.empty() ? *this : devices(f.devices);
  }
  std::string done() { return std::move(text_); }

private:
  template <typename Id>
  static std::string number(Id value) {
    return std::to_string(static_cast<std::uint64_t>(value));
  }
  std::string text_;
  const Names& names_;
};

template <typename Enum, std::size_t N>
const char* word(const std::array<const char*, N>& words, Enum value) {
  return static_cast<std::size_t>(value) < N ? words[static_cast<std::size_t>(value)] : "?";
}

std::string outcomeText(const OperationId operation, const Outcome& o, const Names& names) {
  Line line("finished", names);
  line.op(operation).put("code", text(o.code)).cause(o.cause);
  line.some("need", o.need).some("free", o.free).yes("lasting", o.lasting).some("bytes", o.bytes);
  for (const MemberFact& f : o.members) line.fact(f);
  return line.detail(o.detail).done();
}

std::string declaredText(const JobDeclared& e, const Names& names) {
  Line line("declared", names);
  line.job(e.job).group(e.group).some("gang", e.options.gang);
  if (e.options.priority != 0) line.put("priority", std::to_string(e.options.priority));
  line.yes("keep-broken", e.options.onBroken == OnBroken::Keep);
  for (NodeId node : e.nodes) line.node(node);
  return line.yes("gathered", e.gathered).done();
}

std::string grantText(const Grant& a, const Names& names) {
  Line line("grant", names);
  line.node(a.node).job(a.job).op(a.operation).epoch(a.epoch).devices(a.devices);
  line.ids("requests", a.requests);
  line.put("waited_us", std::uint64_t(a.waited.count())).put("restored", a.restored ? "yes" : "no");
  return line.some("bytes", a.bytes).done();
}

std::string refuseText(const Refuse& a, const Names& names) {
  Line line("refuse", names);
  line.id("request", a.request).cause(a.cause).holder(a.holder);
  return line.some("need", a.need).some("free", a.free).detail(a.detail).done();
}

std::string noticeText(const Notice& a, const Names& names) {
  Line line(text(a.kind), names);
  line.job(a.job).cause(a.cause);
  if (a.fault != FaultKind::None) line.put("fault", text(a.fault));
  return line.detail(a.detail).done();
}

template <typename Order>
Line order(const char* verb, const Order& a, const Names& names) {
  Line line(verb, names);
  line.node(a.node).job(a.job).op(a.operation);
  return line;
}

}  // namespace

const char* text(Residency r) {
  static constexpr std::array words{"absent", "resident", "quiescing", "quiet",
                                    "saving", "saved",    "restoring", "faulted"};
  return word(words, r);
}

const char* text(Cause c) {
  static constexpr std::array words{"none",
                                    "unknown-group",
                                    "unknown-participant",
                                    "device-owned",
                                    "no-claim",
                                    "not-entered",
                                    "already-waiting",
                                    "already-entered",
                                    "busy",
                                    "deadlock",
                                    "cancelled",
                                    "paused",
                                    "evicted",
                                    "no-host-memory",
                                    "no-device-memory",
                                    "not-released",
                                    "stranger",
                                    "node-suspect",
                                    "node-dead",
                                    "job-faulted",
                                    "blocked",
                                    "broken",
                                    "outside",
                                    "unsupported",
                                    "driver-error",
                                    "target-gone",
                                    "overdue",
                                    "stale",
                                    "forbidden",
                                    "drained",
                                    "no-record"};
  return word(words, c);
}

const char* text(FaultKind f) {
  static constexpr std::array words{"none", "quiesce", "save", "restore", "grant"};
  return word(words, f);
}

const char* text(Outcome::Code c) {
  static constexpr std::array words{"ok", "refused", "failed", "gone"};
  return word(words, c);
}

const char* text(Notice::Kind k) {
  static constexpr std::array words{
      "switch-started",   "switch-finished", "switch-rolled-back", "slice-ended",  "job-faulted",
      "job-broken",       "outside",         "reentry-let-in",     "missed-slice", "gang-gathered",
      "waiter-held-back", "stale-dropped",   "join-refused"};
  return word(words, k);
}

const char* text(JobPhase p) {
  static constexpr std::array words{"idle",   "waiting", "switching", "holding",
                                    "parked", "faulted", "broken"};
  return word(words, p);
}

std::string text(Epoch e) {
  return std::to_string(e.generation) + "." + std::to_string(e.counter);
}

std::string text(const Devices& devices, const Names& names) {
  std::string all;
  const Device* last = nullptr;
  for (const Device& d : devices) {
    if (!last || last->node != d.node) {
      all += (last ? " " : "") + names.node(d.node) + ":";
    } else {
      all += ",";
    }
    all += std::to_string(d.index);
    last = &d;
  }
  return all.empty() ? "none" : all;
}

std::string describe(const Event& event, const Names& names) {
  auto say = [&](const char* verb) { return Line(verb, names); };
  return std::visit(
      Overloaded{
          [&](const NodeJoined& e) {
            return say("node-joined").node(e.node).devices(e.devices).done();
          },
          [&](const NodeReported& e) { return say("node-reported").node(e.node).done(); },
          [&](const NodeSuspected& e) { return say("node-suspected").node(e.node).done(); },
          [&](const NodeDied& e) { return say("node-died").node(e.node).done(); },
          [&](const NodeDrained& e) {
            return say(e.on ? "drained" : "undrained").node(e.node).done();
          },
          [&](const JobDeclared& e) { return declaredText(e, names); },
          [&](const JobEnded& e) { return say("ended").job(e.job).done(); },
          [&](const ParticipantJoined& e) {
            Line line = say("joined");
            line.job(e.job).node(e.node).id("participant", e.participant);
            return line.id("process", e.process).devices(e.devices).done();
          },
          [&](const ParticipantLeft& e) {
            return say("left")
                .id("participant", e.participant)
                .yes("died", e.died)
                .yes("undone", e.undone)
                .done();
          },
          [&](const MemberSeen& e) {
            return say("seen").job(e.job).node(e.node).fact(e.fact).done();
          },
          [&](const MemberDied& e) { return say("died").id("member", e.member).done(); },
          [&](const MemberCleared& e) { return say("cleared").id("member", e.member).done(); },
          [&](const AcquireRequested& e) {
            Line line = say("acquire");
            line.id("request", e.request).id("participant", e.participant);
            return line.yes("try", e.tryOnly).some("ticket", e.ticket).done();
          },
          [&](const AcquireCancelled& e) { return say("cancel").id("request", e.request).done(); },
          [&](const Yielded& e) {
            return say("yield").id("participant", e.participant).epoch(e.epoch).done();
          },
          [&](const SliceReported& e) {
            return say("in-slice").id("participant", e.participant).epoch(e.epoch).done();
          },
          [&](const GrantReported& e) {
            Line line = say("granted");
            return line.job(e.job).node(e.node).epoch(e.epoch).devices(e.devices).done();
          },
          [&](const OrderFinished& e) { return outcomeText(e.operation, e.outcome, names); },
          [&](const OrderOverdue& e) {
            return say("overdue").op(e.operation).detail(e.detail).done();
          },
          [&](const TimePassed&) { return say("time-passed").done(); },
          [&](const GroupPaused& e) {
            return say(e.on ? "pause" : "resume").group(e.group).done();
          },
          [&](const JobEvicted& e) { return say("evict").job(e.job).yes("kill", e.kill).done(); },
          [&](const FaultCleared& e) { return say("clear-fault").job(e.job).done(); },
      },
      event);
}

std::string describe(const Action& action, const Names& names) {
  return std::visit(
      Overloaded{
          [&](const Prepare& a) {
            Line line = order("prepare", a, names);
            return line.ids("outgoing", a.outgoing).ids("incoming", a.incoming).done();
          },
          [&](const DropBooking& a) { return order("drop-booking", a, names).done(); },
          [&](const Quiesce& a) { return order("quiesce", a, names).done(); },
          [&](const Release& a) { return order("release", a, names).done(); },
          [&](const Save& a) { return order("save", a, names).id("member", a.member).done(); },
          [&](const Restore& a) {
            return order("restore", a, names).id("member", a.member).done();
          },
          [&](const Grant& a) { return grantText(a, names); },
          [&](const EndSlice& a) { return order("end-slice", a, names).epoch(a.epoch).done(); },
          [&](const Discard& a) {
            return order("discard", a, names).id("member", a.member).done();
          },
          [&](const Kill& a) { return order("kill", a, names).put("why", text(a.why)).done(); },
          [&](const Refuse& a) { return refuseText(a, names); },
          [&](const AskToYield& a) {
            return Line("ask-to-yield", names).node(a.node).job(a.job).epoch(a.epoch).done();
          },
          [&](const Notice& a) { return noticeText(a, names); },
      },
      action);
}

std::string describe(const Event& event) {
  return describe(event, Names{});
}

std::string describe(const Action& action) {
  return describe(action, Names{});
}

}  // namespace ts
