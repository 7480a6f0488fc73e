#include "story.h"

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <utility>

#include "core/describe.h"

namespace ts::test {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what);
}

JobId jobOf(const std::string& word) {
  if (word.empty() || word[0] < 'A' || word[0] > 'Z') fail("not a job: " + word);
  return JobId(word[0] - 'A' + 1);
}

NodeId nodeOf(const std::string& word) {
  if (word.size() < 2 || word[0] != 'n') fail("not a node: " + word);
  return NodeId(std::stoi(word.substr(1)));
}

// `n0:0,1`
Devices devicesOf(const std::string& word) {
  Devices all;
  auto colon = word.find(':');
  if (colon == std::string::npos) return all;
  std::istringstream in(word.substr(colon + 1));
  for (std::string index; std::getline(in, index, ',');) {
    all.push_back({nodeOf(word.substr(0, colon)), std::uint32_t(std::stoi(index))});
  }
  return all;
}

Epoch epochOf(const std::string& word) {
  auto dot = word.find('.');
  return {std::uint32_t(std::stoul(word.substr(0, dot))), std::stoull(word.substr(dot + 1))};
}

// The value whose text is `word`.
template <typename Enum>
Enum valueOf(const std::string& word) {
  for (int i = 0; i < 64; ++i) {
    const char* t = text(Enum(i));
    if (t == word) return Enum(i);
    if (std::string(t) == "?") break;
  }
  fail("no such word: " + word);
}

Duration ms(long n) {
  return std::chrono::milliseconds(n);
}

Residency after(const std::string& verb, Residency now) {
  if (verb == "quiesce" && now == Residency::Resident) return Residency::Quiet;
  if ((verb == "release" || verb == "grant") && now == Residency::Quiet) return Residency::Resident;
  if (verb == "save") return Residency::Saved;
  if (verb == "restore") return Residency::Quiet;
  return now;
}

}  // namespace

std::string StoryNames::job(JobId id) const {
  return std::string(1, char('A' + int(id) - 1));
}
std::string StoryNames::node(NodeId id) const {
  return "n" + std::to_string(int(id));
}
std::string StoryNames::group(GroupId id) const {
  return std::to_string(int(id));
}

bool Story::Words::isUnreleased() const {
  auto it = named.find("released");
  return it != named.end() && it->second == "no";
}

bool Story::Words::has(const std::string& word) const {
  return std::find(plain.begin(), plain.end(), word) != plain.end();
}
long Story::Words::number(const std::string& key, long otherwise) const {
  auto it = named.find(key);
  return it == named.end() ? otherwise : std::stol(it->second);
}

Story::Words Story::words(std::istringstream& in) {
  Words w;
  in >> w.verb;
  for (std::string word; in >> word;) {
    auto eq = word.find('=');
    if (eq == std::string::npos) {
      w.plain.push_back(word);
    } else {
      w.named[word.substr(0, eq)] = word.substr(eq + 1);
    }
  }
  return w;
}

std::string Story::run(const std::string& line) {
  std::istringstream in(line);
  text_.clear();
  if (line.rfind("at ", 0) != 0) {
    configure(words(in));
    return text_;
  }
  std::string at;
  long time = 0;
  in >> at >> time;
  now_ = Instant{ms(time)};
  Words w = words(in);
  goesOn_ = w.has("&");
  std::erase(w.plain, "&");
  act(w);
  return text_;
}

Cluster& Story::cluster() {
  if (!cluster_) cluster_ = std::make_unique<Cluster>(config_);
  return *cluster_;
}

void Story::configure(const Words& w) {
  if (w.verb == "cluster") {
    config_.recovering = w.has("recovering");
    config_.generation = std::uint32_t(w.number("generation", 1));
    cluster_.reset();
    batch_.clear();
    return;
  }
  if (w.verb != "group") fail("expected `cluster`, `group` or `at`: " + w.verb);
  GroupConfig c;
  auto policy = w.named.find("policy");
  if (policy != w.named.end() && policy->second == "priority") c.policy = Policy::Priority;
  c.ageing = ms(w.number("ageing", 60000));
  c.holdLimit = ms(w.number("hold-limit"));
  c.gangWait = ms(w.number("gang-wait", 60000));
  c.brokenGrace = ms(w.number("broken-grace", 30000));
  cluster().configure(GroupId(std::stoi(w.plain.at(0))), c);
}

void Story::act(const Words& w) {
  if (!membership(w) && !turns(w) && !world(w) && !orders(w)) fail("unknown verb: " + w.verb);
}

