#include "simgpu/block_copy.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

namespace simgpu {
namespace {

// Calls `part` for each piece of block bytes [from, from + bytes) that is contiguous in the card's file.
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

// The part of an extent that holds data: what was never written reads as zero and takes no memory, here
// as on the card.
std::optional<Extent> nextData(int fd, std::uint64_t from, std::uint64_t end) {
  off_t data = ::lseek(fd, static_cast<off_t>(from), SEEK_DATA);
  if (data < 0 || static_cast<std::uint64_t>(data) >= end) return std::nullopt;
  off_t hole = ::lseek(fd, data, SEEK_HOLE);
  auto first = static_cast<std::uint64_t>(data);
  std::uint64_t last = hole < 0 ? end : std::min(end, static_cast<std::uint64_t>(hole));
  return Extent{first, last - first};
}

void readAll(int fd, char* to, std::uint64_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    ssize_t n = ::pread(fd, to, bytes, static_cast<off_t>(offset));
    if (n <= 0) return;
    to += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::uint64_t>(n);
  }
}

void writeAll(int fd, const char* from, std::uint64_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    ssize_t n = ::pwrite(fd, from, bytes, static_cast<off_t>(offset));
    if (n <= 0) return;
    from += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::uint64_t>(n);
  }
}

void pieceOut(Block& block, std::uint64_t at, const Extent& piece) {
  int fd = block.card->memoryFd();
  std::uint64_t end = piece.offset + piece.bytes;
  for (std::uint64_t from = piece.offset; auto data = nextData(fd, from, end);) {
    std::uint64_t to = at + (data->offset - piece.offset);
    readAll(fd, block.saved + to, data->bytes, data->offset);
    block.savedData.push_back({to, data->bytes});
    from = data->offset + data->bytes;
  }
  block.card->discard(piece);
}

// Calls `part` for what was saved in block bytes [from, from + bytes).
template <class Part>
void forSaved(const Block& block, std::uint64_t from, std::uint64_t bytes, Part part) {
  auto it = std::ranges::partition_point(
      block.savedData, [from](const Extent& e) { return e.offset + e.bytes <= from; });
  for (; it != block.savedData.end() && it->offset < from + bytes; ++it) {
    std::uint64_t first = std::max(from, it->offset);
    part(first, std::min(from + bytes, it->offset + it->bytes) - first);
  }
}

}  // namespace

bool copyOut(Block& block) {
  void* to = ::mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (to == MAP_FAILED) return false;
  ::madvise(to, block.bytes, MADV_HUGEPAGE);
  ::madvise(to, block.bytes, MADV_DONTFORK);
  block.saved = static_cast<char*>(to);
  block.card->transfer(Direction::DeviceToHost, block.bytes, [&](auto from, auto bytes) {
    forPieces(block, from, bytes, [&](std::uint64_t at, const Extent& piece) {
      pieceOut(block, at, piece);
    });
  });
  return true;
}

void copyIn(Block& block) {
  block.card->transfer(Direction::HostToDevice, block.bytes, [&](auto from, auto bytes) {
    forSaved(block, from, bytes, [&](std::uint64_t first, std::uint64_t size) {
      forPieces(block, first, size, [&](std::uint64_t at, const Extent& piece) {
        writeAll(block.card->memoryFd(), block.saved + at, piece.bytes, piece.offset);
      });
    });
    // Given back as it goes, so that the bytes are in memory once and not twice.
    ::madvise(block.saved + from, bytes, MADV_DONTNEED);
  });
  ::munmap(block.saved, block.bytes);
  block.saved = nullptr;
  block.savedData.clear();
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
