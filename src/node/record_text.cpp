#include "node/record_text.h"

#include <charconv>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace ts::node {
namespace {

[[noreturn]] void notANumber(std::string_view text) {
  throw std::invalid_argument("\"" + std::string(text) + "\" is no number");
}

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
  Fields& put(const Epoch& epoch) {
    return put(std::uint64_t(epoch.generation)).put(epoch.counter);
  }
  Fields& put(const std::optional<Epoch>& epoch) { return put(epoch.value_or(Epoch{})); }
  Fields& put(const Identity& who) { return put(std::uint64_t(who.pid)).put(who.startTime); }
  Fields& put(const Process& p) { return put(p.identity); }
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
    if (!(in_ >> word)) throw std::invalid_argument("it ends too early");
    return word == "-" ? "" : word;
  }
  std::uint64_t number() { return decodeNumber(text()); }
  std::uint64_t numberUpTo(std::uint64_t most) {
    auto value = number();
    if (value > most) throw std::invalid_argument("a number is out of its range");
    return value;
  }
  template <class T>
  T as() {
    return T(numberUpTo(std::numeric_limits<T>::max()));
  }
  std::int32_t signedNumber() {
    auto word = text();
    std::int32_t value = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size()) notANumber(word);
    return value;
  }
  // Nothing may follow.
  void end() {
    std::string word;
    if (in_ >> word) throw std::invalid_argument("it goes on behind its end");
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
  Identity identity() {
    auto pid = as<pid_t>();
    return {pid, number()};
  }
  Process process() { return {.identity = identity()}; }
  std::vector<std::uint32_t> devices() {
    std::vector<std::uint32_t> out;
    for (auto n = number(); n > 0; --n) out.push_back(as<std::uint32_t>());
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
  s.priority = in.signedNumber();
  s.keepBroken = in.number() != 0;
  s.backend = in.text();
  in.end();
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
  p.id = ParticipantId{in.number()};
  p.job = in.job();
  p.process = in.process();
  p.devices = in.devices();
  p.joined = in.number() != 0;
  p.entered = in.maybeEpoch();
  p.yielded = in.epoch();
  p.untold = in.maybeEpoch();
  p.departed = in.number() != 0;
  p.died = in.number() != 0;
  in.end();
  return p;
}

std::string encode(const Wait& w) {
  return Fields()
      .put(std::uint64_t(w.request))
      .put(std::uint64_t(w.ticketGeneration))
      .put(w.ticketNumber)
      .out();
}

Wait decodeWait(const std::string& text) {
  Fields in(text);
  Wait w;
  w.request = RequestId{in.number()};
  w.ticketGeneration = in.as<std::uint32_t>();
  w.ticketNumber = in.number();
  in.end();
  return w;
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
  m.id = MemberId{in.number()};
  m.job = in.job();
  m.process = in.process();
  m.residency = Residency(in.numberUpTo(std::uint64_t(Residency::Faulted)));
  m.bytes = in.bytes();
  m.residue = in.bytes();
  m.ended = in.number() != 0;
  in.end();
  return m;
}

std::string encode(const Grant& g) {
  return Fields().put(g.epoch).put(g.devices).out();
}

Grant decodeGrant(const std::string& text) {
  Fields in(text);
  Grant g;
  g.epoch = in.epoch();
  g.devices = in.devices();
  in.end();
  return g;
}

std::string encode(const Identity& process, const DeviceBytes& bytes) {
  return Fields().put(process).put(bytes).out();
}

std::pair<Identity, DeviceBytes> decodeByHand(const std::string& text) {
  Fields in(text);
  auto process = in.identity();
  auto bytes = in.bytes();
  in.end();
  return {process, bytes};
}

std::uint64_t decodeNumber(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) notANumber(text);
  return value;
}
std::string encode(const std::set<std::string>& nodes) {
  Fields out;
  for (const auto& node : nodes) out.put(node);
  return out.out();
}

std::set<std::string> decodeNodes(const std::string& text) {
  return Fields(text).words();
}

}  // namespace ts::node
