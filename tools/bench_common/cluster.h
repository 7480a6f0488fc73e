// A real master and real nodes on this machine, in a directory of their own, on free ports.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench_common/process.h"
#include "support/temp_dir.h"

namespace ts::bench {

class Cluster {
public:
  struct Options {
    std::string programs;  // the build folder
    int nodes = 1;
    int devices = 1;  // on each node
    std::chrono::milliseconds orderDelay{0};
    bool heartbeats = true;  // without: no timer runs but those of turns
    std::string masterLog = "warning";
  };
  explicit Cluster(const Options& options);

  const std::vector<std::string>& sockets() const { return sockets_; }
  pid_t masterPid() const { return master_.pid(); }
  const std::vector<Process>& nodes() const { return nodes_; }

  // Orders that have ended at the nodes since the start, by verb.
  std::map<std::string, double> orders() const;
  // Until `jobs` jobs wait in the group, in all groups.
  void untilQueued(const std::string& group, int jobs) const;
  void untilQueued(int jobs) const;
  // As `tsctl status --json` has it.
  std::string status() const;

  // SIGKILL, and another one on the same port and database. Returns when that one listens.
  void restartMaster();
  // Lines of this master's log that begin with `verb`; the second returns when there are as many.
  int masterSaid(const std::string& verb) const;
  void untilMasterSaid(const std::string& verb, int lines) const;

private:
  void startMaster(const std::string& listen);
  void startNode(int index);
  std::string metrics() const;
  void untilQueuedAs(const std::string& prefix, int jobs, const std::string& where) const;

  Options options_;
  test::TempDir dir_;
  std::string rpc_, http_;
  Process master_;
  std::vector<Process> nodes_;  // end before the master
  std::vector<std::string> sockets_;
};

}  // namespace ts::bench
