#include "simgpu/device_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "simgpu/block_copy.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kLargePage = 2 << 20;

std::uint64_t roundedUp(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}

std::uintptr_t address(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}

}  // namespace

std::shared_ptr<Block> DeviceMemory::makeBlock(const Context* owner, Card& card,
                                               std::uint64_t bytes) {
  auto extents = host_.take(slot_, card.index(), bytes);
  if (!extents) return nullptr;
  auto block = std::make_shared<Block>();
  block->card = &card;
  block->owner = owner;
  block->bytes = roundedUp(bytes, kGranule);
  block->extents = std::move(*extents);
  blocks_.push_back(block);
  return block;
}

CUresult DeviceMemory::allocate(const Context& context, Card& card, std::uint64_t bytes,
                                CUdeviceptr& out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > card.totalBytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(mutex_);
  auto block = makeBlock(&context, card, bytes);
  if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
  char* at = reserveRange(block->bytes, block->bytes >= kLargePage ? kLargePage : kGranule);
  Place place{at, block->bytes, bytes, 0, PROT_READ | PROT_WRITE, true, block};
  if (at == nullptr || !show(place)) {
    dropPlace(place);
    dropIfUnused(block);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  places_[address(at)] = place;
  out = address(at);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::allocateHidden(const Context& context, Card& card, std::uint64_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  std::lock_guard lock(mutex_);
  return makeBlock(&context, card, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult DeviceMemory::free(CUdeviceptr at) {
  if (at == 0) return CUDA_SUCCESS;
  std::lock_guard lock(mutex_);
  auto it = places_.find(at);
  if (it == places_.end() || !it->second.ownsRange) return CUDA_ERROR_INVALID_VALUE;
  Place place = it->second;
  places_.erase(it);
  dropPlace(place);
  dropIfUnused(place.block);
  return CUDA_SUCCESS;
}

void DeviceMemory::dropPlace(const Place& place) {
  if (place.at == nullptr) return;
  if (place.ownsRange)
    ::munmap(place.at, place.bytes);
  else
    hide(place);
}

// A block lives while a handle or a mapping shows it.
void DeviceMemory::dropIfUnused(const std::shared_ptr<Block>& block) {
  bool mapped = std::ranges::any_of(places_, [&](auto& p) { return p.second.block == block; });
  if (mapped || block->handles > 0) return;
  host_.giveBack(slot_, block->card->index(), block->extents);
  std::erase(blocks_, block);
}

void DeviceMemory::freeAllOf(const Context& context) {
  std::lock_guard lock(mutex_);
  for (auto it = places_.begin(); it != places_.end();) {
    bool its = it->second.block->owner == &context;
    if (its) dropPlace(it->second);
    it = its ? places_.erase(it) : std::next(it);
  }
  auto blocks = blocks_;
  for (const auto& block : blocks)
    if (block->owner == &context) dropIfUnused(block);
}

CUresult DeviceMemory::reserve(std::uint64_t bytes, std::uint64_t alignment, CUdeviceptr& out) {
  bool powerOfTwo = (alignment & (alignment - 1)) == 0;
  if (bytes == 0 || bytes % kLargePage != 0 || !powerOfTwo) return CUDA_ERROR_INVALID_VALUE;
  char* at = reserveRange(bytes, std::max(alignment, kLargePage));
  if (at == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(mutex_);
  ranges_[address(at)] = bytes;
  out = address(at);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::unreserve(CUdeviceptr at, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto it = ranges_.find(at);
  if (it == ranges_.end() || it->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  auto mapped = places_.lower_bound(at);
  if (mapped != places_.end() && mapped->first < at + bytes) return CUDA_ERROR_INVALID_VALUE;
  ::munmap(reinterpret_cast<void*>(at), bytes);
  ranges_.erase(it);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::create(Card& card, std::uint64_t bytes, CUmemGenericAllocationHandle& out) {
  if (bytes == 0 || bytes % kLargePage != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(mutex_);
  auto block = makeBlock(nullptr, card, bytes);
  if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
  block->handles = 1;
  out = address(block.get());
  return CUDA_SUCCESS;
}

std::shared_ptr<Block> DeviceMemory::blockOf(CUmemGenericAllocationHandle handle) {
  auto it = std::ranges::find_if(
      blocks_, [handle](const auto& b) { return address(b.get()) == handle && b->handles > 0; });
  return it == blocks_.end() ? nullptr : *it;
}

CUresult DeviceMemory::release(CUmemGenericAllocationHandle handle) {
  std::lock_guard lock(mutex_);
  auto block = blockOf(handle);
  if (!block) return CUDA_ERROR_INVALID_VALUE;
  --block->handles;
  dropIfUnused(block);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::retain(CUdeviceptr at, CUmemGenericAllocationHandle& out) {
  std::lock_guard lock(mutex_);
  Place* place = findLocked(at);
  if (place == nullptr || place->ownsRange) return CUDA_ERROR_INVALID_VALUE;
  ++place->block->handles;
  out = address(place->block.get());
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::map(CUdeviceptr at, std::uint64_t bytes, std::uint64_t offset,
                           CUmemGenericAllocationHandle handle) {
  std::lock_guard lock(mutex_);
  auto block = blockOf(handle);
  auto range = ranges_.upper_bound(at);
  if (!block || bytes == 0 || range == ranges_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --range;
  bool fits = at + bytes <= range->first + range->second && bytes <= block->bytes &&
              offset <= block->bytes - bytes && bytes % kLargePage == 0 && at % kLargePage == 0;
  if (!fits) return CUDA_ERROR_INVALID_VALUE;
  auto next = places_.upper_bound(at);
  bool taken = findLocked(at) != nullptr || (next != places_.end() && next->first < at + bytes);
  if (taken) return CUDA_ERROR_INVALID_VALUE;
  // Reachable by nobody until cuMemSetAccess says so.
  places_[at] = {reinterpret_cast<char*>(at), bytes, bytes, offset, PROT_NONE, false, block};
  return CUDA_SUCCESS;
}

// Calls `action` for the mappings that make up exactly this range.
template <class Action>
CUresult DeviceMemory::forPlacesIn(CUdeviceptr at, std::uint64_t bytes, Action action) {
  std::uintptr_t reached = at;
  auto it = places_.find(at);
  for (auto p = it; p != places_.end() && p->first == reached && reached < at + bytes; ++p)
    reached += p->second.ownsRange ? 0 : p->second.bytes;
  if (bytes == 0 || reached != at + bytes) return CUDA_ERROR_INVALID_VALUE;
  while (it != places_.end() && it->first < at + bytes) action(it++);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::unmap(CUdeviceptr at, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  return forPlacesIn(at, bytes, [this](Places::iterator it) {
    Place place = it->second;
    places_.erase(it);
    dropPlace(place);
    dropIfUnused(place.block);
  });
}

CUresult DeviceMemory::setAccess(CUdeviceptr at, std::uint64_t bytes, int protection) {
  std::lock_guard lock(mutex_);
  return forPlacesIn(at, bytes, [protection](Places::iterator it) {
    it->second.protection = protection;
    show(it->second);
  });
}

Place* DeviceMemory::findLocked(CUdeviceptr at) {
  auto it = places_.upper_bound(at);
  if (it == places_.begin()) return nullptr;
  Place& place = (--it)->second;
  return at < it->first + place.bytes ? &place : nullptr;
}

std::optional<Place> DeviceMemory::find(CUdeviceptr at) {
  std::lock_guard lock(mutex_);
  Place* place = findLocked(at);
  return place == nullptr ? std::nullopt : std::optional(*place);
}

bool DeviceMemory::covers(CUdeviceptr at, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  std::uintptr_t end = at + bytes;
  while (at < end) {
    Place* place = findLocked(at);
    if (place == nullptr || place->protection == PROT_NONE) return false;
    at = address(place->at) + place->bytes;
  }
  return true;
}

std::uint64_t DeviceMemory::heldOn(const Card& card) {
  return host_.slot(slot_).bytes[card.index()];
}

std::uint64_t DeviceMemory::allBytes() {
  std::lock_guard lock(mutex_);
  std::uint64_t all = 0;
  for (const auto& block : blocks_) all += block->bytes;
  return all;
}

std::size_t DeviceMemory::count() {
  std::lock_guard lock(mutex_);
  return places_.size();
}

CUresult DeviceMemory::saveAll() {
  std::lock_guard lock(mutex_);
  if (!std::ranges::all_of(blocks_, [](auto& b) { return makeRoom(*b); })) {
    for (auto& block : blocks_) dropRoom(*block);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (auto& [at, place] : places_) hide(place);
  for (auto& block : blocks_)
    if (!copyOut(*block)) return CUDA_ERROR_UNKNOWN;
  return CUDA_SUCCESS;
}

void DeviceMemory::freeSaved() {
  std::lock_guard lock(mutex_);
  giveBackAll();
}

bool DeviceMemory::takeAll() {
  for (auto& block : blocks_) {
    auto extents = host_.take(slot_, block->card->index(), block->bytes);
    if (!extents) return false;
    block->extents = std::move(*extents);
  }
  return true;
}

void DeviceMemory::giveBackAll() {
  for (auto& block : blocks_) {
    host_.giveBack(slot_, block->card->index(), block->extents);
    block->extents.clear();
  }
}

CUresult DeviceMemory::restoreAll() {
  std::lock_guard lock(mutex_);
  if (!takeAll()) {
    giveBackAll();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (auto& block : blocks_)
    if (!copyIn(*block)) return CUDA_ERROR_UNKNOWN;
  for (auto& [at, place] : places_) show(place);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
