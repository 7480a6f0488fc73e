// Moves the bytes of a block between its card and the memory of the process that owns it, and maps
// blocks at their addresses.
#pragma once

#include "simgpu/device_memory.h"

namespace simgpu {

// Address space of this process for the bytes of a block. False: it has none left.
bool makeRoom(Block& block);
void dropRoom(Block& block);
// Both false: the bytes are lost on the way, as when the file system that holds the card is full.
bool copyOut(Block& block);  // into the room made before; the extents are empty and stay reserved
bool copyIn(Block& block);   // into block.extents; the room is given back

// Maps what of the block the place shows.
bool show(const Place& place);
// Keeps the addresses, reachable by nobody.
void hide(const Place& place);

char* reserveRange(std::uint64_t bytes, std::uint64_t alignment);

}  // namespace simgpu
