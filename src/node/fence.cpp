#include "node/fence.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <stdexcept>

#include "node/record_text.h"
#include "node/words.h"

namespace ts::node {
namespace {

const std::string kPrefix = "order/";

std::string nameOf(const JobName& job, OperationId operation) {
  std::string out;
  out.reserve(64);
  out.append(kPrefix).append(job.group).append("/").append(job.name).append("/");
  return out.append(std::to_string(std::uint64_t(operation)));
}

Outcome withoutMembers(const Outcome& o) {
  return {.code = o.code,
          .cause = o.cause,
          .need = o.need,
          .free = o.free,
          .lasting = o.lasting,
          .detail = o.detail,
          .bytes = o.bytes,
          .members = {}};
}

// Before the outcome of an order that ended a slice.
constexpr char kEnded = 'e';

std::string encodeEnded(const Epoch& e) {
  return kEnded + std::to_string(e.generation) + ' ' + std::to_string(e.counter) + ' ';
}

std::optional<Epoch> takeEnded(std::string& text) {
  if (text.empty() || text[0] != kEnded) return std::nullopt;
  std::istringstream in(text.substr(1));
  Epoch e;
  in >> e.generation >> e.counter;
  if (!in.ignore()) throw std::invalid_argument("it names no slice");
  text.erase(0, 1 + std::size_t(in.tellg()));
  return e;
}

}  // namespace

std::string encode(const Outcome& o) {
  std::array<char, 6 * 21> digits;
  char* end = digits.begin();
  for (auto field : {std::uint64_t(o.code), std::uint64_t(o.cause), std::uint64_t(o.need),
                     std::uint64_t(o.free), std::uint64_t(o.lasting), std::uint64_t(o.bytes)}) {
    end = std::to_chars(end, digits.end(), field).ptr;
    *end++ = ' ';
  }
  std::string out;
  out.reserve(std::size_t(end - digits.begin()) + o.detail.size());
  return out.append(digits.begin(), end).append(o.detail);
}

Outcome decodeOutcome(const std::string& text) {
  std::istringstream in(text);
  int code = 0, cause = 0;
  Outcome o;
  in >> code >> cause >> o.need >> o.free >> o.lasting >> o.bytes;
  if (!in) throw std::invalid_argument("it is no outcome");
  in.get();
  std::getline(in, o.detail, '\0');
  o.code = Outcome::Code(code);
  o.cause = causeFromWire(std::uint16_t(cause));
  return o;
}

Fence::Fence(Records& records) : records_(records) {
  load();
}

void Fence::load() {
  records_.each(kPrefix, [&](const std::string& rest, const std::string& value) {
    auto first = rest.find('/');
    auto second = rest.find('/', first + 1);
    if (second == std::string::npos) throw std::invalid_argument("it names no order");
    JobName job{rest.substr(0, first), rest.substr(first + 1, second - first - 1)};
    Entry entry{.operation = OperationId{decodeNumber(rest.substr(second + 1))}};
    auto text = value;
    entry.ended = takeEnded(text);
    if (text.empty())
      entry.cut = true;
    else
      entry.outcome = decodeOutcome(text);
    orders_[job].push_back(std::move(entry));
  });
  for (auto& [job, entries] : orders_) std::ranges::sort(entries, {}, &Entry::operation);
}

Fence::Decision Fence::look(const JobName& job, OperationId operation) const {
  using Kind = Decision::Kind;
  auto it = orders_.find(job);
  if (it == orders_.end()) return {};
  const auto& entries = it->second;
  if (const auto* same = find(entries, operation)) {
    if (same->cut) return {};
    if (!same->outcome) return {.kind = Kind::Running};
    return {.kind = Kind::Repeated, .outcome = *same->outcome};
  }
  if (!entries.empty() && operation < entries.back().operation) {
    return {.kind = Kind::Stale, .last = entries.back().operation};
  }
  return {};
}

Fence::Decision Fence::admit(const JobName& job, OperationId operation) {
  auto decision = look(job, operation);
  if (decision.kind != Decision::Kind::Obey) return decision;
  auto& entries = orders_[job];
  if (auto* same = find(entries, operation)) {
    same->cut = false;  // its intent is in the record
    return decision;
  }
  records_.put(nameOf(job, operation), "");  // first: what cannot be written down is not begun
  entries.push_back({.operation = operation});
  return decision;
}

bool Fence::hasEnded(const JobName& job, OperationId operation, const Epoch& slice) const {
  auto it = orders_.find(job);
  return it != orders_.end() && std::ranges::any_of(it->second, [&](const Entry& entry) {
           return entry.operation > operation && entry.ended && *entry.ended >= slice;
         });
}

void Fence::finished(const JobName& job, OperationId operation, const Outcome& outcome,
                     std::optional<Epoch> ended) {
  auto changes = finishing(job, operation, outcome, ended);
  if (!changes.empty()) records_.keep(changes);
}

std::vector<Records::Change> Fence::finishing(const JobName& job, OperationId operation,
                                              const Outcome& outcome, std::optional<Epoch> ended) {
  auto it = orders_.find(job);
  if (it == orders_.end()) return {};  // the job ended, or a new generation began, while it ran
  auto* same = find(it->second, operation);
  if (!same) return {};
  same->outcome = withoutMembers(outcome);
  same->ended = ended;
  auto value = ended ? encodeEnded(*ended) + encode(outcome) : encode(outcome);
  std::vector<Records::Change> changes;
  changes.reserve(2);
  changes.push_back({nameOf(job, operation), std::move(value), false});
  drop(job, changes);
  return changes;
}

// The oldest that ended go; what runs stays.
void Fence::drop(const JobName& job, std::vector<Records::Change>& changes) {
  auto& entries = orders_[job];
  while (entries.size() > kRemembered && (entries.front().outcome || entries.front().cut)) {
    changes.push_back({nameOf(job, entries.front().operation), "", true});
    entries.pop_front();
  }
}

void Fence::newGeneration() {
  std::vector<Records::Change> changes;
  for (const auto& [job, entries] : orders_) {
    for (const auto& entry : entries) changes.push_back({nameOf(job, entry.operation), "", true});
  }
  records_.keep(changes);
  orders_.clear();
}

void Fence::forget(const JobName& job) {
  auto it = orders_.find(job);
  if (it == orders_.end()) return;
  std::vector<Records::Change> changes;
  for (const auto& entry : it->second) changes.push_back({nameOf(job, entry.operation), "", true});
  orders_.erase(it);
  records_.keep(changes);
}

}  // namespace ts::node
