#include "cli/finding.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace ts::cli;

TEST_CASE("a node's report is read line by line, cures apart", "[cli]") {
  Findings findings = readReport(
      "ok\tnode n0; all well\nwarn\tpersistence mode is off; nvidia-smi -pm 1\nfail\tno "
      "driver\nnonsense\n");
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].what == "node n0; all well");
  CHECK(findings[1].verdict == Verdict::Warn);
  CHECK(findings[1].what == "persistence mode is off");
  CHECK(findings[1].cure == "nvidia-smi -pm 1");
  CHECK(findings[2].verdict == Verdict::Fail);
  CHECK(anyFailed(findings));
  findings.pop_back();
  CHECK_FALSE(anyFailed(findings));
}

TEST_CASE("findings are lines for people and objects for programs", "[cli]") {
  Findings findings{{Verdict::Ok, "fine", ""}, {Verdict::Fail, "broken", "mend it"}};
  CHECK(showFindings(findings) == "ok    fine\nfail  broken\n      mend it\n");
  auto json = nlohmann::json::parse(findingsJson(findings));
  CHECK(json["ok"] == false);
  CHECK(json["checks"][1]["cure"] == "mend it");
}
