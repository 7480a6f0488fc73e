// How ids read in text: a daemon knows its jobs by name, a test by letter.
#pragma once

#include <string>

#include "ids.h"

namespace ts {

class Names {
public:
  virtual ~Names() = default;
  virtual std::string job(JobId id) const { return std::to_string(std::uint32_t(id)); }
  virtual std::string node(NodeId id) const { return std::to_string(std::uint32_t(id)); }
  virtual std::string group(GroupId id) const { return std::to_string(std::uint32_t(id)); }
};

}  // namespace ts
