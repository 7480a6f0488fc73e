// Bytes as a local program may send them: whatever they are, they are refused or understood.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "node/claim.h"
#include "node/message_check.h"

using namespace ts::node;

namespace {

const std::vector<NamedDevice>& devices() {
  static const std::vector<NamedDevice> two{{0, "GPU-fuzz-0", ""}, {1, "GPU-fuzz-1", ""}};
  return two;
}

void demand(bool promise) {
  if (!promise) std::abort();
}

// As whoever receives it reads it.
void read(const tsl_message& m) {
  if (m.header.type == TSL_CLAIM) {
    auto claim = parseClaim(std::string(textOf(m.u.claim.devices)), devices());
    demand(claim.ok || !claim.why.empty());
    for (auto index : claim.devices) demand(index < devices().size());
  }
  if (m.header.type == TSL_JOIN) {
    demand(!isName(textOf(m.u.join.group)) || textOf(m.u.join.group).size() < TSL_TEXT_GROUP);
    demand(printable(textOf(m.u.join.job)).size() == textOf(m.u.join.job).size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint64_t last = 0;
  while (size > 0) {
    tsl_message m{};
    auto piece = std::min(size, sizeof(m));
    std::memcpy(&m, data, piece);
    data += piece;
    size -= piece;
    if (auto rejection = checkMessage(m, piece, false, last)) {
      demand(!rejection->why.empty() && rejection->status != TSL_OK);
      return 0;  // ends the connection
    }
    demand(m.header.type == TSL_HELLO || last != 0 || m.header.type == TSL_CANCEL);
    if (isOrdered(m.header.type)) last = m.header.request;
    read(m);
  }
  return 0;
}
