#include "node/record_text.h"

#include <sstream>

namespace ts::node {
namespace {

// Fields separated by blanks. No name holds one; "-" stands for an empty text.
class Fields {
public:
  Fields() = default;
  explicit Fields(const std::string& text) : in_(text) {}

  Fields& put(const std::string& text) {
    out_ += (out_.empty() ? "" : " ") + (text.empty() ? std::string("-") : text);
    return *this;
  }
  Fields& put(std::uint64_t value) { return put(std::to_string(value)); }
  Fields& put(const JobName& job) { return put(job.group).put(job.name); }
  Fields& put(const Epoch& epoch) { return put(std::uint64_t(epoch.generation)).put(epoch.counter); }
  Fields& put(const std::optional<Epoch>& epoch) { return put(epoch.value_or(Epoch{})); }
  Fields& put(const Process& p) {
    return put(std::uint64_t(p.identity.pid)).put(p.identity.startTime);
  }
  Fields& put(const std::vector<std::uint32_t>& devices) {
    put(std::uint64_t(devices.size()));
    for (auto d : devices) put(std::uint64_t(d));
    return *this;
  }
  Fields& put(const DeviceBytes& bytes) {
    put(std::uint64_t(bytes.size()));
    for (const auto& [device, n] : bytes) put(std::uint64_t(device)).put(n);
    return *this;
  }

  std::string text() {
    std::string word;
    in_ >> word;
    return word == "-" ? "" : word;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    in_ >> value;
    return value;
  }
  template <class T>
  T as() {
    return T(number());
  }
  JobName job() {
    auto group = text();
    return {group, text()};
  }
  Epoch epoch() {
    auto generation = as<std::uint32_t>();
    return {generation, number()};
  }
  // A slice that never was is none.
  std::optional<Epoch> maybeEpoch() {
    auto e = epoch();
    return e == Epoch{} ? std::nullopt : std::optional(e);
  }
  Process process() {
    Process p;
    p.identity.pid = as<pid_t>();
    p.identity.startTime = number();
    return p;
  }
  std::vector<std::uint32_t> devices() {
    std::vector<std::uint32_t> out(number());
    for (auto& d : out) d = as<std::uint32_t>();
    return out;
  }
  std::set<std::string> words() {
    std::set<std::string> out;
    for (std::string word; in_ >> word;) out.insert(word);
    return out;
  }
  DeviceBytes bytes() {
    DeviceBytes out;
    for (auto n = number(); n > 0; --n) {
      auto device = as<std::uint32_t>();
      out[device] = number();
    }
    return out;
  }
  std::string out() { return std::move(out_); }

private:
  std::istringstream in_;
  std::string out_;
};

}  // namespace

std::string encode(const JobSpec& s) {
  return Fields()
      .put(s.key)
      .put(std::uint64_t(s.uid))
      .put(std::uint64_t(s.gang))
      .put(std::to_string(s.priority))
      .put(std::uint64_t(s.keepBroken))
      .put(s.backend)
      .out();
}

JobSpec decodeSpec(const std::string& text) {
  Fields in(text);
  JobSpec s;
  s.key = in.job();
  s.uid = in.as<uid_t>();
  s.gang = in.as<std::uint32_t>();
  s.priority = std::int32_t(std::stol(in.text()));
  s.keepBroken = in.number() != 0;
  s.backend = in.text();
  return s;
}

std::string encode(const Participant& p) {
  return Fields()
      .put(std::uint64_t(p.id))
      .put(p.job)
      .put(p.process)
      .put(p.devices)
      .put(std::uint64_t(p.joined))
      .put(p.entered)
      .put(p.yielded)
      .put(p.untold)
      .put(std::uint64_t(p.departed))
      .put(std::uint64_t(p.died))
      .out();
}

Participant decodeParticipant(const std::string& text) {
  Fields in(text);
  Participant p;
  p.id = in.as<ParticipantId>();
  p.job = in.job();
  p.process = in.process();
  p.devices = in.devices();
  p.joined = in.number() != 0;
  p.entered = in.maybeEpoch();
  p.yielded = in.epoch();
  p.untold = in.maybeEpoch();
  p.departed = in.number() != 0;
  p.died = in.number() != 0;
  return p;
}

std::string encode(const Member& m) {
  return Fields()
      .put(std::uint64_t(m.id))
      .put(m.job)
      .put(m.process)
      .put(std::uint64_t(m.residency))
      .put(m.bytes)
      .put(m.residue)
      .put(std::uint64_t(m.ended))
      .out();
}

Member decodeMember(const std::string& text) {
  Fields in(text);
  Member m;
  m.id = in.as<MemberId>();
  m.job = in.job();
  m.process = in.process();
  m.residency = in.as<Residency>();
  m.bytes = in.bytes();
  m.residue = in.bytes();
  m.ended = in.number() != 0;
  return m;
}

std::string encode(const Grant& g) { return Fields().put(g.epoch).put(g.devices).out(); }

Grant decodeGrant(const std::string& text) {
  Fields in(text);
  Grant g;
  g.epoch = in.epoch();
  g.devices = in.devices();
  return g;
}

std::string encode(const std::set<std::string>& nodes) {
  Fields out;
  for (const auto& node : nodes) out.put(node);
  return out.out();
}

std::set<std::string> decodeNodes(const std::string& text) { return Fields(text).words(); }

}  // namespace ts::node
