// A value that is here already, or one that is promised: what need not wait costs no turn of the
// loop.
#pragma once

#include <kj/async.h>
#include <kj/vector.h>

#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ts {

template <class T>
class Soon;

template <class T>
struct SoonOf {
  using Type = T;
};
template <class T>
struct SoonOf<Soon<T>> {
  using Type = T;
};
template <class T>
struct SoonOf<kj::Promise<T>> {
  using Type = T;
};

// Owns its value or promise. Like a promise it is used once, on the loop's thread only.
template <class T>
class Soon {
public:
  Soon(T value) : state_(std::move(value)) {}
  Soon(kj::Promise<T> promise) : state_(std::move(promise)) {}

  bool isHere() const { return std::holds_alternative<T>(state_); }
  // Only where it is here.
  T take() { return std::move(std::get<T>(state_)); }
  kj::Promise<T> promise() && {
    if (isHere()) return take();
    return std::move(std::get<kj::Promise<T>>(state_));
  }

  // Calls `next` at once where the value is here, and then what it throws is thrown by this call.
  // It returns a value, a promise or a Soon.
  template <class F, class U = typename SoonOf<std::invoke_result_t<F, T>>::Type>
  Soon<U> then(F next) && {
    if (isHere()) return next(take());
    auto& promised = std::get<kj::Promise<T>>(state_);
    return promised.then([next = std::move(next)](T value) mutable {
      return Soon<U>(next(std::move(value))).promise();
    });
  }

private:
  std::variant<T, kj::Promise<T>> state_;
};

// Here when all of them are.
template <class T>
Soon<std::vector<T>> all(std::vector<Soon<T>> several) {
  bool waits = false;
  for (const auto& one : several) waits = waits || !one.isHere();
  if (!waits) {
    std::vector<T> values;
    for (auto& one : several) values.push_back(one.take());
    return values;
  }
  kj::Vector<kj::Promise<T>> promises;
  for (auto& one : several) promises.add(std::move(one).promise());
  return kj::joinPromises(promises.releaseAsArray()).then([](kj::Array<T> values) {
    return std::vector<T>(std::move_iterator(values.begin()), std::move_iterator(values.end()));
  });
}

}  // namespace ts
