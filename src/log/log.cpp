#include "log/log.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace ts {
namespace {

// A pipe that polls writable takes this much without blocking, and in one piece.
constexpr std::size_t kMaxLine = 4096;

bool plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("-_.,:/@+%#").find(c) != std::string_view::npos;
}

void appendQuoted(std::string& to, std::string_view value) {
  to += '"';
  for (char c : value) {
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (c == '\n') {
      to += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 5> hex{};
      std::snprintf(hex.data(), hex.size(), "\\x%02x", unsigned(static_cast<unsigned char>(c)));
      to += hex.data();
    } else {
      to += c;
    }
  }
  to += '"';
}

// The journal names its end of stderr by device and inode: the variable alone may be inherited.
bool isJournal(const struct stat& info) {
  const char* stream = std::getenv("JOURNAL_STREAM");
  if (stream == nullptr) return false;
  unsigned long long device = 0, inode = 0;
  if (std::sscanf(stream, "%llu:%llu", &device, &inode) != 2) return false;
  return device == info.st_dev && inode == info.st_ino;
}

const char* priority(Level level) {
  switch (level) {
    case Level::Error:
      return "<3>";
    case Level::Warning:
      return "<4>";
    case Level::Info:
      return "<6>";
    case Level::Debug:
      return "<7>";
  }
  return "<7>";
}

const char* nameOf(Level level) {
  switch (level) {
    case Level::Error:
      return "error";
    case Level::Warning:
      return "warning";
    case Level::Info:
      return "info";
    case Level::Debug:
      return "debug";
  }
  return "debug";
}

std::string timeNow() {
  using namespace std::chrono;
  auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  std::time_t seconds = now / 1'000'000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  std::size_t n = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + n, text.size() - n, ".%06dZ", int(now % 1'000'000));
  return text.data();
}

}  // namespace

Line::Line(std::string_view verb) : text_(verb) {}

Line& Line::add(std::string_view key, std::string_view value) {
  text_ += ' ';
  text_ += key;
  text_ += '=';
  if (!value.empty() && std::all_of(value.begin(), value.end(), plain)) {
    text_ += value;
  } else {
    appendQuoted(text_, value);
  }
  return *this;
}

Line& Line::add(std::string_view key, std::int64_t value) {
  return add(key, std::to_string(value));
}

Line& Line::add(std::string_view key, std::uint64_t value) {
  return add(key, std::to_string(value));
}

Log::Log(Level threshold, int fd) : threshold_(threshold), fd_(fd) {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return;
  socket_ = S_ISSOCK(info.st_mode);
  journal_ = isJournal(info);
}

void Log::write(Level level, const Line& line) {
  if (sink_ && level <= Level::Info) sink_(level, line.text());
  if (!enabled(level)) return;
  std::uint64_t dropped = dropped_.exchange(0);
  if (dropped > 0 && !send(Level::Warning, Line("log-dropped").add("lines", dropped).text())) {
    dropped_ += dropped + 1;
    return;
  }
  if (!send(level, line.text())) ++dropped_;
}

bool Log::send(Level level, const std::string& text) {
  std::string tail = "\n";
  if (!journal_) tail = std::string(" level=") + nameOf(level) + " at=" + timeNow() + "\n";
  std::string out = journal_ ? priority(level) : "";
  out += std::string_view(text).substr(0, kMaxLine - out.size() - tail.size());
  out += tail;
  if (socket_) {
    return ::send(fd_, out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL) == ssize_t(out.size());
  }
  pollfd room{fd_, POLLOUT, 0};
  if (::poll(&room, 1, 0) <= 0 || !(room.revents & POLLOUT)) return false;
  return ::write(fd_, out.data(), out.size()) == ssize_t(out.size());
}

Level parseLevel(std::string_view text, bool& ok) {
  ok = true;
  for (Level level : {Level::Error, Level::Warning, Level::Info, Level::Debug}) {
    if (text == nameOf(level)) return level;
  }
  ok = false;
  return Level::Info;
}

}  // namespace ts
