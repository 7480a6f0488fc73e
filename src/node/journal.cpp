#include "node/journal.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>

#include "wire/greet.h"

namespace ts::node {
namespace {

constexpr std::size_t kRoom = 1 << 20;    // bytes between two compactions at least
constexpr std::size_t kAhead = 64 << 10;  // of these, for what has begun

// At the beginning of the file. `end` is what makes a step count: it is written last, and at once.
struct Header {
  std::array<char, 8> magic;
  std::uint64_t end;
};
constexpr std::array<char, 8> kMagic{'t', 's', 'j', 'r', 'n', 'l', '1', '\n'};

std::uint32_t checksum(std::string_view text, std::uint32_t before) {
  auto bytes = reinterpret_cast<const Bytef*>(text.data());
  return std::uint32_t(::crc32(before, bytes, uInt(text.size())));
}

// Always eight digits.
std::string hex(std::uint32_t sum) {
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[sum >> shift & 0xf];
  return out;
}

constexpr std::string_view kSpecial("\t\n\0%", 4);

bool holds(std::string_view text, char c) {
  return text.find(c) != std::string_view::npos;
}

const char* escapeOf(char c) {
  switch (c) {
    case '\t':
      return "%09";
    case '\n':
      return "%0a";
    case '\0':
      return "%00";
    default:
      return "%25";
  }
}

// Nearly every text is plain.
void appendEscaped(std::string& out, std::string_view text) {
  if (std::ranges::none_of(kSpecial, [text](char c) { return holds(text, c); })) {
    out += text;
    return;
  }
  for (char c : text) {
    if (holds(kSpecial, c))
      out += escapeOf(c);
    else
      out += c;
  }
}

// A step is a line per change and a last line with the checksum of all steps up to it.
void encode(std::span<const Records::Change> changes, std::string& out, std::uint32_t& sum) {
  out.clear();
  for (const auto& c : changes) {
    out += c.erase ? '-' : '=';
    appendEscaped(out, c.name);
    if (!c.erase) {
      out += '\t';
      appendEscaped(out, c.value);
    }
    out += '\n';
  }
  sum = checksum(out, sum);
  out += '.';
  out += hex(sum);
  out += '\n';
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0;;) {
    auto end = text.find('\n', at);
    if (end == std::string_view::npos) return out;  // what has no end was cut short
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

Records::Change decodeLine(std::string_view line) {
  if (line.front() == '-') return {unescaped(line.substr(1)), "", true};
  auto tab = line.find('\t');
  if (line.front() != '=' || tab == std::string_view::npos) {
    throw std::invalid_argument("line \"" + std::string(line) + "\"");
  }
  return {unescaped(line.substr(1, tab - 1)), unescaped(line.substr(tab + 1)), false};
}

[[noreturn]] void unreadable(const std::string& place, const std::string& what,
                             const std::string& why) {
  kj::throwFatalException(sentence(place + ": " + what + " cannot be read: " + why +
                                   "; stop the jobs and remove the file"));
}

std::string readAll(int fd) {
  std::string out;
  char buffer[65536];
  for (;;) {
    ssize_t n;
    KJ_SYSCALL(n = ::read(fd, buffer, sizeof(buffer)));
    if (n == 0) return out;
    out.append(buffer, std::size_t(n));
  }
}

class Unmap final : public kj::ArrayDisposer {
  void disposeImpl(void* first, std::size_t, std::size_t bytes, std::size_t,
                   void (*)(void*)) const override {
    ::munmap(first, bytes);
  }
};

// The file's first `bytes`, in memory and on the disk from now on.
kj::Array<char> mapped(int fd, std::size_t bytes, const std::string& path) {
  static const Unmap unmap;
  if (int error = ::posix_fallocate(fd, 0, off_t(bytes)); error != 0) {
    kj::throwFatalException(sentence("no room for " + std::to_string(bytes) + " bytes in " + path +
                                         ": " + std::strerror(error) + "; make room there",
                                     kj::Exception::Type::OVERLOADED));
  }
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (at == MAP_FAILED) KJ_FAIL_SYSCALL("mmap", errno, bytes);
  return kj::Array<char>(static_cast<char*>(at), bytes, unmap);
}

// At least `bytes` of it, and all that is there already.
kj::Array<char> opened(const std::string& path, std::size_t bytes) {
  int fd;
  KJ_SYSCALL(fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), path.c_str());
  kj::AutoCloseFd file(fd);
  struct stat now;
  KJ_SYSCALL(::fstat(file, &now), path.c_str());
  return mapped(file, std::max(bytes, std::size_t(now.st_size)), path);
}

void setEnd(char* room, std::uint64_t end) {
  auto& header = *reinterpret_cast<Header*>(room);
  std::atomic_ref(header.end).store(end, std::memory_order_release);
}

void makeDirectories(const std::string& path) {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    auto part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0755) < 0 && errno != EEXIST) {
      KJ_FAIL_SYSCALL("mkdir", errno, part.c_str());
    }
    if (at == std::string::npos) return;
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  appendEscaped(out, text);
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto code = text[i] == '%' ? text.substr(i + 1, 2) : std::string_view{};
    if (code.size() < 2) {
      out += text[i];
      continue;
    }
    out += code == "09" ? '\t' : code == "0a" ? '\n' : code == "00" ? '\0' : '%';
    i += 2;
  }
  return out;
}

void Records::each(const std::string& prefix, const Use& use) const {
  std::map<std::string_view, const std::string*> found;
  for (const auto& [name, value] : all()) {
    if (name.starts_with(prefix)) found.emplace(name, &value);
  }
  for (const auto& [name, value] : found) {
    try {
      use(std::string(name.substr(prefix.size())), *value);
    } catch (const std::exception& e) {
      unreadable(place(), "record \"" + std::string(name) + "\"", *value + " (" + e.what() + ")");
    }
  }
}

