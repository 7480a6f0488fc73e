#include <catch2/catch.hpp>

#include "cli/table.h"
#include "cli/words.h"

using namespace ts::cli;

TEST_CASE("columns are aligned, numbers to the right, and empty columns are left out", "[cli]") {
  Table table({"JOB", ">PLACE", "UNUSED", "WHY"});
  table.row({"a", "1", "", "no room"});
  table.row({"longer", "12"});
  CHECK(table.text() ==
        "JOB     PLACE  WHY\n"
        "a           1  no room\n"
        "longer     12\n");
}

TEST_CASE("a table without rows is its heading's worth of nothing", "[cli]") {
  CHECK(Table({"A", "B"}).empty());
}

TEST_CASE("width is counted in characters", "[cli]") {
  CHECK(widthOf("größer") == 6);
  Table table({"A", "B"});
  table.row({"ü", "x"});
  table.row({"uu", "y"});
  CHECK(table.text() == "A   B\nü   x\nuu  y\n");
}

TEST_CASE("text of others gives a terminal no orders", "[cli]") {
  CHECK(visible("a\x1b[2J\tb\r\x7f\n") == "a?[2J?b??\n");
  CHECK(visible("größer – 日本") == "größer – 日本");
  CHECK(visible("one byte \x9b, two \xc2\x9b") == "one byte ?, two ?");
  CHECK(visible("two \xc2\x9b\x9b") == "two ??");
  Table table({"A"});
  table.row({"two\nrows"});
  CHECK(table.text() == "A\ntwo?rows\n");
}

TEST_CASE("sizes and times are rounded for people", "[cli]") {
  CHECK(showBytes(0) == "0 B");
  CHECK(showBytes(1023) == "1023 B");
  CHECK(showBytes(1024) == "1.0 KiB");
  CHECK(showBytes((1ull << 30) * 31 + (1ull << 28)) == "31.2 GiB");
  CHECK(showBytes((1ull << 30) - 1) == "1.0 GiB");
  CHECK(showBytes(200ull << 30) == "200 GiB");
  CHECK(showBytes(5ull << 50) == "5120 TiB");
  CHECK(showDuration(870) == "870 us");
  CHECK(showDuration(1500) == "1.5 ms");
  CHECK(showDuration(12'345'678) == "12.3 s");
  CHECK(showDuration(125'000'000) == "2 min 5 s");
  CHECK(showDuration(7'500'000'000) == "2 h 5 min");
  CHECK(showDuration(86'400'000'000) == "1 d");
  CHECK(counted(1, "job") == "1 job");
  CHECK(counted(0, "job") == "0 jobs");
}
