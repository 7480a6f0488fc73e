#include "metrics/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace ts {
namespace {

void appendEscaped(std::string& to, const std::string& text, bool quotes) {
  for (char c : text) {
    if (c == '\\') {
      to += "\\\\";
    } else if (c == '\n') {
      to += "\\n";
    } else if (c == '"' && quotes) {
      to += "\\\"";
    } else {
      to += c;
    }
  }
}

// `a="x",b="y"`, without the braces.
std::string textOf(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += ',';
    text += name + "=\"";
    appendEscaped(text, value, true);
    text += '"';
  }
  return text;
}

std::string textOf(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string textOf(std::uint64_t value) {
  return std::to_string(value);
}

void appendHeader(std::string& to, const std::string& name, const std::string& help,
                  const char* type) {
  to += "# HELP " + name + ' ';
  appendEscaped(to, help, false);
  to += "\n# TYPE " + name + ' ' + type + '\n';
}

void appendSample(std::string& to, const std::string& name, const std::string& labels,
                  const std::string& value) {
  to += name;
  if (!labels.empty()) to += '{' + labels + '}';
  to += ' ' + value + '\n';
}

void appendSeries(std::string& to, const std::string& name, const std::string& labels,
                  const Histogram& histogram) {
  std::string prefix = labels.empty() ? "" : labels + ',';
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < histogram.buckets().size(); ++i) {
    below += histogram.buckets()[i];
    std::string bound = i < histogram.bounds().size() ? textOf(histogram.bounds()[i]) : "+Inf";
    appendSample(to, name + "_bucket", prefix + "le=\"" + bound + '"', textOf(below));
  }
  appendSample(to, name + "_sum", labels, textOf(histogram.sum()));
  appendSample(to, name + "_count", labels, textOf(histogram.count()));
}

template <class T>
void appendSeries(std::string& to, const std::string& name, const std::string& labels,
                  const T& single) {
  appendSample(to, name, labels, textOf(single.value()));
}

template <class Families>
void appendFamilies(std::string& to, const Families& families, const char* type) {
  for (const auto& [name, family] : families) {
    if (family.series.empty()) continue;
    appendHeader(to, name, family.help, type);
    for (const auto& [labels, metric] : family.series) appendSeries(to, name, labels, metric);
  }
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), buckets_(bounds_.size() + 1) {}

void Histogram::observe(double value) {
  auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++buckets_[std::size_t(bound - bounds_.begin())];
  ++count_;
  sum_ += value;
}

std::vector<double> secondsBounds() {
  return {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
          0.5,    1,      2,      5,     10,    20,    30,   60,   120,  300, 600};
}

Counter& Metrics::counter(const std::string& name, const std::string& help, const Labels& labels) {
  auto& family = counters_[name];
  family.help = help;
  return family.series[textOf(labels)];
}

Gauge& Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  auto& family = gauges_[name];
  family.help = help;
  return family.series[textOf(labels)];
}

Histogram& Metrics::histogram(const std::string& name, const std::string& help,
                              std::vector<double> bounds, const Labels& labels) {
  auto& family = histograms_[name];
  family.help = help;
  return family.series.try_emplace(textOf(labels), std::move(bounds)).first->second;
}

void Metrics::clear(const std::string& name) {
  counters_.erase(name);
  gauges_.erase(name);
  histograms_.erase(name);
}

std::string Metrics::render() {
  for (auto& update : updates_) update();
  std::string text;
  appendFamilies(text, counters_, "counter");
  appendFamilies(text, gauges_, "gauge");
  appendFamilies(text, histograms_, "histogram");
  return text;
}

}  // namespace ts
