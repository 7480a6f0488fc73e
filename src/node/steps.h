// Steps of Slurm jobs on this node: what their slurmstepds ask before tasks start, what turns they
// had, and what is left of them when they end.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <string>
#include <vector>

#include "node/claim.h"
#include "node/local_server.h"
#include "node/master_link.h"
#include "node/participants.h"
#include "node/roll.h"
#include "node/watch.h"

namespace ts::node {

struct StepRequest {
  Step step;
  JobSpec spec;
  kj::Duration patience = 0 * kj::SECONDS;
};

class Steps final : private kj::TaskSet::ErrorHandler {
public:
  struct Parts {
    Registry& registry;
    MasterLink& link;
    Roll& roll;
    Watch& watch;
    kj::Timer& timer;
    Log& log;
    std::string node;
    std::vector<NamedDevice> devices;
    std::function<Connection*(ConnectionId)> find;
    std::function<int(int pidfd, int number)> signal;
  };
  explicit Steps(Parts parts) : parts_(std::move(parts)), tasks_(*this) {}

  // From slurmstepd and the epilog. Each `request` is answered on the connection, now or later.
  void begin(Connection& from, std::uint64_t request, StepRequest what);
  void end(Connection& from, std::uint64_t request, std::uint32_t job, std::uint32_t step);
  void account(Connection& from, std::uint64_t request, std::uint32_t job, std::uint32_t step);
  void outlook(Connection& from, std::uint64_t request, const JobName& job);

  // A slurmstepd that ends without a word leaves tasks that nobody ends: Slurm has lost them.
  void processEnded(const Identity& identity);
  // After a restart: of steps whose slurmstepd ended meanwhile.
  void adopt();
  void linkSettled();

  // Whose step a job is; 0: of nobody's, or of another user's.
  std::uint32_t slurmJobFor(const JobSpec& spec) const;

  // Turns, as they are counted for the job's last line.
  void granted(const GrantOrder& order);
  void sliceEnded(const JobName& job);

private:
  struct Answer {
    Outcome outcome;
    std::string environment;
  };

  void taskFailed(kj::Exception&& exception) override;
  std::string devicesLine(const Step& step) const;
  kj::Promise<Answer> decide(StepRequest what);
  kj::Promise<Outcome> findOthers(const StepRequest& what);
  kj::Promise<Answer> askMaster(const StepRequest& what);
  kj::Promise<Answer> tooLate(const StepRequest& what);
  kj::Promise<void> whenUp();
  void decided(ConnectionId connection, std::uint64_t request, const StepRequest& what,
               const Answer& answer);
  void over(const Step& step, const char* why);
  std::string accountOf(std::uint32_t job, std::uint32_t step) const;
  void close(StepAccount& account) const;
  std::uint64_t nowUs() const;
  unsigned endProcesses(const JobName& job);

  Parts parts_;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;  // for a master
  kj::TaskSet tasks_;
};

}  // namespace ts::node
