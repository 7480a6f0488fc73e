#include "simgpu/block_copy.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace simgpu {
namespace {

// Calls `part` for each piece of block bytes [from, from + bytes) that is contiguous in the card's
// file.
template <class Part>
void forPieces(const Block& block, std::uint64_t from, std::uint64_t bytes, Part part) {
  std::uint64_t start = 0;  // of the extent, in the block
  for (const Extent& e : block.extents) {
    std::uint64_t first = std::max(from, start);
    std::uint64_t last = std::min(from + bytes, start + e.bytes);
    if (first < last) part(first, Extent{e.offset + (first - start), last - first});
    start += e.bytes;
  }
}

// The parts of a block that hold data: what was never written reads as zero and takes no memory,
// here as on the card. Looked up for the whole block at once, since each look goes to the end of a
// run of data.
Extents dataOf(const Block& block) {
  Extents found;
  int fd = block.card->memoryFd();
  forPieces(block, 0, block.bytes, [&](std::uint64_t at, const Extent& piece) {
    auto end = static_cast<off_t>(piece.offset + piece.bytes);
    off_t hole = static_cast<off_t>(piece.offset);
    for (off_t data; (data = ::lseek(fd, hole, SEEK_DATA)) >= 0 && data < end;) {
      hole = std::min(end, ::lseek(fd, data, SEEK_HOLE));
      std::uint64_t offset = at + (static_cast<std::uint64_t>(data) - piece.offset);
      found.push_back({offset, static_cast<std::uint64_t>(hole - data)});
    }
  });
  return found;
}

// False: the file cannot be read, or the tmpfs that it is on is full.
template <class Call, class Buffer>
bool moveAll(Call call, int fd, Buffer* buffer, std::uint64_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    ssize_t n = call(fd, buffer, bytes, static_cast<off_t>(offset));
    if (n <= 0) return false;
    buffer += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::uint64_t>(n);
  }
  return true;
}

// Calls `part` for each piece of block bytes [from, from + bytes) that holds data.
template <class Part>
void forSavedPieces(const Block& block, std::uint64_t from, std::uint64_t bytes, Part part) {
  auto it = std::ranges::partition_point(
      block.savedData, [from](const Extent& e) { return e.offset + e.bytes <= from; });
  for (; it != block.savedData.end() && it->offset < from + bytes; ++it) {
    std::uint64_t first = std::max(from, it->offset);
    std::uint64_t last = std::min(from + bytes, it->offset + it->bytes);
    forPieces(block, first, last - first, part);
  }
}

// A read into memory that is there is several times as fast as one that faults it in, page by page.
// Kernels before 5.14 cannot do it; it is no more than faster.
void makePresent(char* at, std::uint64_t bytes) {
  constexpr std::uintptr_t kPage = 4096;
  std::uintptr_t first = reinterpret_cast<std::uintptr_t>(at) / kPage * kPage;
  std::uintptr_t last = reinterpret_cast<std::uintptr_t>(at) + bytes;
  ::madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
}

void discardPieces(const Block& block, std::uint64_t from, std::uint64_t bytes) {
  forPieces(block, from, bytes,
            [&](std::uint64_t, const Extent& piece) { block.card->discard(piece); });
}

}  // namespace

bool makeRoom(Block& block) {
  void* to = ::mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (to == MAP_FAILED) return false;
  ::madvise(to, block.bytes, MADV_HUGEPAGE);
  ::madvise(to, block.bytes, MADV_DONTFORK);
  block.saved = static_cast<char*>(to);
  return true;
}

void dropRoom(Block& block) {
  if (block.saved != nullptr) ::munmap(block.saved, block.bytes);
  block.saved = nullptr;
  block.savedData.clear();
}

bool copyOut(Block& block) {
  block.savedData = dataOf(block);
  int fd = block.card->memoryFd();
  bool good = true;
  block.card->transfer(Direction::DeviceToHost, block.bytes, [&](auto from, auto bytes) {
    forSavedPieces(block, from, bytes, [&](std::uint64_t at, const Extent& piece) {
      makePresent(block.saved + at, piece.bytes);
      good = moveAll(::pread, fd, block.saved + at, piece.bytes, piece.offset) && good;
    });
    // Freed as it goes, so that the bytes are in memory once and not twice.
    if (good) discardPieces(block, from, bytes);
  });
  return good;
}

bool copyIn(Block& block) {
  int fd = block.card->memoryFd();
  bool good = true;
  block.card->transfer(Direction::HostToDevice, block.bytes, [&](auto from, auto bytes) {
    forSavedPieces(block, from, bytes, [&](std::uint64_t at, const Extent& piece) {
      good = moveAll(::pwrite, fd, block.saved + at, piece.bytes, piece.offset) && good;
    });
    if (good) ::madvise(block.saved + from, bytes, MADV_DONTNEED);
  });
  if (good) dropRoom(block);
  return good;
}

bool show(const Place& place) {
  bool good = true;
  forPieces(*place.block, place.offset, place.bytes, [&](std::uint64_t at, const Extent& piece) {
    char* to = place.at + (at - place.offset);
    void* got = ::mmap(to, piece.bytes, place.protection, MAP_SHARED | MAP_FIXED,
                       place.block->card->memoryFd(), static_cast<off_t>(piece.offset));
    good = good && got == to;
  });
  // A child of fork has no device memory, as with the real driver.
  ::madvise(place.at, place.bytes, MADV_DONTFORK);
  return good;
}

void hide(const Place& place) {
  ::mmap(place.at, place.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
}

char* reserveRange(std::uint64_t bytes, std::uint64_t alignment) {
  void* raw = ::mmap(nullptr, bytes + alignment, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto start = reinterpret_cast<std::uintptr_t>(raw);
  std::uintptr_t at = (start + alignment - 1) / alignment * alignment;
  if (at > start) ::munmap(raw, at - start);
  std::uintptr_t end = start + bytes + alignment;
  if (end > at + bytes) ::munmap(reinterpret_cast<void*>(at + bytes), end - at - bytes);
  return reinterpret_cast<char*>(at);
}

}  // namespace simgpu
