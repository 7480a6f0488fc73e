// What a bug report does not tell: whose jobs they are, what they are called, and secrets.
#pragma once

#include <map>
#include <string>

#include "config/config.h"

namespace ts::cli {

// Replaces names by others that stay the same throughout a report, so that it can still be
// followed.
class Mask {
public:
  void job(const std::string& name);          // becomes job-1, job-2 …
  void learnEvents(const std::string& line);  // jobs that have ended are only named there
  std::string apply(const std::string& text) const;

private:
  std::map<std::string, std::string> names_;
};

// The effective values that explain behaviour. Lists of users and the jobs' environment, which may
// hold secrets, are only counted; a key that is not named here is not told.
std::string maskedConfig(const MasterConfig& config);
std::string maskedConfig(const NodeConfig& config);

}  // namespace ts::cli
