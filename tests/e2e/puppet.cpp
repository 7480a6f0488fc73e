// A job that does what its standard input says: one command a line, one answer a line, "ok VALUE…"
// or "error NAME: why". Uses the client library as any program does, and the driver by dlopen.
// SIGUSR1 gives up the acquire that waits; SIGUSR2 loses the connection to the node daemon.
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "timeslice/timeslice.h"

namespace {

using Words = std::istringstream;
using Fields = std::map<std::string, std::string>;

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void must(ts_status status) {
  if (status != TS_OK) throw Failed(std::string(ts_strerror(status)) + ": " + ts_last_error());
}

// The driver as a program finds it. Its entry points are called by name, for their result.
class Driver {
public:
  template <class... Args>
  void call(const char* name, Args... args) {
    if (library_ == nullptr) library_ = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (library_ == nullptr) throw Failed(std::string("CUDA: ") + ::dlerror());
    int (*entry)(Args...) = nullptr;
    *reinterpret_cast<void**>(&entry) = ::dlsym(library_, name);
    if (entry == nullptr) throw Failed(std::string("CUDA: no ") + name);
    if (int code = entry(args...); code != 0)
      throw Failed("CUDA " + std::to_string(code) + ": " + name);
  }

private:
  void* library_ = nullptr;
};

// A word that depends on its place, so that no byte may be lost or moved.
std::uint64_t patternAt(std::uint64_t place, std::uint64_t seed) {
  return (place + 1) * 0x9e3779b97f4a7c15u ^ seed;
}

ts_client* volatile latest = nullptr;

void giveUp(int) {
  ts_client* client = latest;
  if (client != nullptr && ts_cancel(client) != TS_OK) ::_exit(1);
}

// As if the network of a container went away under it: nothing tells the library beforehand.
void hangUp(int) {
  constexpr int kMost = 64;
  for (int fd = 0; fd < kMost; ++fd) {
    int type = 0;
    socklen_t size = sizeof type;
    bool socket = ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    if (socket && type == SOCK_SEQPACKET) ::shutdown(fd, SHUT_RDWR);
  }
}

void obeySignal(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

class Puppet {
public:
  std::string obey(const std::string& line) {
    Words words(line);
    std::string verb;
    words >> verb;
    auto it = verbs_.find(verb);
    if (it == verbs_.end()) return "error USAGE: no command " + verb;
    try {
      std::string value = it->second(words);
      return value.empty() ? "ok" : "ok " + value;
    } catch (const Failed& failed) {
      return std::string("error ") + failed.what();
    }
  }

private:
  struct Block {
    std::uint64_t at;
    std::size_t bytes;
  };

  // join group=G job=J gang=2 devices=0 backend=cuda socket=PATH priority=1 deadline=1000
  std::string join(Words& words) {
    Fields f;
    for (std::string word; words >> word;) {
      auto equals = word.find('=');
      f[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
    }
    auto text = [&](const char* key) { return f.contains(key) ? f[key].c_str() : nullptr; };
    ts_join_options options{};
    options.size = sizeof options;
    options.socket = text("socket");
    options.group = text("group");
    options.job = text("job");
    options.devices = text("devices");
    options.backend = text("backend");
    options.gang = f.contains("gang") ? static_cast<std::uint32_t>(std::stoul(f["gang"])) : 0;
    options.priority = f.contains("priority") ? std::stoi(f["priority"]) : 0;
    options.deadline_ms = f.contains("deadline") ? std::stol(f["deadline"]) : 0;
    ts_client* joined = nullptr;
    must(ts_join(&options, &joined));
    clients_.push_back(joined);
    latest = joined;
    return "";
  }

  std::string acquire(Words& words) {
    ts_acquire_options options{.size = sizeof options, .deadline_ms = 0, .phase = nullptr};
    words >> options.deadline_ms;
    ts_grant grant{};
    grant.size = sizeof grant;
    must(ts_acquire(client(), &options, &grant));
    return text(grant);
  }
  std::string tryAcquire(Words&) {
    ts_grant grant{};
    grant.size = sizeof grant;
    must(ts_try_acquire(client(), &grant));
    return text(grant);
  }
  std::string yield(Words&) {
    must(ts_yield(client()));
    return "";
  }
  std::string leave(Words&) {
    latest = nullptr;
    ts_leave(client());
    clients_.pop_back();
    return "";
  }
  std::string state(Words&) {
    ts_state state{};
    state.size = sizeof state;
    must(ts_get_state(client(), &state));
    return "active=" + std::to_string(state.active) + " entered=" + std::to_string(state.entered) +
           " epoch=" + std::to_string(state.epoch);
  }

  // A process of the job that joins nothing, and holds so many bytes of the card until it is
  // killed.
  std::string child(Words& words) {
    std::string bytes;
    words >> bytes;
    pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execl("/proc/self/exe", "e2e_puppet", bytes.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    return std::to_string(pid);
  }

  std::string start(Words& words) {
    int device = 0;
    words >> device;
    void* context = nullptr;
    driver_.call("cuInit", 0u);
    driver_.call("cuDevicePrimaryCtxRetain", &context, device);
    driver_.call("cuCtxSetCurrent", context);
    return "";
  }
  std::string allocate(Words& words) {
    Block block{};
    words >> block.bytes;
    driver_.call("cuMemAlloc_v2", &block.at, block.bytes);
    blocks_.push_back(block);
    return std::to_string(block.at);
  }
  std::string freeAll(Words&) {
    for (const Block& block : blocks_) driver_.call("cuMemFree_v2", block.at);
    blocks_.clear();
    return "";
  }
  std::string fill(Words& words) {
    std::uint64_t seed = 0;
    words >> seed;
    for (const Block& block : blocks_) {
      std::vector<std::uint64_t> host(block.bytes / 8);
      for (std::size_t i = 0; i < host.size(); ++i) host[i] = patternAt(i, seed);
      driver_.call("cuMemcpyHtoD_v2", block.at, static_cast<const void*>(host.data()), block.bytes);
    }
    return "";
  }
  // "same", or where the first word of another value is.
  std::string check(Words& words) {
    std::uint64_t seed = 0;
    words >> seed;
    for (const Block& block : blocks_) {
      std::vector<std::uint64_t> host = read(block);
      for (std::size_t i = 0; i < host.size(); ++i)
        if (host[i] != patternAt(i, seed)) return "differs at word " + std::to_string(i);
    }
    return "same";
  }

  // One step of a training: every word becomes another that depends on what it was.
  std::string mutate(Words& words) {
    std::uint64_t step = 0;
    words >> step;
    for (const Block& block : blocks_) {
      std::vector<std::uint64_t> host = read(block);
      for (std::size_t i = 0; i < host.size(); ++i) host[i] = host[i] * 31 + patternAt(i, step);
      driver_.call("cuMemcpyHtoD_v2", block.at, static_cast<const void*>(host.data()), block.bytes);
    }
    return "";
  }
  std::string digest(Words&) {
    std::uint64_t sum = 0xcbf29ce484222325u;
    for (const Block& block : blocks_)
      for (std::uint64_t word : read(block)) sum = (sum ^ word) * 0x100000001b3u;
    return std::to_string(sum);
  }
  std::vector<std::uint64_t> read(const Block& block) {
    std::vector<std::uint64_t> host(block.bytes / 8);
    driver_.call("cuMemcpyDtoH_v2", static_cast<void*>(host.data()), block.at, block.bytes);
    return host;
  }

  ts_client* client() {
    if (clients_.empty()) throw Failed("USAGE: join first");
    return clients_.back();
  }
  static std::string text(const ts_grant& grant) {
    return "generation=" + std::to_string(grant.generation) +
           " epoch=" + std::to_string(grant.epoch) + " restored=" + std::to_string(grant.restored) +
           " moved=" + std::to_string(grant.moved_bytes) +
           " waited=" + std::to_string(grant.waited_us);
  }

  Driver driver_;
  std::vector<Block> blocks_;
  std::vector<ts_client*> clients_;
  std::map<std::string, std::function<std::string(Words&)>> verbs_ = {
      {"join", [this](Words& w) { return join(w); }},
      {"acquire", [this](Words& w) { return acquire(w); }},
      {"try", [this](Words& w) { return tryAcquire(w); }},
      {"yield", [this](Words& w) { return yield(w); }},
      {"leave", [this](Words& w) { return leave(w); }},
      {"state", [this](Words& w) { return state(w); }},
      {"child", [this](Words& w) { return child(w); }},
      {"start", [this](Words& w) { return start(w); }},
      {"alloc", [this](Words& w) { return allocate(w); }},
      {"free", [this](Words& w) { return freeAll(w); }},
      {"fill", [this](Words& w) { return fill(w); }},
      {"check", [this](Words& w) { return check(w); }},
      {"mutate", [this](Words& w) { return mutate(w); }},
      {"digest", [this](Words& w) { return digest(w); }},
  };
};

}  // namespace

int main(int argc, char** argv) {
  Puppet puppet;
  if (argc > 1) {
    puppet.obey("start 0");
    puppet.obey(std::string("alloc ") + argv[1]);
    for (;;) ::pause();
  }
  obeySignal(SIGUSR1, giveUp);
  obeySignal(SIGUSR2, hangUp);
  for (std::string line; std::getline(std::cin, line);) std::cout << puppet.obey(line) << std::endl;
  ::_exit(0);  // a driver's exit handlers would wait for a card that another job holds
}
