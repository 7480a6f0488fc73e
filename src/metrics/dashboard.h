// The dashboard: one self-contained page that shows /status.json and keeps itself up to date.
#pragma once

#include <string_view>

namespace ts {

std::string_view dashboardPage();

}  // namespace ts
