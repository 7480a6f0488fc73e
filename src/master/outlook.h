// Why a job's turn has not come, and when it may: for the task that waits for it before it starts.
#pragma once

#include <cstdint>
#include <string>

#include "master/shell.h"

namespace ts {

struct Outlook {
  std::uint32_t before = 0;   // jobs that are before it, or on its devices
  std::uint32_t missing = 0;  // participants that its gang lacks
  std::string text;           // a sentence without its end; names no job that is not before it
};

Outlook outlookOf(Shell& shell, const JobName& name);

}  // namespace ts
