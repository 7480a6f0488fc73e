#include "bench_common/cluster.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench_common/http.h"

namespace ts::bench {
namespace {

std::string firstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Until a daemon has renamed its announcement into place.
std::map<std::string, std::string> announced(const std::string& dir, const std::string& name,
                                             const Process& daemon) {
  const std::string path = dir + "/" + name + ".announced";
  const std::string logFile = dir + "/" + name + ".log";
  const int watch = ::inotify_init1(IN_CLOEXEC);
  ::inotify_add_watch(watch, dir.c_str(), IN_MOVED_TO);
  const int life = static_cast<int>(::syscall(SYS_pidfd_open, daemon.pid(), 0));
  while (!std::filesystem::exists(path)) {
    pollfd fds[2] = {{watch, POLLIN, 0}, {life, POLLIN, 0}};
    goOn();
    const int ready =
        ::poll(fds, 2, static_cast<int>(std::chrono::milliseconds(kPatience).count()));
    goOn();
    if (ready == 0) die(name + " has announced nothing within 30 s: " + firstLine(logFile));
    if (fds[1].revents != 0) die(name + " did not start: " + firstLine(logFile));
    alignas(inotify_event) char events[4096];
    if (fds[0].revents != 0 && ::read(watch, events, sizeof events) < 0) die("cannot watch " + dir);
  }
  ::close(watch);
  ::close(life);
  std::ifstream file(path);
  std::map<std::string, std::string> said;
  for (std::string line; std::getline(file, line);) {
    const auto equals = line.find('=');
    if (equals != std::string::npos) said[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return said;
}

constexpr const char* kNoHeartbeats = "heartbeat = \"1 h\"\nsuspect_after = \"24 h\"\n";

// From where it stands to the end of its last whole line; it can be read on when there is more.
int countLines(std::ifstream& log, const std::string& verb) {
  int count = 0;
  std::streampos whole = log.tellg();
  for (std::string line; std::getline(log, line) && !log.eof(); whole = log.tellg())
    count += line.rfind(verb + " ", 0) == 0 ? 1 : 0;
  log.clear();
  log.seekg(whole);
  return count;
}

double valueOf(const std::string& line) {
  return std::stod(line.substr(line.rfind(' ') + 1));
}

}  // namespace

Cluster::Cluster(const Options& options) : options_(options) {
  startMaster("127.0.0.1:0");
  for (int i = 0; i < options_.nodes; ++i) startNode(i);
  for (int i = 0; i < options_.nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    announced(dir_.path(), name, nodes_[std::size_t(i)]);
  }
}

void Cluster::startMaster(const std::string& listen) {
  std::ofstream(dir_ / "master.toml")
      << "listen = [\"" << listen << "\"]\n"
      << "socket = \"\"\nhttp = \"127.0.0.1:0\"\n"
      << "database = \"" << dir_ / "master.db"
      << "\"\n"
      << "auth = \"none\"\nlog_level = \"" << options_.masterLog << "\"\n"
      << (options_.heartbeats ? "" : kNoHeartbeats);
  master_ = Process({options_.programs + "/src/master/tsmasterd", "--config", dir_ / "master.toml",
                     "--announce", dir_ / "master.announced"},
                    dir_ / "master.log");
  auto said = announced(dir_.path(), "master", master_);
  rpc_ = said["rpc"];
  http_ = said["http"];
}

void Cluster::startNode(int index) {
  const std::string name = "n" + std::to_string(index);
  const std::string folder = dir_ / name;
  std::filesystem::create_directory(folder);
  sockets_.push_back(folder + "/node.sock");
  std::ofstream(dir_ / (name + ".toml"))
      << "name = \"" << name << "\"\nmaster = \"" << rpc_ << "\"\nsocket = \"" << sockets_.back()
      << "\"\nstate_dir = \"" << folder
      << "/state\"\nauth = \"none\"\nconnections_per_user = 100000\nbackend = \"none\"\n"
      << "log_level = \"warning\"\ndevices = " << options_.devices << "\norder_delay = \""
      << options_.orderDelay.count() << " ms\"\n";
  nodes_.emplace_back(
      std::vector<std::string>{options_.programs + "/src/node/tsnoded", "--config",
                               dir_ / (name + ".toml"), "--announce", dir_ / (name + ".announced")},
      dir_ / (name + ".log"));
}

std::string Cluster::metrics() const {
  return httpGet(http_, "/metrics");
}

std::string Cluster::status() const {
  return httpGet(http_, "/status.json");
}

void Cluster::restartMaster() {
  master_.kill();
  std::filesystem::remove(dir_ / "master.announced");
  startMaster(rpc_);
}

int Cluster::masterSaid(const std::string& verb) const {
  std::ifstream log(dir_ / "master.log");
  return countLines(log, verb);
}

void Cluster::untilMasterSaid(const std::string& verb, int lines) const {
  const int watch = ::inotify_init1(IN_CLOEXEC);
  ::inotify_add_watch(watch, (dir_ / "master.log").c_str(), IN_MODIFY);
  std::ifstream log(dir_ / "master.log");
  for (int seen = countLines(log, verb); seen < lines; seen += countLines(log, verb)) {
    untilReadable(watch, "line " + std::to_string(seen + 1) + " of " + std::to_string(lines) +
                             " \"" + verb + "\" in the master's log");
    alignas(inotify_event) char events[4096];
    if (::read(watch, events, sizeof events) < 0) die("cannot watch the master's log");
  }
  ::close(watch);
}

std::map<std::string, double> Cluster::orders() const {
  static const std::string kPrefix = "timeslice_order_seconds_count{order=\"";
  std::map<std::string, double> found;
  std::istringstream lines(metrics());
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(kPrefix, 0) != 0) continue;
    const auto end = line.find('"', kPrefix.size());
    found[line.substr(kPrefix.size(), end - kPrefix.size())] = valueOf(line);
  }
  return found;
}

void Cluster::untilQueued(const std::string& group, int jobs) const {
  untilQueuedAs("timeslice_queue_jobs{group=\"" + group + "\"}", jobs, " in group " + group);
}

void Cluster::untilQueued(int jobs) const {
  untilQueuedAs("timeslice_queue_jobs{", jobs, "");
}

void Cluster::untilQueuedAs(const std::string& prefix, int jobs, const std::string& where) const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  double last = 0;
  while (std::chrono::steady_clock::now() < end) {
    goOn();
    last = 0;
    std::istringstream lines(metrics());
    for (std::string line; std::getline(lines, line);)
      if (line.rfind(prefix, 0) == 0) last += valueOf(line);
    if (last == jobs) return;
  }
  die("after 30 s " + std::to_string(int(last)) + " jobs wait" + where + ", not " +
      std::to_string(jobs));
}

}  // namespace ts::bench
