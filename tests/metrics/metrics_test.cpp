#include "metrics/metrics.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace ts;

TEST_CASE("counters and gauges render with help, type and labels", "[metrics]") {
  Metrics metrics;
  metrics.counter("ts_grants_total", "Grants given.", {{"group", "a"}}).add();
  metrics.counter("ts_grants_total", "Grants given.", {{"group", "b"}}).add(3);
  metrics.gauge("ts_waiting_jobs", "Jobs that wait.").set(2.5);
  CHECK(metrics.render() ==
        "# HELP ts_grants_total Grants given.\n"
        "# TYPE ts_grants_total counter\n"
        "ts_grants_total{group=\"a\"} 1\n"
        "ts_grants_total{group=\"b\"} 3\n"
        "# HELP ts_waiting_jobs Jobs that wait.\n"
        "# TYPE ts_waiting_jobs gauge\n"
        "ts_waiting_jobs 2.5\n");
}

TEST_CASE("what a name or help text contains cannot break the format", "[metrics]") {
  Metrics metrics;
  metrics.counter("x_total", "a \\ and\na newline", {{"job", "q\"\\\n"}}).add();
  CHECK(metrics.render() ==
        "# HELP x_total a \\\\ and\\na newline\n"
        "# TYPE x_total counter\n"
        "x_total{job=\"q\\\"\\\\\\n\"} 1\n");
}

TEST_CASE("a histogram's buckets are cumulative and a bound counts as below", "[metrics]") {
  Metrics metrics;
  Histogram& h = metrics.histogram("hold_seconds", "Hold times.", {0.1, 1}, {{"group", "a"}});
  for (double v : {0.05, 0.1, 0.5, 7.0}) h.observe(v);
  CHECK(metrics.render() ==
        "# HELP hold_seconds Hold times.\n"
        "# TYPE hold_seconds histogram\n"
        "hold_seconds_bucket{group=\"a\",le=\"0.1\"} 2\n"
        "hold_seconds_bucket{group=\"a\",le=\"1\"} 3\n"
        "hold_seconds_bucket{group=\"a\",le=\"+Inf\"} 4\n"
        "hold_seconds_sum{group=\"a\"} 7.65\n"
        "hold_seconds_count{group=\"a\"} 4\n");
}

TEST_CASE("the same name and labels are the same metric", "[metrics]") {
  Metrics metrics;
  Counter& first = metrics.counter("x_total", "X.", {{"a", "1"}});
  for (int i = 0; i < 100; ++i) metrics.counter("x_total", "X.", {{"a", std::to_string(i)}});
  first.add(5);
  CHECK(metrics.counter("x_total", "X.", {{"a", "1"}}).value() == 5);
}

TEST_CASE("gauges can be set anew at each scrape", "[metrics]") {
  Metrics metrics;
  int scrapes = 0;
  metrics.onScrape([&] {
    metrics.clear("jobs");
    metrics.gauge("jobs", "Jobs.", {{"group", std::to_string(++scrapes)}}).set(1);
  });
  metrics.render();
  CHECK(metrics.render() == "# HELP jobs Jobs.\n# TYPE jobs gauge\njobs{group=\"2\"} 1\n");
}

TEST_CASE("infinite values have Prometheus' spelling", "[metrics]") {
  Metrics metrics;
  metrics.gauge("a", "A.").set(std::numeric_limits<double>::infinity());
  metrics.gauge("b", "B.").set(std::numeric_limits<double>::quiet_NaN());
  std::string text = metrics.render();
  CHECK_THAT(text, Catch::Contains("a +Inf\n") && Catch::Contains("b NaN\n"));
}
