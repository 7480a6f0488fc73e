// One operator's session: every call says what it did, or why not.
#pragma once

#include "master/operators.h"

namespace ts {

// The place of one session among those of its user.
class Seat {
public:
  Seat(Operators& operators, std::optional<uid_t> uid);  // throws a sentence where there is none
  ~Seat();
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

private:
  Operators& operators_;
  std::optional<uid_t> uid_;
};

class OperatorSession final : public wire::OperatorSession::Server {
public:
  OperatorSession(Operators& operators, Actor actor)
      : seat_(operators, actor.uid),
        operators_(operators),
        shell_(operators.shell()),
        actor_(actor) {}

protected:
  kj::Promise<void> status(StatusContext context) override;
  kj::Promise<void> why(WhyContext context) override;
  kj::Promise<void> pauseGroup(PauseGroupContext context) override;
  kj::Promise<void> evict(EvictContext context) override;
  kj::Promise<void> clearFault(ClearFaultContext context) override;
  kj::Promise<void> drain(DrainContext context) override;
  kj::Promise<void> events(EventsContext context) override;
  kj::Promise<void> declareDead(DeclareDeadContext context) override;
  kj::Promise<void> slurmEnded(SlurmEndedContext context) override;

private:
  // The one job that the word means, or why there is none.
  JobRecord* job(const std::string& word, Outcome& why);
  NodeRecord* node(const std::string& name, Outcome& why);
  bool knowsGroup(const std::string& name, Outcome& why) const;
  bool mayAll(std::string_view what, Outcome& why) const;

  Seat seat_;
  Operators& operators_;
  Shell& shell_;
  Actor actor_;
};

}  // namespace ts