bool Story::membership(const Words& w) {
  if (w.verb == "job") {
    JobOptions o;
    o.gang = std::uint32_t(w.number("gang"));
    o.priority = int(w.number("priority"));
    o.onBroken = w.has("keep") ? OnBroken::Keep : OnBroken::Kill;
    std::vector<NodeId> nodes;
    if (w.named.count("nodes")) {
      std::istringstream in(w.named.at("nodes"));
      for (std::string node; std::getline(in, node, ',');) nodes.push_back(nodeOf(node));
    }
    send(JobDeclared{jobOf(w.plain.at(0)), GroupId(w.number("group", 1)), o, nodes,
                     w.has("gathered")});
  } else if (w.verb == "join") {
    JobId job = jobOf(w.plain.at(0));
    std::string where = w.plain.at(1);
    Person p{ParticipantId(++participants_), job, {}};
    people_[w.plain[0] + std::to_string(++joined_[job])] = p;
    ProcessId process{std::uint64_t(w.number("process", long(1000 + participants_)))};
    send(ParticipantJoined{p.id, job, nodeOf(where.substr(0, where.find(':'))), process,
                           devicesOf(where)});
  } else if (w.verb == "rejoin") {
    const Person& p = person(w.plain.at(0));
    std::string where = w.plain.at(1);
    send(ParticipantJoined{p.id, p.job, nodeOf(where.substr(0, where.find(':'))),
                           ProcessId(w.number("process", long(1000 + std::uint64_t(p.id)))),
                           devicesOf(where)});
  } else if (w.verb == "member") {
    JobId job = jobOf(w.plain.at(0));
    MemberId id{std::uint64_t(int(job) * 10 + ++members_[job])};
    MemberFact fact{id, valueOf<Residency>(w.plain.at(2)), std::uint64_t(w.number("bytes")),
                    0,  devicesOf(w.plain.at(1)),          w.isUnreleased()};
    things_[id] = {job, fact.devices.at(0).node, fact};
    send(MemberSeen{job, fact.devices[0].node, fact});
  } else if (w.verb == "seen") {
    Thing& t = things_.at(MemberId(std::stoul(w.plain.at(0))));
    t.fact.residency = valueOf<Residency>(w.plain.at(1));
    t.fact.unreleased = w.isUnreleased();
    if (w.plain.size() > 2) t.fact.devices = devicesOf(w.plain[2]);
    send(MemberSeen{t.job, t.node, t.fact});
  } else if (w.verb == "died") {
    send(MemberDied{MemberId(std::stoul(w.plain.at(0)))});
  } else if (w.verb == "cleared") {
    send(MemberCleared{MemberId(std::stoul(w.plain.at(0)))});
    things_.erase(MemberId(std::stoul(w.plain.at(0))));
  } else if (w.verb == "left") {
    send(ParticipantLeft{person(w.plain.at(0)).id, w.has("died"), w.has("undone")});
  } else if (w.verb == "ended") {
    send(JobEnded{jobOf(w.plain.at(0))});
  } else {
    return false;
  }
  return true;
}

bool Story::turns(const Words& w) {
  if (w.verb == "acquire") {
    Person& p = person(w.plain.at(0));
    p.request = RequestId(++requests_);
    asked_[p.request] = w.plain[0];
    send(AcquireRequested{p.request, p.id, w.has("try"), std::uint64_t(w.number("ticket"))});
  } else if (w.verb == "cancel") {
    send(AcquireCancelled{person(w.plain.at(0)).request});
  } else if (w.verb == "yield" || w.verb == "in-slice") {
    Person& p = person(w.plain.at(0));
    Epoch epoch = w.named.count("epoch") ? epochOf(w.named.at("epoch")) : epochs_[p.job];
    if (w.verb == "yield") {
      send(Yielded{p.id, epoch});
    } else {
      epochs_[p.job] = epoch;
      send(SliceReported{p.id, epoch});
    }
  } else if (w.verb == "granted") {
    JobId job = jobOf(w.plain.at(0));
    Devices devices = devicesOf(w.plain.at(1));
    epochs_[job] = epochOf(w.named.at("epoch"));
    send(GrantReported{job, devices.at(0).node, epochs_[job], devices});
  } else {
    return false;
  }
  return true;
}

bool Story::world(const Words& w) {
  auto first = [&] { return w.plain.at(0); };
  if (w.verb == "node" || w.verb == "joins") {
    Devices all;
    for (long i = 0; i < w.number("devices", 1); ++i) {
      all.push_back({nodeOf(first()), std::uint32_t(i)});
    }
    send(NodeJoined{nodeOf(first()), all});
    if (w.verb == "node") send(NodeReported{nodeOf(first())});
  } else if (w.verb == "reports") {
    send(NodeReported{nodeOf(first())});
  } else if (w.verb == "suspect") {
    send(NodeSuspected{nodeOf(first())});
  } else if (w.verb == "dead") {
    NodeId node = nodeOf(first());
    std::erase_if(open_, [&](const Open& o) { return o.node == node; });
    send(NodeDied{node});
  } else if (w.verb == "drain" || w.verb == "undrain") {
    send(NodeDrained{nodeOf(first()), w.verb == "drain"});
  } else if (w.verb == "pause" || w.verb == "resume") {
    send(GroupPaused{GroupId(std::stoi(first())), w.verb == "pause"});
  } else if (w.verb == "evict") {
    send(JobEvicted{jobOf(first()), w.has("kill")});
  } else if (w.verb == "clear") {
    send(FaultCleared{jobOf(first())});
  } else if (w.verb == "pass") {
    send(TimePassed{});
  } else {
    return false;
  }
  return true;
}

