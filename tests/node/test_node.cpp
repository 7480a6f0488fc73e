#include "test_node.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

namespace ts::test {

void FakeCards::use(pid_t pid, std::uint32_t gpu, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  used_.at(gpu)[pid] = bytes;
}

void FakeCards::take(pid_t pid) {
  std::lock_guard lock(mutex_);
  if (sticky_) return;
  auto& taken = taken_[pid];
  for (auto& users : used_) {
    taken.push_back(users[pid]);
    users.erase(pid);
  }
}

void FakeCards::giveBack(pid_t pid) {
  std::lock_guard lock(mutex_);
  auto& taken = taken_[pid];
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] > 0) used_[i][pid] = taken[i];
  }
  taken_.erase(pid);
}

void FakeCards::setSticky(bool on) {
  std::lock_guard lock(mutex_);
  sticky_ = on;
}

void FakeCards::keepTheDead(bool on) {
  std::lock_guard lock(mutex_);
  keepsTheDead_ = on;
}

void FakeCards::setBlind(Blind what) {
  std::lock_guard lock(mutex_);
  blind_ = what;
}

std::vector<GpuInfo> FakeCards::gpus() {
  std::vector<GpuInfo> out;
  for (std::uint32_t i = 0; i < used_.size(); ++i) {
    out.push_back({.index = i,
                   .uuid = "GPU-fake-" + std::to_string(i),
                   .name = "fake",
                   .totalBytes = kTotal});
  }
  return out;
}

std::optional<GpuMemory> FakeCards::memory(std::uint32_t gpu) {
  std::lock_guard lock(mutex_);
  if (blind_ == Blind::All) return {};
  GpuMemory m{.totalBytes = kTotal};
  for (const auto& [pid, bytes] : used_.at(gpu)) m.usedBytes += bytes;
  m.freeBytes = kTotal - m.usedBytes;
  return m;
}

std::optional<std::vector<GpuProcess>> FakeCards::processes(std::uint32_t gpu) {
  std::lock_guard lock(mutex_);
  if (blind_ == Blind::All) return {};
  std::vector<GpuProcess> out;
  for (const auto& [pid, bytes] : used_.at(gpu)) {
    auto told = blind_ == Blind::Sizes ? std::nullopt : std::optional(bytes);
    // The driver forgets the dead.
    if (keepsTheDead_ || ::kill(pid, 0) == 0) out.push_back({pid, told});
  }
  return out;
}

class TestNode::Disk final : public node::Records {
public:
  explicit Disk(TestNode& node) : node_(node), journal_(node.config.stateDir) {}
  void keep(std::span<Change> changes) override {
    if (node_.room == Room::None)
      kj::throwFatalException(sentence("no room for 1 bytes in /full: make room there",
                                       kj::Exception::Type::OVERLOADED));
    journal_.keep(changes);
  }
  const Values& all() const override { return journal_.all(); }
  std::string place() const override { return journal_.place(); }
  std::string whyFull() override {
    return node_.room == Room::Enough ? "" : "no room for 1 bytes in /full: make room there";
  }

private:
  TestNode& node_;
  node::Journal journal_;
};

TestNode::TestNode(Loop& l, FakeMaster* master, std::uint32_t devices)
    : loop(l), cards(devices), master_(master) {
  ::chmod(dir.path().c_str(), 0755);  // for programs of other users
  config.name = "n1";
  config.master = master ? master->address() : "";
  config.socket = dir / "node.sock";
  config.stateDir = dir / "state";
  config.backend = "none";
  config.freedDeadline = std::chrono::milliseconds(5);
}

TestNode::~TestNode() {
  stop();
}

void TestNode::start() {
  disk_.reset();
  disk_ = std::make_unique<Disk>(*this);
  node_ = std::make_unique<node::Node>(
      config,
      node::Node::World{.port = loop.port,
                        .network = loop.io->getNetwork(),
                        .workers = workers_,
                        .inventory = cards,
                        .backends = {{"none", &none}, {"fake", &backend}},
                        .auth = *auth_,
                        .masterUid = 0,
                        .log = log_.log,
                        .version = "test",
                        .reconnectGrace = grace,
                        .callLimit = callLimit,
                        .signal = signal},
      *disk_);
  unsigned before = master_ ? master_->sessions : 0;
  node_->start(node::listenAt(config.socket)).wait(loop.scope);
  if (master_) loop.pumpUntil([&] { return master_->sessions > before && node_->link().isUp(); });
}

std::unique_ptr<Program> TestNode::program(std::optional<uid_t> uid) {
  auto p = std::make_unique<Program>(loop, config.socket, uid);
  REQUIRE(p->hello().status == TSL_OK);
  return p;
}

std::unique_ptr<Program> TestNode::joined(const std::string& job, const std::string& devices,
                                          const std::string& backend) {
  auto p = program();
  auto reply = p->join("rl", job, devices, backend);
  INFO(reply.detail);
  REQUIRE(reply.status == TSL_OK);
  return p;
}

}  // namespace ts::test
