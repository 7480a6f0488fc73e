// A log whose lines a test can look for.
#pragma once

#include <fcntl.h>
#include <kj/io.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "log/log.h"
#include "temp_dir.h"

namespace ts::test {

class LogFile {
public:
  explicit LogFile(Level threshold) : log(threshold, file_.get()) {}

  // The first line with all of these in it, or "".
  std::string line(const std::vector<std::string>& words) const {
    std::ifstream in(dir_ / "log");
    for (std::string line; std::getline(in, line);) {
      auto has = [&](const std::string& word) { return line.find(word) != std::string::npos; };
      if (std::ranges::all_of(words, has)) return line;
    }
    return "";
  }
  // How many have it.
  std::int64_t count(const std::string& word) const {
    std::ifstream in(dir_ / "log");
    std::int64_t count = 0;
    for (std::string line; std::getline(in, line);) count += line.find(word) != std::string::npos;
    return count;
  }

private:
  TempDir dir_;
  kj::AutoCloseFd file_{
      ::open((dir_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};

public:
  Log log;
};

}  // namespace ts::test
