#include "node/record_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <limits>
#include <stdexcept>

namespace ts::node {
namespace {

[[noreturn]] void notANumber(std::string_view text) {
  throw std::invalid_argument("\"" + std::string(text) + "\" is no number");
}

// Fields separated by blanks. No name holds one; "-" stands for an empty text.
class Writer {
public:
  Writer() { out_.reserve(96); }
  Writer& put(std::string_view text) {
    if (!out_.empty()) out_ += ' ';
    out_ += text.empty() ? "-" : text;
    return *this;
  }
  template <std::integral T>
  Writer& put(T value) {
    std::array<char, std::numeric_limits<T>::digits10 + 2> digits;
    auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
    return put(std::string_view(digits.begin(), end));
  }
  Writer& put(bool value) { return put(unsigned(value)); }
  Writer& put(const JobName& job) { return put(job.group).put(job.name); }
  Writer& put(const Epoch& epoch) { return put(epoch.generation).put(epoch.counter); }
  Writer& put(const std::optional<Epoch>& epoch) { return put(epoch.value_or(Epoch{})); }
  Writer& put(const Identity& who) { return put(who.pid).put(who.startTime); }
  Writer& put(const Process& p) { return put(p.identity); }
  Writer& put(const std::vector<std::uint32_t>& devices) {
    put(devices.size());
    for (auto d : devices) put(d);
    return *this;
  }
  Writer& put(const DeviceBytes& bytes) {
    put(bytes.size());
    for (const auto& [device, n] : bytes) put(device).put(n);
    return *this;
  }
  std::string out() { return std::move(out_); }

private:
  std::string out_;
};

class Fields {
public:
  explicit Fields(std::string_view text) : rest_(text) {}

  std::string text() {
    if (rest_.empty()) throw std::invalid_argument("it ends too early");
    auto word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(word.size() + 1, rest_.size()));
    return word == "-" ? "" : std::string(word);
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
  bool more() const { return !rest_.empty(); }
  // Nothing may follow.
  void end() {
    if (!rest_.empty()) throw std::invalid_argument("it goes on behind its end");
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
    while (!rest_.empty()) out.insert(text());
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

private:
  std::string_view rest_;
};

}  // namespace

std::string encode(const JobSpec& s) {
  Writer out;
  out.put(s.key).put(s.uid).put(s.gang).put(s.priority).put(s.keepBroken).put(s.backend);
  if (s.slurmJob != 0) out.put(s.slurmJob);  // earlier builds do not know it
  return out.out();
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
  if (in.more()) s.slurmJob = in.as<std::uint32_t>();
  in.end();
  return s;
}

std::string encode(const Participant& p) {
  Writer out;
  out.put(std::uint64_t(p.id))
      .put(p.job)
      .put(p.process)
      .put(p.devices)
      .put(p.joined)
      .put(p.entered)
      .put(p.yielded)
      .put(p.untold)
      .put(p.departed)
      .put(p.died);
  if (p.atGate) out.put(p.atGate);  // earlier builds do not know it
  return out.out();
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
  p.atGate = in.more() && in.number() != 0;
  in.end();
  return p;
}

std::string encode(const Step& s) {
  return Writer()
      .put(s.daemon)
      .put(s.slurmJob)
      .put(s.slurmStep)
      .put(s.key)
      .put(s.uid)
      .put(s.devices)
      .out();
}

Step decodeStep(const std::string& text) {
  Fields in(text);
  Step s;
  s.daemon = in.process();
  s.slurmJob = in.as<std::uint32_t>();
  s.slurmStep = in.as<std::uint32_t>();
  s.key = in.job();
  s.uid = in.as<uid_t>();
  s.devices = in.devices();
  in.end();
  return s;
}

std::string encode(const StepAccount& a) {
  return Writer()
      .put(a.slurmJob)
      .put(a.slurmStep)
      .put(a.epoch)
      .put(a.turns)
      .put(a.waitedUs)
      .put(a.bytes)
      .put(a.heldUs)
      .put(a.sinceUs)
      .out();
}

StepAccount decodeAccount(const std::string& text) {
  Fields in(text);
  StepAccount a;
  a.slurmJob = in.as<std::uint32_t>();
  a.slurmStep = in.as<std::uint32_t>();
  a.epoch = in.epoch();
  a.turns = in.number();
  a.waitedUs = in.number();
  a.bytes = in.number();
  a.heldUs = in.number();
  a.sinceUs = in.number();
  in.end();
  return a;
}

std::string encode(const Wait& w) {
  return Writer().put(std::uint64_t(w.request)).put(w.ticketGeneration).put(w.ticketNumber).out();
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
  return Writer()
      .put(std::uint64_t(m.id))
      .put(m.job)
      .put(m.process)
      .put(unsigned(m.residency))
      .put(m.bytes)
      .put(m.residue)
      .put(m.ended)
      .put(m.unreleased)
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
  m.unreleased = in.more() && in.number() != 0;
  in.end();
  return m;
}

std::string encode(const Grant& g) {
  return Writer().put(g.epoch).put(g.devices).out();
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
  return Writer().put(process).put(bytes).out();
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
  Writer out;
  for (const auto& node : nodes) out.put(node);
  return out.out();
}

std::set<std::string> decodeNodes(const std::string& text) {
  return Fields(text).words();
}

}  // namespace ts::node
