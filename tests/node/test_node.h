// A whole node daemon of a test, on its loop, with a card that exists in memory only.
#pragma once

#include <signal.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <mutex>

#include "backend/none_backend.h"
#include "fake_backend.h"
#include "fake_master.h"
#include "node/node.h"
#include "program.h"
#include "log_file.h"
#include "temp_dir.h"

namespace ts::test {

// Devices with memory and with processes that use it; any thread may ask.
class FakeCards final : public Inventory {
public:
  explicit FakeCards(std::uint32_t count) : used_(count) {}

  static constexpr std::uint64_t kTotal = 16ull << 30;
  void use(pid_t pid, std::uint32_t gpu, std::uint64_t bytes);
  // What it took from a process comes back with `giveBack`.
  void take(pid_t pid);
  void giveBack(pid_t pid);
  // From now on a save takes nothing off the card.
  void setSticky(bool on);
  // The driver still names processes that have ended.
  void keepTheDead(bool on);
  // Nothing can be read of any device; or everything but how much each process has.
  enum class Blind { No, Sizes, All };
  void setBlind(Blind what);

  std::vector<GpuInfo> gpus() override;
  std::optional<GpuMemory> memory(std::uint32_t gpu) override;
  std::optional<std::vector<GpuProcess>> processes(std::uint32_t gpu) override;
  std::string detail() const override { return "fake cards"; }

private:
  using Users = std::map<pid_t, std::uint64_t>;
  mutable std::mutex mutex_;
  std::vector<Users> used_;
  std::map<pid_t, std::vector<std::uint64_t>> taken_;
  bool sticky_ = false;
  bool keepsTheDead_ = false;
  Blind blind_ = Blind::No;
};

// A fake backend whose saves empty the cards and whose restores fill them.
class CardBackend final : public SnapshotBackend {
public:
  explicit CardBackend(FakeCards& cards) : cards_(cards) {}
  FakeBackend fake;
  std::function<void()> duringQuiesce = [] {};  // on a worker

  std::string name() const override { return "fake"; }
  Probe probe() override { return fake.probe(); }
  TargetState state(const Target& t) override { return fake.state(t); }
  BackendOutcome quiesce(const Target& t, Deadline d) override {
    duringQuiesce();
    return fake.quiesce(t, d);
  }
  BackendOutcome save(const Target& t, const DeviceSet& d) override {
    auto out = fake.save(t, d);
    if (out.ok()) cards_.take(t.pid);
    return out;
  }
  BackendOutcome restore(const Target& t, const DeviceSet& d) override {
    auto out = fake.restore(t, d);
    if (out.ok()) cards_.giveBack(t.pid);
    return out;
  }
  BackendOutcome release(const Target& t) override { return fake.release(t); }
  BackendOutcome discard(const Target& t) override { return fake.discard(t); }
  std::uint64_t residueLimit() const override { return fake.residueLimit(); }

private:
  FakeCards& cards_;
};

class TestNode {
public:
  explicit TestNode(Loop& loop, FakeMaster* master, std::uint32_t devices = 2);
  ~TestNode();

  Loop& loop;
  TempDir dir;
  FakeCards cards;
  CardBackend backend{cards};
  NoneBackend none;
  NodeConfig config;
  kj::Duration grace = 3600 * kj::SECONDS;
  kj::Duration callLimit = 3600 * kj::SECONDS;
  std::function<int(int, int)> signal = signalPidfd;
  // What is written goes to the journal, unless there is no room for it.
  enum class Room { Enough, Little, None } room = Room::Enough;

  void start();  // and waits for its session, where there is a master
  void stop() { node_.reset(); }
  void restart() {
    stop();
    start();
  }
  node::Node& operator*() { return *node_; }
  node::Node* operator->() { return node_.get(); }
  // The first line of the log with all of these in it, or "".
  std::string logged(const std::vector<std::string>& words) const { return log_.line(words); }
  std::int64_t lines(const std::string& word) const { return log_.count(word); }

  std::unique_ptr<Program> program(std::optional<uid_t> uid = {});
  // Connected, greeted and joined.
  std::unique_ptr<Program> joined(const std::string& job, const std::string& devices = "0",
                                  const std::string& backend = "none");

private:
  FakeMaster* master_;
  LogFile log_{Level::Debug};
  std::unique_ptr<Auth> auth_ = newNoAuth();
  Workers workers_;
  class Disk;
  std::unique_ptr<Disk> disk_;
  std::unique_ptr<node::Node> node_;
};

}  // namespace ts::test
