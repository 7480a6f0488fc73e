// What people may see and do: the sessions behind tsctl.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>

#include "master/history.h"
#include "master/shell.h"
#include "master/slurm_watch.h"
#include "master/standing.h"
#include "timeslice.capnp.h"

namespace ts {

// Who acts. Root, the master's own user and configured operators see and do everything; others see
// and end their own jobs.
struct Actor {
  std::optional<uid_t> uid;  // nothing: auth "none", on loopback: everybody is an operator
  bool mayAll = false;
  bool mayTouch(const JobRecord& job) const { return mayAll || (uid && job.uid == *uid); }
};

class Operators {
public:
  Operators(Shell& shell, Standing& standing, SlurmWatch& slurm, History& history,
            std::string version)
      : shell_(shell),
        standing_(standing),
        slurm_(slurm),
        history_(history),
        version_(std::move(version)),
        startedAt_(shell.now()) {}

  // Throws a sentence when the user has too many already.
  wire::OperatorSession::Client open(std::optional<uid_t> uid);

  Shell& shell() { return shell_; }
  Standing& standing() { return standing_; }
  SlurmWatch& slurm() { return slurm_; }
  History& history() { return history_; }
  const std::string& version() const { return version_; }
  Duration uptime() const { return shell_.now() - startedAt_; }

private:
  friend class Seat;
  Shell& shell_;
  Standing& standing_;
  SlurmWatch& slurm_;
  History& history_;
  std::string version_;
  Instant startedAt_;
  std::map<uid_t, std::uint32_t> sessions_;
};

}  // namespace ts
