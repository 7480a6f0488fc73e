#include "node/words.h"

namespace ts::node {

std::string text(const JobName& job) {
  return job.group + "/" + job.name;
}

std::string text(const Epoch& epoch) {
  return std::to_string(epoch.generation) + "." + std::to_string(epoch.counter);
}

std::string text(const Identity& who) {
  return "pid " + std::to_string(who.pid);
}

Outcome refusal(Cause cause, std::string detail) {
  return {.code = Outcome::Code::Refused, .cause = cause, .detail = std::move(detail)};
}

Outcome failure(Cause cause, std::string detail) {
  return {.code = Outcome::Code::Failed, .cause = cause, .detail = std::move(detail)};
}

}  // namespace ts::node
