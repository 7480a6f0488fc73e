#include "master/master.h"

#include "master/scrape.h"

namespace ts {
namespace {

// What may block runs on a worker, so that a munged that hangs delays nobody's grant.
Offload onWorkers(Workers& workers) {
  return [&workers](std::function<void()> call) {
    return workers
        .call<int>([call = std::move(call)] {
          call();
          return 0;
        })
        .ignoreResult();
  };
}

constexpr std::chrono::seconds kSlurmAnswers{10};  // as long as its commands wait by themselves

SlurmWatch::Ask byCommands(Workers& workers, const MasterConfig& config) {
  return [&workers, &config] {
    return workers.call<SlurmWord>(
        [conf = config.slurmConf] { return askSlurm(conf, kSlurmAnswers); });
  };
}

SlurmWatch::Ask askerOf(const MasterNeeds& needs) {
  return needs.askSlurm ? needs.askSlurm : byCommands(needs.workers, needs.config);
}

}  // namespace

Master::Master(MasterNeeds needs)
    : events(needs.log, directory),
      meters(metrics, directory),
      history(needs.store, needs.workers),
      shell(needs.port.timer(), needs.config, directory, events, meters),
      life(needs.store),
      standing(shell, needs.store, needs.workers),
      reception(shell, life, standing, needs.port.timer(), needs.store, needs.workers),
      slurm(needs.port.timer(), shell, askerOf(needs)),
      operators(shell, standing, slurm, history, needs.version),
      house{life, needs.auth, onWorkers(needs.workers), reception, operators, needs.log},
      housekeeping(needs.port.timer(), shell, history),
      listeners(needs.port, house) {
  needs.log.tee([this](Level, const std::string& line) { history.add(line); });
  scrapeState(metrics, shell, history);
  shell.begin(life.generation(), life.hadAnother());
  reception.expectKnown();
  standing.apply();
}

Master::~Master() noexcept(false) {
  shell.stop();
  // A call that we still owe an answer keeps its session alive beyond us.
  for (NodeRecord* node : directory.nodes())
    if (node->link != nullptr) node->link->retire();
  events.log().tee(nullptr);
}

}  // namespace ts
