#include "cli/doctor.h"

#include <unistd.h>

#include <array>

#include "cli/failure.h"
#include "cli/machine.h"
#include "cli/master.h"
#include "cli/node.h"
#include "cli/places.h"
#include "cli/words.h"
#include "timeslice/timeslice.h"
#include "wire/translate.h"

namespace ts::cli {
namespace {

void append(Findings& to, Findings more) {
  for (Finding& finding : more) to.push_back(std::move(finding));
}

std::string contentOf(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t n;
  while ((n = ::pread(fd, buffer.data(), buffer.size(), off_t(text.size()))) > 0) {
    text.append(buffer.data(), std::size_t(n));
  }
  return text;
}

Findings askNode(const Place& place, const Options& options) {
  Node node(place, options.timeout);
  auto answer = node.ask(TSL_DOCTOR, tsl_message{}, options.timeout);
  if (answer.reply.status != TSL_OK || answer.fds.empty()) {
    return {{Verdict::Fail,
             std::string("tsnoded has no report: ") + ts_strerror(ts_status(answer.reply.status)) +
                 " " + answer.detail(),
             ""}};
  }
  return readReport(contentOf(answer.fds.front()));
}

Findings examineNode(const Place& place, const Options& options) {
  try {
    return askNode(place, options);
  } catch (const Failure& failure) {
    Findings findings{failed(failure)};
    append(findings, examineMachine());
    return findings;
  }
}

struct MasterFinding {
  Finding finding;
  std::string auth;  // as the master has it; as configured if it cannot be asked
};

MasterFinding examineMaster(Loop& loop, const Places& places, const Options& options) {
  try {
    Master master(loop, places, options.timeout);
    auto status = master.call(master.session().statusRequest());
    return {{Verdict::Ok,
             "tsmasterd " + text(status.getVersion()) + " answers at " + places.master.address +
                 ": " + counted(status.getNodes().size(), "node") + ", auth " + master.auth(),
             ""},
            master.auth()};
  } catch (const Failure& failure) {
    return {failed(failure), places.auth};
  }
}

// "peer": the kernel says who is at the master's own socket. Nodes do not come in there.
Finding examineMunge(const std::string& auth) {
  if (auth == "none") return {Verdict::Warn, "auth is \"none\": everybody is believed", ""};
  Proof proof = newMungeAuth()->prove(Role::Operator, {newNonce(), newNonce()});
  if (proof.ok) return {Verdict::Ok, "munged gives credentials", ""};
  if (auth == "peer") {
    return {Verdict::Warn, proof.why + "; not needed at the master's own socket",
            "nodes and tsctl elsewhere need munged unless their auth is \"none\""};
  }
  return {
      Verdict::Fail, proof.why,
      "start munged, with the same key on all machines; or set auth = \"none\" to try things out "
      "on one machine"};
}

}  // namespace

Findings examine(Loop& loop, const Options& options) {
  Findings findings{{Verdict::Ok, std::string("tsctl ") + ts_version(), ""}};
  Places places;
  try {
    places = findPlaces(options);
  } catch (const Failure& failure) {
    findings.push_back({Verdict::Fail, failure.what(), ""});
    return findings;
  }
  append(findings, examineNode(places.node, options));
  MasterFinding master = examineMaster(loop, places, options);
  findings.push_back(examineMunge(master.auth));
  findings.push_back(master.finding);
  return findings;
}

}  // namespace ts::cli
