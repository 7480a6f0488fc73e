// Moves the bytes of a block between its card and the memory of the process that owns it, and maps blocks
// at their addresses.
#pragma once

#include "simgpu/device_memory.h"

namespace simgpu {

// The bytes are in block.saved afterwards and off the card; the extents stay reserved. False: the process
// has no memory for them and nothing changed.
bool copyOut(Block& block);
// The bytes are on the card afterwards, in block.extents, and block.saved is given back.
void copyIn(Block& block);

// Maps what of the block the place shows.
bool show(const Place& place);
// Keeps the addresses, reachable by nobody.
void hide(const Place& place);

char* reserveRange(std::uint64_t bytes, std::uint64_t alignment);

}  // namespace simgpu