void MemoryRecords::keep(std::span<Change> changes) {
  for (auto& c : changes) {
    if (c.erase)
      values_.erase(c.name);
    else
      values_.insert_or_assign(std::move(c.name), std::move(c.value));
  }
}

Journal::Journal(std::string directory) : directory_(std::move(directory)) {
  makeDirectories(directory_);
  auto lockPath = directory_ + "/lock";
  int fd;
  KJ_SYSCALL(fd = ::open(lockPath.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), lockPath.c_str());
  lock_ = kj::AutoCloseFd(fd);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0)
    kj::throwFatalException(sentence("another node daemon uses the state directory " + directory_ +
                                     "; stop it, or give each its own state_dir"));
  load();
}

void Journal::load() {
  int fd = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno != ENOENT) KJ_FAIL_SYSCALL("open", errno, path().c_str());
  if (fd >= 0) {
    auto text = readAll(kj::AutoCloseFd(fd));
    Header header{};
    if (text.size() < sizeof(header)) damaged("it has " + std::to_string(text.size()) + " bytes");
    std::memcpy(&header, text.data(), sizeof(header));
    if (header.magic != kMagic) damaged("it does not begin as a journal of this release");
    if (header.end < sizeof(header) || header.end > text.size()) {
      damaged(std::to_string(header.end) + " bytes were written, " + std::to_string(text.size()) +
              " are there");
    }
    read(std::string_view(text).substr(0, header.end));
  }
  compact(0);
}

void Journal::read(std::string_view file) {
  auto steps = file.substr(sizeof(Header));
  std::vector<Change> step;
  std::uint32_t sum = 0;
  const char* begin = steps.data();
  for (auto line : lines(steps)) {
    auto at = " at byte " + std::to_string(line.data() - file.data());
    if (line.empty()) damaged("a line is missing" + at);
    if (line.front() != '.') {
      step.push_back(decoded(line));
      continue;
    }
    sum = checksum({begin, std::size_t(line.data() - begin)}, sum);
    if (line.substr(1) != hex(sum)) damaged("a checksum is wrong" + at);
    values_.keep(step);
    step.clear();
    begin = line.data() + line.size() + 1;
  }
  if (begin != steps.data() + steps.size()) {
    damaged("a step has no end at byte " + std::to_string(begin - file.data()));
  }
}

// What was read until then says who was here; where their state is now, it cannot.
void Journal::damaged(const std::string& what) const {
  std::string jobs;
  Records::each("job/", [&](const std::string& job, const std::string&) {
    jobs += (jobs.empty() ? "" : ", ") + job;
  });
  kj::throwFatalException(sentence(
      place() + " is damaged: " + what + "; lost is which jobs hold, wait or are saved here" +
      (jobs.empty() ? "" : " (among them " + jobs + ")") +
      ": end the jobs of this node, then remove the file and start tsnoded again"));
}

Records::Change Journal::decoded(std::string_view line) const {
  try {
    return decodeLine(line);
  } catch (const std::exception& e) {
    damaged(e.what() + std::string(" is no line of a journal"));
  }
}

void Journal::keep(std::span<Change> changes) {
  auto sum = sum_;
  encode(changes, step_, sum);
  if (step_.size() > left()) {
    compact(step_.size());
    sum = sum_;
    encode(changes, step_, sum);
  }
  append();
  sum_ = sum;
  values_.keep(changes);
}

void Journal::append() {
  std::memcpy(room_.begin() + used_, step_.data(), step_.size());
  used_ += step_.size();
  setEnd(room_.begin(), used_);
}

std::string Journal::whyFull() {
  if (trouble_.empty() && left() >= kAhead) return "";
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { compact(kAhead); })) return sentenceOf(*e);
  return trouble_;
}

void Journal::compact(std::size_t roomFor) {
  std::vector<Change> everything;
  for (const auto& [name, value] : values_.all()) everything.push_back({name, value, false});
  std::uint32_t sum = 0;
  std::string text;
  if (!everything.empty()) encode(everything, text, sum);
  auto least = sizeof(Header) + text.size() + roomFor;
  makeSpare(least + text.size() + kRoom, least);
  Header header{kMagic, sizeof(Header) + text.size()};
  std::memcpy(spare_.begin(), &header, sizeof(header));
  std::memcpy(spare_.begin() + sizeof(header), text.data(), text.size());
  exchange();
  used_ = header.end;
  sum_ = sum;
  if (spare_ == nullptr) makeSpare(room_.size(), sizeof(Header));
}

// With less than is wanted the journal works, and says so.
void Journal::makeSpare(std::size_t wanted, std::size_t least) {
  trouble_.clear();
  if (spare_.size() >= wanted) return;
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { spare_ = opened(sparePath(), wanted); })) {
    if (spare_.size() < least) spare_ = opened(sparePath(), least);
    trouble_ = sentenceOf(*e);
  }
}

// The spare takes the place of the journal, in one step.
void Journal::exchange() {
  auto spare = sparePath();
  bool first = ::access(path().c_str(), F_OK) != 0;
  if (first) {
    KJ_SYSCALL(::rename(spare.c_str(), path().c_str()), spare.c_str());
  } else {
    KJ_SYSCALL(::renameat2(AT_FDCWD, spare.c_str(), AT_FDCWD, path().c_str(), RENAME_EXCHANGE),
               spare.c_str());
  }
  std::swap(room_, spare_);
}

}  // namespace ts::node
