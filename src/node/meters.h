// The node's metrics: what happened since it started, and at each scrape what is.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "metrics/metrics.h"
#include "node/registry.h"

namespace ts::node {

class Meters {
public:
  explicit Meters(Metrics& metrics);

  void ended(const std::string& verb, const Outcome& outcome, std::uint64_t tookUs);
  void overdue(const std::string& verb);
  void granted(std::uint64_t waitedUs);
  void yielded() { yields_.add(); }
  void refused(const char* why);

  struct Now {
    std::uint64_t connections = 0;
    bool masterUp = false;
    std::uint64_t overdue = 0;
    Bytes booked = 0;
  };
  // Looked up whenever somebody asks.
  void scrape(const Registry& registry, std::function<Now()> now);

private:
  struct Verb {
    Histogram& seconds;
    Counter& failed;
    Counter& bytes;
  };
  Verb& verb(const std::string& name);
  void setResidencies(const Registry& registry);

  Metrics& metrics_;
  std::map<std::string, Verb> verbs_;
  Histogram& waits_;
  Counter& yields_;
};

}  // namespace ts::node
