// The first step of a switch: is everything there that it will need? Books it, or says no and
// changes nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "node/mover.h"

namespace ts::node {

class Preparation {
public:
  struct Parts {
    Registry& registry;
    Roll& roll;
    Mover& mover;
    Bookings& bookings;
    Workers& workers;
    std::function<void(MemberId)>
        strayed;       // its state is not where we took it to be: read it again
    std::string root;  // of /proc and /sys, for tests
  };
  explicit Preparation(Parts parts) : parts_(std::move(parts)) {}

  Soon<Outcome> prepare(JobName waiter, std::vector<MemberId> outgoing,
                        std::vector<MemberId> incoming);

  // Nothing has to be asked, nothing can take long.
  bool isWeightless(const std::vector<MemberId>& outgoing, const std::vector<MemberId>& incoming) {
    return isWeightless(outgoing) && isWeightless(incoming);
  }

private:
  struct Findings {
    std::vector<HostLimit> limits;
    std::string broken;  // a snapshot that is not intact, a backend or a process that cannot
    Cause cause = Cause::None;
    MemberId strayed{};
  };
  struct Snapshot {
    SnapshotBackend* backend = nullptr;
    pid_t pid = 0;
    MemberId member{};
  };
  struct Question {
    std::vector<std::pair<pid_t, JobName>> charged;  // whose cgroups are asked
    std::vector<Snapshot> snapshots;
    std::vector<SnapshotBackend*> backends;
    std::string root;
  };
  static Findings look(const Question& question);
  static std::string whyStuck(const Question& question);
  Question questionFor(const std::vector<MemberId>& outgoing,
                       const std::vector<MemberId>& incoming);
  bool isWeightless(const std::vector<MemberId>& members);
  Outcome book(const JobName& waiter, const std::vector<MemberId>& outgoing,
               const std::vector<MemberId>& incoming, const Findings& findings, const Scan& scan);
  Need needOf(const std::vector<MemberId>& outgoing, const std::vector<MemberId>& incoming);

  Parts parts_;
};

}  // namespace ts::node
