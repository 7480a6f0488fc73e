#include "node/roll.h"

namespace ts::node {

Roll::Roll(Registry& registry, Inventory& inventory, Workers& workers, Log& log, MemberNews news)
    : registry_(registry),
      inventory_(inventory),
      workers_(workers),
      log_(log),
      news_(std::move(news)),
      devices_(inventory.gpus()),
      tasks_(*this) {}

bool Roll::needsLook(const JobName& job) {
  Job* j = registry_.job(job);
  return j && j->spec.backend != "none" && j->spec.backend != "turns";
}

kj::Promise<Scan> Roll::look() {
  std::vector<std::uint32_t> indices;
  for (const auto& d : devices_) indices.push_back(d.index);
  return workers_
      .call<Scan>([&inventory = inventory_, indices] { return scan(inventory, indices); })
      .then([this](Scan seen) {
        applyScan(registry_, seen, news_);
        return seen;
      });
}

kj::Promise<void> Roll::call(const JobName& job) {
  if (needsLook(job)) return look().ignoreResult();
  joined(job);
  return kj::READY_NOW;
}

void Roll::joined(const JobName& job) {
  applyParticipants(registry_, job, news_);
}

void Roll::then(const JobName& job, std::function<void()> next) {
  auto it = queues_.find(job);
  if (it == queues_.end() && !needsLook(job)) return next();
  append(job, queues_[job], std::move(next));
}

void Roll::append(const JobName& job, Queue& queue, std::function<void()> next) {
  ++queue.length;
  // The look begins now; only its use waits for those before it.
  auto looked = call(job);
  auto done = queue.tail.then([looked = kj::mv(looked)]() mutable { return kj::mv(looked); })
                  .catch_([this](kj::Exception&& e) { taskFailed(kj::mv(e)); })
                  .then([next = std::move(next)] { next(); })
                  .fork();
  queue.tail = done.addBranch().catch_([](kj::Exception&&) {});  // logged by the other branch
  tasks_.add(done.addBranch().attach(kj::defer([this, job] {
    auto it = queues_.find(job);
    if (it != queues_.end() && --it->second.length == 0) queues_.erase(it);
  })));
}

void Roll::taskFailed(kj::Exception&& exception) {
  log_.error(Line("roll-call-failed").add("why", exception.getDescription().cStr()));
}

}  // namespace ts::node
