// How a command ends when it cannot do what it was asked: an exit code and a sentence.
#pragma once

#include <stdexcept>
#include <string>

namespace ts::cli {

enum class Exit { Ok = 0, Failed = 1, Usage = 2, Unreachable = 69, BadConfig = 78 };

class Failure : public std::runtime_error {
public:
  Failure(Exit exit, const std::string& sentence) : std::runtime_error(sentence), exit_(exit) {}
  Exit exit() const { return exit_; }

private:
  Exit exit_;
};

}  // namespace ts::cli
