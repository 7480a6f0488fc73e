// Roll call: looks at the devices on a worker and keeps the members of jobs true.
#pragma once

#include <kj/async.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "log/log.h"
#include "node/members.h"
#include "node/registry.h"
#include "node/scan.h"
#include "reactor/workers.h"

namespace ts::node {

class Roll final : private kj::TaskSet::ErrorHandler {
public:
  Roll(Registry& registry, Inventory& inventory, Workers& workers, Log& log, MemberNews news);

  // The devices of this node, as found when the daemon started.
  const std::vector<GpuInfo>& devices() const { return devices_; }
  // Whether members of the job are found by looking; a job that moves nothing needs none.
  bool needsLook(const JobName& job);

  // A look that began after the call; the registry is up to date when it comes.
  kj::Promise<Scan> look();
  // With the backend `none` a participant is a member from here on.
  void joined(const JobName& job);
  // Runs `next` after a look, and after everything that was put in before for the same job; at once
  // where no look is needed and nothing is before it.
  void then(const JobName& job, std::function<void()> next);

private:
  struct Queue {
    kj::Promise<void> tail = kj::READY_NOW;
    unsigned length = 0;
  };
  void taskFailed(kj::Exception&& exception) override;
  kj::Promise<void> call(const JobName& job);
  void append(const JobName& job, Queue& queue, std::function<void()> next);

  Registry& registry_;
  Inventory& inventory_;
  Workers& workers_;
  Log& log_;
  MemberNews news_;
  std::vector<GpuInfo> devices_;
  std::map<JobName, Queue> queues_;
  kj::TaskSet tasks_;
};

}  // namespace ts::node
