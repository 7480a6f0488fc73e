#include "simgpu/driver.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "simgpu/helper.h"
#include "simgpu/units.h"

namespace simgpu {
namespace {

std::atomic<Driver*> theDriver{nullptr};
std::atomic<bool> forked{false};

std::optional<unsigned> cardNamed(Host& host, const std::string& word) {
  if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos) {
    unsigned long index = std::strtoul(word.c_str(), nullptr, 10);
    return index < host.cardCount() ? std::optional(static_cast<unsigned>(index)) : std::nullopt;
  }
  for (unsigned i = 0; i < host.cardCount() && word.starts_with("GPU-"); ++i)
    if (host.card(i).settings()->uuid.starts_with(word)) return i;
  return std::nullopt;
}

}  // namespace

std::vector<unsigned> visibleCards(Host& host, const char* variable) {
  std::vector<unsigned> cards;
  if (variable == nullptr) {
    for (unsigned i = 0; i < host.cardCount(); ++i) cards.push_back(i);
    return cards;
  }
  std::string words = std::string(variable) + ",";
  for (std::size_t at = 0, comma; (comma = words.find(',', at)) != std::string::npos;
       at = comma + 1) {
    auto card = cardNamed(host, trimmed(words.substr(at, comma - at)));
    // As the driver does: the first word that names nothing ends the list, a repeated one empties
    // it.
    if (!card) return cards;
    if (std::ranges::count(cards, *card) > 0) return {};
    cards.push_back(*card);
  }
  return cards;
}

Host* sharedHost() {
  static std::mutex mutex;
  static Host* host = nullptr;
  static bool said = false;
  std::lock_guard lock(mutex);
  if (host != nullptr) return host;
  std::string error;
  host = Host::openFromEnvironment(error).release();
  if (host == nullptr && !said) std::fprintf(stderr, "simgpu: %s\n", error.c_str());
  said = true;
  return host;
}

CUresult Driver::init() {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (theDriver != nullptr) return CUDA_SUCCESS;
  Host* host = sharedHost();
  if (host == nullptr || visibleCards(*host, ::getenv("CUDA_VISIBLE_DEVICES")).empty())
    return CUDA_ERROR_NO_DEVICE;
  auto slot = host->enlist();
  if (!slot) return CUDA_ERROR_SYSTEM_NOT_READY;
  auto* driver = new Driver(*host, *slot);
  ::pthread_atfork(nullptr, nullptr, [] { forked = true; });
  startHelper(*driver);
  theDriver = driver;
  return CUDA_SUCCESS;
}

Driver* Driver::get() {
  return forked ? nullptr : theDriver.load();
}

Driver::Driver(Host& theHost, unsigned theSlot)
    : host(theHost), slot(theSlot), memory(theHost, theSlot) {
  visible_ = visibleCards(host, ::getenv("CUDA_VISIBLE_DEVICES"));
  primaries.resize(visible_.size());
}

Card* Driver::card(CUdevice device) {
  bool good = device >= 0 && device < deviceCount();
  return good ? &host.card(visible_[static_cast<std::size_t>(device)]) : nullptr;
}

bool Driver::usesCard(unsigned index) const {
  return contextCount_[index] > 0;
}

void Driver::noteContexts() {
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < kMaxCards; ++i) bits |= contextCount_[i] > 0 ? 1u << i : 0u;
  host.slot(slot).contexts = bits;
}

std::shared_ptr<Context> Driver::makeContext(CUdevice device, unsigned flags, CUresult& error) {
  Card* on = card(device);
  error = on == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
  if (on == nullptr) return nullptr;
  auto context = std::make_shared<Context>();
  context->device = device;
  context->card = on;
  context->knobs = &knobs(*on);
  context->flags = flags;
  error = memory.allocateHidden(*context, *on, on->settings()->contextBytes);
  if (error != CUDA_SUCCESS) return nullptr;
  context->defaultStream = streams.create(*context, 0, true);
  contexts.add(context);
  std::lock_guard lock(contextMutex_);
  ++contextCount_[on->index()];
  noteContexts();
  return context;
}

void Driver::destroyContext(const std::shared_ptr<Context>& context) {
  if (!contexts.remove(reinterpret_cast<CUcontext>(context.get()))) return;
  streams.awaitAllOf(*context);
  for (auto& s : streamHandles.removeIf([&](Stream& s) { return s.context == context.get(); }))
    streams.close(s);
  streams.close(context->defaultStream);
  modules.removeIf([&](Module& m) { return m.context == context.get(); });
  memory.freeAllOf(*context);
  std::lock_guard lock(contextMutex_);
  --contextCount_[context->card->index()];
  noteContexts();
}

std::shared_ptr<Context> Driver::current() {
  auto& stack = currentStack();
  return stack.empty() ? nullptr : contexts.find(stack.back());
}

std::shared_ptr<Stream> Driver::stream(const Context& context, CUstream handle) {
  if (reinterpret_cast<std::uintptr_t>(handle) <= kPerThreadStream) return context.defaultStream;
  return streamHandles.find(handle);
}

std::vector<CUcontext>& currentStack() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

}  // namespace simgpu
