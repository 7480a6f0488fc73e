// One GET, blocking.
#pragma once

#include <string>

namespace ts::bench {

// `address` is HOST:PORT; the answer is the body.
std::string httpGet(const std::string& address, const std::string& path);

}  // namespace ts::bench
