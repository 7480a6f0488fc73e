#include "node/clearing.h"

#include <algorithm>

#include "node/words.h"

namespace ts::node {
namespace {

constexpr auto kFirstPause = 100 * kj::MILLISECONDS;
constexpr auto kLongestPause = 10 * kj::SECONDS;
constexpr auto kBetweenLines = 60 * kj::SECONDS;

bool isClear(const std::optional<DeviceBytes>& left) {
  return left && total(*left) == 0;
}

}  // namespace

struct Clearing::Dead {
  MemberId id;
  JobName job;
  Identity process;
  std::vector<std::uint32_t> devices;
  kj::TimePoint quietUntil = kj::origin<kj::TimePoint>();
};

kj::Promise<void> Clearing::clear(MemberId id) {
  const auto& m = *parts_.registry.member(id);
  auto* backend = parts_.mover.backendOf(m.job);
  auto discarded = parts_.mover.discard(id).promise().ignoreResult();
  if (!backend || backend->isWeightless()) {
    return discarded.then([this, id] { parts_.cleared(id); });
  }
  auto dead = kj::heap<Dead>(Dead{id, m.job, m.process.identity, devicesOf(m.bytes)});
  return discarded
      .then([this, &d = *dead] {
        return parts_.mover.untilFreed(d.process, d.devices, 0,
                                       parts_.timer.now() + parts_.freedDeadline);
      })
      .then([this,
             dead = kj::mv(dead)](std::optional<DeviceBytes> left) mutable -> kj::Promise<void> {
        if (isClear(left)) {
          parts_.cleared(dead->id);
          return kj::READY_NOW;
        }
        complain(*dead, left);
        return waitLonger(kj::mv(dead), kFirstPause);
      });
}

kj::Promise<void> Clearing::waitLonger(kj::Own<Dead> dead, kj::Duration pause) {
  return parts_.timer.afterDelay(pause)
      .then([this, &d = *dead] {
        return parts_.mover.untilFreed(d.process, d.devices, 0, parts_.timer.now());
      })
      .then([this, pause,
             dead = kj::mv(dead)](std::optional<DeviceBytes> left) mutable -> kj::Promise<void> {
        if (isClear(left)) {
          parts_.cleared(dead->id);
          return kj::READY_NOW;
        }
        if (parts_.timer.now() >= dead->quietUntil) complain(*dead, left);
        return waitLonger(kj::mv(dead), std::min(pause * 2, kLongestPause));
      });
}

void Clearing::complain(Dead& dead, const std::optional<DeviceBytes>& left) {
  dead.quietUntil = parts_.timer.now() + kBetweenLines;
  for (auto device : left ? devicesOf(*left) : dead.devices) {
    Line line("not-released");
    line.add("job", text(dead.job))
        .add("pid", std::int64_t(dead.process.pid))
        .add("device", std::uint64_t(device));
    if (left)
      line.add("bytes", left->at(device));
    else
      line.add("bytes", "cannot be measured");
    parts_.log.warning(line);
  }
}

}  // namespace ts::node
