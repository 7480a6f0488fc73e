#include "node/journal.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "wire/greet.h"

namespace ts::node {
namespace {

constexpr std::size_t kRoom = 1 << 20;  // bytes between two compactions at least

// A step is a line per change and a last line "." that makes it valid.
std::string encode(const std::vector<Records::Change>& changes) {
  std::string out;
  for (const auto& c : changes) {
    out += (c.erase ? "-" : "=") + escaped(c.name);
    if (!c.erase) out += "\t" + escaped(c.value);
    out += "\n";
  }
  return out + ".\n";
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
kj::Array<char> mapped(int fd, std::size_t bytes) {
  static const Unmap unmap;
  if (int error = ::posix_fallocate(fd, 0, off_t(bytes)); error != 0) {
    KJ_FAIL_SYSCALL("posix_fallocate", error, "no room for the journal", bytes);
  }
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (at == MAP_FAILED) KJ_FAIL_SYSCALL("mmap", errno, bytes);
  return kj::Array<char>(static_cast<char*>(at), bytes, unmap);
}

// The first byte is what makes the step count: a kill before it leaves zero there, where reading
// ends.
void write(char* at, std::string_view text) {
  std::memcpy(at + 1, text.data() + 1, text.size() - 1);
  std::atomic_ref(*at).store(text[0], std::memory_order_release);
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
  out.reserve(text.size());
  for (char c : text) {
    if (c == '\t')
      out += "%09";
    else if (c == '\n')
      out += "%0a";
    else if (c == '\0')
      out += "%00";
    else if (c == '%')
      out += "%25";
    else
      out += c;
  }
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
  for (auto it = all().lower_bound(prefix); it != all().end() && it->first.starts_with(prefix);
       ++it) {
    try {
      use(it->first.substr(prefix.size()), it->second);
    } catch (const std::exception& e) {
      unreadable(place(), "record \"" + it->first + "\"", it->second + " (" + e.what() + ")");
    }
  }
}

void MemoryRecords::keep(const std::vector<Change>& changes) {
  for (const auto& c : changes) {
    if (c.erase)
      values_.erase(c.name);
    else
      values_[c.name] = c.value;
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
  auto path = directory_ + "/journal";
  int fd;
  KJ_SYSCALL(fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), path.c_str());
  auto text = readAll(kj::AutoCloseFd(fd));
  std::vector<Change> step;
  for (auto line : lines(std::string_view(text).substr(0, text.find('\0')))) {
    if (line == ".") {
      values_.keep(step);
      step.clear();
    } else if (!line.empty()) {
      step.push_back(decoded(line));
    }
  }
  compact(0);  // also drops a step that was cut short
}

Records::Change Journal::decoded(std::string_view line) const {
  try {
    return decodeLine(line);
  } catch (const std::exception& e) {
    unreadable(place(), e.what(), "it is no line of a journal");
  }
}

void Journal::keep(const std::vector<Change>& changes) {
  auto text = encode(changes);
  if (text.size() > room_.size() - used_) compact(text.size());
  append(text);
  values_.keep(changes);
}

void Journal::append(std::string_view text) {
  write(room_.begin() + used_, text);
  used_ += text.size();
}

void Journal::compact(std::size_t roomFor) {
  auto fresh = directory_ + "/journal.new";
  int fd;
  KJ_SYSCALL(fd = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
             fresh.c_str());
  kj::AutoCloseFd file(fd);
  std::vector<Change> everything;
  for (const auto& [name, value] : values_.all()) everything.push_back({name, value, false});
  auto text = encode(everything);
  auto room = mapped(file, 2 * text.size() + roomFor + kRoom);
  write(room.begin(), text);
  KJ_SYSCALL(::rename(fresh.c_str(), (directory_ + "/journal").c_str()));
  room_ = kj::mv(room);
  used_ = text.size();
}

}  // namespace ts::node
