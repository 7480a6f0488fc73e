#include "master/report.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>

#include "master/admission.h"
#include "master/facts.h"

namespace ts {
namespace {

class Taker {
public:
  Taker(Shell& shell, NodeRecord& node) : shell_(shell), node_(node) {}

  void take(wire::NodeReport::Reader report) {
    takeDevices(report.getDevices());
    shell_.feed(NodeJoined{node_.id, devices_});
    for (auto number : report.getWithdrawn()) withdraw(number);
    for (auto job : report.getJobs()) takeJob(job);
    forgetRequests();
    node_.reported = true;
    shell_.feed(NodeReported{node_.id});  // what it did not name has ended, for the core
    forgetAbsent();
  }

private:
  void takeDevices(capnp::List<wire::DeviceInfo>::Reader devices) {
    node_.devices.clear();
    for (auto device : devices) {
      node_.devices.push_back({.index = device.getIndex(),
                               .uuid = text(device.getUuid()),
                               .name = text(device.getName()),
                               .totalBytes = device.getTotalBytes(),
                               .freeBytes = device.getFreeBytes()});
      devices_.push_back({node_.id, device.getIndex()});
    }
    std::ranges::sort(devices_);
  }

  void withdraw(std::uint64_t number) {
    auto* participant = shell_.directory().findParticipant(node_, number);
    if (participant != nullptr) shell_.undoJoin(*participant);
  }

  void takeJob(wire::JobReport::Reader report) {
    Directory& directory = shell_.directory();
    Whereabouts said{{node_.name}, fromWire(report.getGathered())};
    for (auto name : report.getNodes()) said.nodes.insert(text(name));
    std::vector<NodeId> nodes;
    for (const std::string& name : said.nodes) nodes.push_back(directory.node(name).id);
    JobRecord& job = declared(shell_, report.getSpec(), nodes, hasGathered(report));
    job.named.insert(nodes.begin(), nodes.end());
    directory.place(job, node_);
    shell_.reported(job, node_, std::move(said));
    jobs_.insert(job.id);
    takeGrant(job, report);
    for (auto participant : report.getParticipants()) takeParticipant(job, participant);
    for (auto fact : report.getMembers()) takeMember(job, fact);
  }

  // To an earlier master: what this one has said it knows, and may have taken back. Of a node that
  // has not been told, a place in the queue is the best word there is.
  bool hasGathered(wire::JobReport::Reader report) {
    if (node_.reported) return false;
    if (report.getGathered() != wire::Gathering::UNKNOWN)
      return report.getGathered() == wire::Gathering::YES;
    for (auto p : report.getParticipants())
      if (p.getWaiting() && p.getTicket().getNumber() != 0) return true;
    return false;
  }

  // Before its participants: one of them may still be in an older slice, for all it knows.
  void takeGrant(JobRecord& job, wire::JobReport::Reader report) {
    if (!report.getGranted()) return;
    shell_.feed(GrantReported{job.id, node_.id, fromWire(report.getEpoch()),
                              devicesFromWire(report.getGrantedDevices(), node_.id)});
  }

  void takeParticipant(JobRecord& job, wire::Participant::Reader report) {
    ParticipantRecord& participant = joined(shell_, node_, job, report);
    participants_.insert(report.getId());
    Epoch epoch = fromWire(report.getEpoch());
    if (report.getEntered() || report.getYielded())
      shell_.feed(SliceReported{participant.id, epoch});
    if (report.getYielded()) shell_.feed(Yielded{participant.id, epoch});
    if (report.getWaiting()) takeWaiter(participant, report);
  }

  void takeWaiter(ParticipantRecord& participant, wire::Participant::Reader report) {
    std::uint64_t number = report.getRequest();
    requests_.insert(number);
    auto* known = shell_.directory().findRequest(node_, number);
    RequestRecord& request =
        known != nullptr ? *known : shell_.directory().addRequest(number, participant);
    shell_.feed(AcquireRequested{.request = request.id,
                                 .participant = participant.id,
                                 .ticket = report.getTicket().getNumber()});
  }

  void takeMember(JobRecord& job, wire::MemberFact::Reader report) {
    MemberFact fact = fromWire(report, node_.id);
    members_.insert(report.getMember());
    fact.member = member(shell_.directory(), node_, job, report.getMember(), report.getPid()).id;
    shell_.feed(MemberSeen{job.id, node_.id, std::move(fact)});
  }

  // Nobody waits for their answers any more, unless a grant is on its way.
  void forgetRequests() {
    Directory& directory = shell_.directory();
    for (auto* request : absent(node_.requests, requests_))
      if (!request->granting) directory.remove(*request);
  }

  void forgetAbsent() {
    Directory& directory = shell_.directory();
    for (auto* participant : absent(node_.participants, participants_))
      directory.remove(*participant);
    for (auto* member : absent(node_.members, members_)) directory.remove(*member);
    std::vector<JobRecord*> gone;
    for (auto& [id, job] : node_.jobs)
      if (jobs_.count(id) == 0) gone.push_back(job);
    for (JobRecord* job : gone) shell_.endedOn(node_, *job);
  }

  template <class Record>
  static std::vector<Record*> absent(const ByLocalNumber<Record>& known,
                                     const std::unordered_set<std::uint64_t>& named) {
    std::vector<Record*> result;
    for (auto& [local, record] : known)
      if (named.count(local) == 0) result.push_back(record);
    return result;
  }

  Shell& shell_;
  NodeRecord& node_;
  Devices devices_;
  std::unordered_set<JobId> jobs_;
  std::unordered_set<std::uint64_t> participants_;
  std::unordered_set<std::uint64_t> members_;
  std::unordered_set<std::uint64_t> requests_;
};

}  // namespace

void takeReport(Shell& shell, NodeRecord& node, wire::NodeReport::Reader report) {
  Taker(shell, node).take(report);
}

}  // namespace ts
