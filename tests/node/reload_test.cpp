#include "node/reload.h"

#include <fcntl.h>
#include <kj/io.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "temp_dir.h"

using namespace ts;

TEST_CASE("a reload takes what may change and names what needs a restart", "[node]") {
  test::TempDir dir;
  kj::AutoCloseFd file(::open((dir / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Log log(Level::Info, file.get());
  std::ofstream(dir / "node.toml") << "log_level = \"debug\"\n"
                                      "host_budget = \"1 GiB\"\n"
                                      "save_deadline = \"7 s\"\n"
                                      "backend = \"none\"\n";
  NodeConfig config;
  auto before = config;
  REQUIRE(node::reload(config, dir / "node.toml", log));
  CHECK(config.hostBudget == 1ull << 30);
  CHECK(log.enabled(Level::Debug));
  CHECK(config.saveDeadline == before.saveDeadline);
  std::ifstream in(dir / "log");
  std::string said(std::istreambuf_iterator<char>(in), {});
  CHECK(said.find("needs-restart key=save_deadline") != std::string::npos);
  CHECK(said.find("needs-restart key=backend") != std::string::npos);
  CHECK(said.find("needs-restart key=host_budget") == std::string::npos);

  std::ofstream(dir / "node.toml") << "log_level = \"loud\"\n";
  CHECK_FALSE(node::reload(config, dir / "node.toml", log));
  CHECK(config.hostBudget == 1ull << 30);
}
