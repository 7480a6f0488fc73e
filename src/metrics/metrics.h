// Counters, gauges and histograms, and their text for Prometheus.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ts {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Counter {
public:
  void add(std::uint64_t n = 1) { value_ += n; }
  std::uint64_t value() const { return value_; }

private:
  std::uint64_t value_ = 0;
};

class Gauge {
public:
  void set(double value) { value_ = value; }
  void add(double difference) { value_ += difference; }
  double value() const { return value_; }

private:
  double value_ = 0;
};

// Fixed bounds, ascending; what is above the last counts in +Inf.
class Histogram {
public:
  explicit Histogram(std::vector<double> bounds);
  void observe(double value);
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  const std::vector<double>& bounds() const { return bounds_; }
  // Not cumulative; the last is +Inf's.
  const std::vector<std::uint64_t>& buckets() const { return buckets_; }

private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

// 100 us to 10 min: from a switch with nothing to move to a hold.
std::vector<double> secondsBounds();

// All metrics of a daemon; made by main() and handed down. For the loop's thread only. Asking again
// for the same name and labels yields the same metric, so look it up once and keep the reference:
// it stays valid until clear(name). Names end in their unit: _seconds, _bytes, _total for counters.
class Metrics {
public:
  Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram& histogram(const std::string& name, const std::string& help, std::vector<double> bounds,
                       const Labels& labels = {});
  // Forgets every series of the name: for gauges that are set anew at each scrape.
  void clear(const std::string& name);
  // Called before each render(): for values that are cheaper to look up than to keep.
  void onScrape(std::function<void()> update) { updates_.push_back(std::move(update)); }

  std::string render();

private:
  template <class T>
  struct Family {
    std::string help;
    std::map<std::string, T> series;  // by rendered labels
  };

  std::map<std::string, Family<Counter>> counters_;
  std::map<std::string, Family<Gauge>> gauges_;
  std::map<std::string, Family<Histogram>> histograms_;
  std::vector<std::function<void()>> updates_;
};

}  // namespace ts