bool Story::orders(const Words& w) {
  static const std::array verbs{"ok", "refuse", "fail", "gone", "late"};
  if (std::find(verbs.begin(), verbs.end(), w.verb) == verbs.end()) return false;
  if (w.has("all")) {
    while (!open_.empty()) answer(w, true);
  } else {
    answer(w, false);
  }
  return true;
}

// Answers the oldest open order, or the one that the words name.
void Story::answer(const Words& w, bool all) {
  auto at = open_.begin();
  if (!all) {
    std::string key;
    for (const std::string& word : w.plain) {
      if (word != "lasting" && word != "unread") key += (key.empty() ? "" : " ") + word;
    }
    at = std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.key == key; });
    if (at == open_.end()) fail("no such order is open: " + key);
  }
  if (w.verb == "late") return send(OrderOverdue{at->id});
  Open open = *at;
  open_.erase(at);
  send(OrderFinished{open.id, outcome(w, open)});
}

Outcome Story::outcome(const Words& w, const Open& open) {
  Outcome o;
  std::string verb = open.key.substr(0, open.key.find(' '));
  if (w.verb == "refuse") o.code = Outcome::Code::Refused;
  if (w.verb == "fail") o.code = Outcome::Code::Failed;
  if (w.verb == "gone") o.code = Outcome::Code::Gone;
  if (w.named.count("cause")) o.cause = valueOf<Cause>(w.named.at("cause"));
  if (w.named.count("detail")) o.detail = w.named.at("detail");
  o.lasting = w.has("lasting");
  o.need = std::uint64_t(w.number("need"));
  o.free = std::uint64_t(w.number("free"));
  for (auto& [id, t] : things_) {
    bool one = verb == "save" || verb == "restore";
    bool mine = t.job == open.job && t.node == open.node && (!one || id == open.member);
    if (!mine) continue;
    if (o.ok()) t.fact.residency = after(verb, t.fact.residency);
    if (w.named.count("left")) t.fact.residency = valueOf<Residency>(w.named.at("left"));
    if (one) t.fact.unreleased = o.cause == Cause::NotReleased;
    if (o.ok() && one) o.bytes += t.fact.bytes;
    if (!w.has("unread")) o.members.push_back(t.fact);
  }
  return o;
}

void Story::send(const Event& event) {
  batch_.push_back(event);
  if (goesOn_) return;
  Actions out;
  cluster().step(now_, std::exchange(batch_, {}), out);
  for (const Action& a : out) {
    note(a);
    text_ += tell(a) + "\n";
  }
}

// Remembers orders that want an answer, and epochs.
void Story::note(const Action& action) {
  std::visit(
      [&](const auto& a) {
        if constexpr (requires { a.operation; }) {
          std::string line = describe(action);
          std::string key =
              line.substr(0, line.find(' ')) + " " + names_.node(a.node) + " " + names_.job(a.job);
          MemberId member{};
          if constexpr (requires { a.member; }) {
            member = a.member;
            key += " " + std::to_string(std::uint64_t(member));
          }
          open_.push_back({key, a.operation, a.node, a.job, member});
        }
      },
      action);
  if (const auto* grant = std::get_if<Grant>(&action)) epochs_[grant->job] = grant->epoch;
}

// Without operation ids, and with those who asked instead of the numbers of their requests.
std::string Story::tell(const Action& action) const {
  std::string line = describe(action, names_);
  if (auto at = line.find(" op="); at != std::string::npos) {
    line.erase(at, line.find(' ', at + 1) - at);
  }
  for (const char* key : {" requests=", " request="}) {
    auto at = line.find(key);
    if (at == std::string::npos) continue;
    auto end = std::min(line.find(' ', at + 1), line.size());
    auto value = at + std::string(key).size();
    line.replace(at, end - at, " to=" + whoAsked(line.substr(value, end - value)));
  }
  if (auto at = line.find(" waited_us="); at != std::string::npos) {
    auto end = line.find(' ', at + 1);
    long us = std::stol(line.substr(at + 11, end - at - 11));
    line.replace(at, end - at, " waited=" + std::to_string(us / 1000) + "ms");
  }
  return line;
}

std::string Story::whoAsked(const std::string& text) const {
  std::istringstream in(text);
  std::string who;
  for (std::string id; std::getline(in, id, ',');) {
    auto it = asked_.find(RequestId(std::stoull(id)));
    who += (who.empty() ? "" : ",") + (it == asked_.end() ? id : it->second);
  }
  return who;
}

Story::Person& Story::person(const std::string& name) {
  auto it = people_.find(name);
  if (it == people_.end()) fail("nobody joined as " + name);
  return it->second;
}

}  // namespace ts::test
