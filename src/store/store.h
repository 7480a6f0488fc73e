// What a master keeps on disk: its generation, the nodes it has seen, standing orders, the
// history of events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ts {

struct EventRow {
  std::uint64_t unixUs = 0;
  std::string text;  // one logfmt line; its first word is the verb
};
struct NodeRow {
  std::string name;
  std::string address;
  std::uint64_t lastSeenUs = 0;
};
// What an operator has ordered until further notice.
struct StandingOrder {
  std::string what;  // "paused", "drained"
  std::string name;  // of the group, of the node
};

// What to do when the folder of a database is not there; "": it is.
std::string missingFolder(const std::string& path);

// SQLite in WAL mode, for one process at a time. Every call may block on a disk: the generation and
// the nodes are for start-up and rare events, the history belongs on a worker. Calls may come from
// any thread. A failure throws std::runtime_error with the path and SQLite's reason.
class Store {
public:
  // The file and its tables are made when they are not there. ":memory:" for tests.
  explicit Store(const std::string& path);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  std::uint32_t lastGeneration();  // 0: none yet
  // On disk when this returns, whatever happens to the machine afterwards.
  void setGeneration(std::uint32_t number);

  void remember(const NodeRow& node);
  std::vector<NodeRow> nodes();

  void keep(const StandingOrder& order, bool on);
  std::vector<StandingOrder> standingOrders();

  // One transaction. Only the newest `keepEvents` stay.
  void append(const std::vector<EventRow>& events);
  // The oldest `limit` of those at or after `sinceUs`, in order.
  std::vector<EventRow> eventsSince(std::uint64_t sinceUs, std::size_t limit);

  void setKeepEvents(std::uint64_t count);

private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ts
