// Objects that programs hold by an opaque pointer: a handle is good while its object is here.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace simgpu {

template <class Object, class Handle>
class Handles {
public:
  Handle add(std::shared_ptr<Object> object) {
    std::lock_guard lock(mutex_);
    auto* raw = object.get();
    objects_[raw] = std::move(object);
    return reinterpret_cast<Handle>(raw);
  }
  std::shared_ptr<Object> find(Handle handle) {
    std::lock_guard lock(mutex_);
    auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second;
  }
  std::shared_ptr<Object> remove(Handle handle) {
    std::lock_guard lock(mutex_);
    auto node = objects_.extract(handle);
    return node.empty() ? nullptr : std::move(node.mapped());
  }
  template <class Predicate>
  std::vector<std::shared_ptr<Object>> removeIf(Predicate predicate) {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Object>> removed;
    for (auto it = objects_.begin(); it != objects_.end();) {
      bool out = predicate(*it->second);
      if (out) removed.push_back(it->second);
      it = out ? objects_.erase(it) : std::next(it);
    }
    return removed;
  }

private:
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<Object>> objects_;
};

}  // namespace simgpu
