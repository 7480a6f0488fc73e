// The device memory of one process: blocks of card memory, mapped at addresses that stay. A save
// moves the bytes of every block to the process's own memory and frees the card; a restore moves
// them back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "simgpu/cuda_abi.h"
#include "simgpu/host.h"

namespace simgpu {

struct Context;

struct Block {
  Card* card = nullptr;
  const Context* owner = nullptr;  // null: of no context (made by cuMemCreate)
  std::uint64_t bytes = 0;
  Extents extents;        // empty while saved
  char* saved = nullptr;  // the bytes while saved
  Extents savedData;      // which of them are not zero by never having been written
  unsigned handles = 0;   // open handles of cuMemCreate
};

// Where a block, or a part of it, is mapped.
struct Place {
  char* at = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t asked = 0;   // what the program asked for; bytes are rounded up
  std::uint64_t offset = 0;  // in the block
  int protection = 0;
  bool ownsRange = false;  // of cuMemAlloc: the address range goes with it
  std::shared_ptr<Block> block;
};

class DeviceMemory {
public:
  DeviceMemory(Host& host, unsigned slot) : host_(host), slot_(slot) {}

  CUresult allocate(const Context& context, Card& card, std::uint64_t bytes, CUdeviceptr& out);
  CUresult free(CUdeviceptr at);
  void freeAllOf(const Context& context);
  // Memory that a context takes by itself.
  CUresult allocateHidden(const Context& context, Card& card, std::uint64_t bytes);

  CUresult reserve(std::uint64_t bytes, std::uint64_t alignment, CUdeviceptr& out);
  CUresult unreserve(CUdeviceptr at, std::uint64_t bytes);
  CUresult create(Card& card, std::uint64_t bytes, CUmemGenericAllocationHandle& out);
  CUresult release(CUmemGenericAllocationHandle handle);
  CUresult retain(CUdeviceptr at, CUmemGenericAllocationHandle& out);
  CUresult map(CUdeviceptr at, std::uint64_t bytes, std::uint64_t offset,
               CUmemGenericAllocationHandle handle);
  CUresult unmap(CUdeviceptr at, std::uint64_t bytes);
  CUresult setAccess(CUdeviceptr at, std::uint64_t bytes, int protection);

  std::optional<Place> find(CUdeviceptr at);
  // All of the range is device memory that may be touched.
  bool covers(CUdeviceptr at, std::uint64_t bytes);
  std::uint64_t heldOn(const Card& card);
  std::uint64_t allBytes();  // wherever they are
  std::size_t count();       // of allocations that are mapped

  // Called with no device work in flight and none to come. Either all is moved or nothing;
  // CUDA_ERROR_UNKNOWN when neither could be kept.
  CUresult saveAll();
  void freeSaved();  // what was saved no longer holds the cards
  CUresult restoreAll();

private:
  using Places = std::map<std::uintptr_t, Place>;
  std::shared_ptr<Block> makeBlock(const Context* owner, Card& card, std::uint64_t bytes);
  void dropIfUnused(const std::shared_ptr<Block>& block);
  void dropPlace(const Place& place);
  bool takeAll();
  void giveBackAll();
  Place* findLocked(CUdeviceptr at);
  std::shared_ptr<Block> blockOf(CUmemGenericAllocationHandle handle);
  template <class Action>
  CUresult forPlacesIn(CUdeviceptr at, std::uint64_t bytes, Action action);

  Host& host_;
  unsigned slot_;
  std::mutex mutex_;
  Places places_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::map<std::uintptr_t, std::uint64_t> ranges_;  // of cuMemAddressReserve
};

}  // namespace simgpu
