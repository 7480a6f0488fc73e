#include "master/reception.h"

#include <algorithm>

#include "master/alarm.h"
#include "master/report.h"
#include "wire/greet.h"

namespace ts {
namespace {

constexpr std::size_t kMaxNodeName = 253;  // of a host name

void checkName(const std::string& name) {
  bool fine = !name.empty() && name.size() <= kMaxNodeName &&
              name.find_first_of(" \t\n\"/") == std::string::npos;
  if (!fine) kj::throwFatalException(sentence("\"" + name + "\" is no name for a node"));
}

constexpr auto kAnswerLimit = 5 * kj::SECONDS;  // less than who asks to enter waits

kj::Promise<bool> answers(wire::NodeDaemon::Client& daemon, kj::Timer& timer, kj::Duration limit) {
  auto answered = daemon.heartbeatRequest(capnp::MessageSize{8, 0})
                      .send()
                      .then([](auto&&) { return true; }, [](kj::Exception&&) { return false; });
  return answered.exclusiveJoin(timer.afterDelay(limit).then([] { return false; }));
}

// A node that has not been seen for so long is not expected back.
constexpr std::uint64_t kExpectedForUs = 30ull * 24 * 3600 * 1'000'000;

}  // namespace

Reception::Reception(Shell& shell, Life& life, Standing& standing, kj::Timer& timer, Store& store,
                     Workers& workers)
    : shell_(shell),
      life_(life),
      standing_(standing),
      timer_(timer),
      store_(store),
      workers_(workers) {}

void Reception::expectKnown() {
  for (const NodeRow& row : store_.nodes()) {
    if (row.lastSeenUs + kExpectedForUs < unixNowUs()) continue;
    NodeRecord& node = shell_.directory().node(row.name);
    node.address = row.address;
    node.since = shell_.now();
  }
}

void Reception::remember(const NodeRecord& node) {
  node.link->keep(
      workers_
          .call<int>([&store = store_, row = NodeRow{node.name, node.address, unixNowUs()}] {
            store.remember(row);
            return 0;
          })
          .ignoreResult()
          // A full disk costs a line in `tsctl nodes`, not a node.
          .catch_([&log = shell_.events().log()](kj::Exception&& e) {
            log.error(Line("store-failed").add("why", sentenceOf(e)));
          }));
}

kj::Promise<void> Reception::enter(EnterNode context, std::string address,
                                   std::function<void(std::string why)> hangUp) {
  auto params = context.getParams();
  std::string name = text(params.getName());
  checkName(name);
  auto* first = shell_.directory().findNode(name);
  if (first == nullptr || first->link == nullptr || first->instance == params.getInstance()) {
    admit(kj::mv(context), std::move(address), std::move(hangUp));
    return kj::READY_NOW;
  }
  // A machine that came back may have left half a connection behind: that one answers nothing.
  auto limit = std::min(shell_.config().suspectAfter.count() * kj::MICROSECONDS, kAnswerLimit);
  return answers(first->link->daemon(), timer_, limit)
      .then([this, context = kj::mv(context), name, instance = first->instance, address,
             hangUp](bool answered) mutable {
        auto* now = shell_.directory().findNode(name);
        bool same = now != nullptr && now->link != nullptr && now->instance == instance;
        if (answered && same) refuseRival(*now, address);
        admit(kj::mv(context), address, hangUp);
      });
}

void Reception::refuseRival(const NodeRecord& first, const std::string& address) {
  shell_.events().log().warning(Line("node-refused")
                                    .add("node", first.name)
                                    .add("address", address)
                                    .add("why", "the name is taken")
                                    .add("by", first.address));
  kj::throwFatalException(nameTaken("node \"" + first.name + "\" is here already, from " +
                                    first.address + ", and this one comes from " + address +
                                    "; give one of the two another `name` in its node.toml"));
}

void Reception::admit(EnterNode context, std::string address,
                      std::function<void(std::string why)> hangUp) {
  auto params = context.getParams();
  std::string name = text(params.getName());
  fence(name, fromWire(params.getHighest()));
  NodeRecord& node = shell_.directory().node(name);
  if (node.link != nullptr) node.link->retire("node " + name + " has a later session");
  node.address = std::move(address);
  node.instance = params.getInstance();
  auto session = kj::heap<NodeSession>(shell_, node, params.getDaemon(), timer_, std::move(hangUp));
  node.link = &session->link();
  shell_.returned(node);
  remember(node);
  takeReport(shell_, node, params.getReport());
  auto results = context.getResults();
  toWire(life_.generation(), results.initGeneration());
  results.setHeartbeatUs(std::uint64_t(shell_.config().heartbeat.count()));
  NodeSession& ref = *session;
  results.setSession(kj::mv(session));
  ref.link().keep(kj::evalLast([this, &node, &ref] { open(node, ref); }));
}

void Reception::open(NodeRecord& node, NodeSession& session) {
  session.link().open();
  shell_.orders().repeat(node);
}

// Two masters are harmless because a node follows one, and says which.
void Reception::fence(const std::string& name, const Generation& highest) {
  const Generation& ours = life_.generation();
  if (highest.number < ours.number || highest == ours) return;
  bool unused = std::ranges::all_of(shell_.directory().nodes(), [](const NodeRecord* node) {
    return node->state == NodeState::Named;
  });
  if (highest.number == ours.number && !unused)
    kj::throwFatalException(sentence(
        "node " + name + " follows another master of generation " + std::to_string(ours.number) +
        "; stop one of the two, and start this one anew if the node is to follow it"));
  shell_.events().log().warning(Line("generation")
                                    .add("node", name)
                                    .add("seen", std::uint64_t(highest.number))
                                    .add("was", std::uint64_t(ours.number)));
  shell_.begin(life_.above(highest.number), true);
  standing_.apply();
}

}  // namespace ts
