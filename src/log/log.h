// One structured line per event: logfmt on stderr, with the journal's priority prefix when it
// listens.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ts {

enum class Level { Error, Warning, Info, Debug };

// Builds "verb key=value key=\"quoted value\"". Values are escaped: one event is always one line.
class Line {
public:
  explicit Line(std::string_view verb);
  Line& add(std::string_view key, std::string_view value);
  Line& add(std::string_view key, std::int64_t value);
  Line& add(std::string_view key, std::uint64_t value);
  const std::string& text() const { return text_; }

private:
  std::string text_;
};

// One per process, made by main() and handed down; safe from any thread. A line is one write(2), so
// lines do not mix. When the reader of stderr is slow, lines are dropped and counted, never waited
// for: the next that goes through is preceded by `log-dropped lines=N`. Without the journal, which
// knows both, each line ends in level= and at= (UTC).
class Log {
public:
  explicit Log(Level threshold, int fd = 2);
  void error(const Line& line) { write(Level::Error, line); }
  void warning(const Line& line) { write(Level::Warning, line); }
  void info(const Line& line) { write(Level::Info, line); }
  void debug(const Line& line) { write(Level::Debug, line); }
  bool enabled(Level level) const { return level <= threshold_; }
  void setThreshold(Level threshold) { threshold_ = threshold; }
  // Gets a copy of every line at info and above, whatever the threshold: the master's event
  // history. Called on the thread that logs; set it before there are others.
  void tee(std::function<void(Level, const std::string&)> sink) { sink_ = std::move(sink); }

private:
  void write(Level level, const Line& line);
  bool send(Level level, const std::string& text);
  std::atomic<Level> threshold_;
  int fd_;
  bool socket_ = false;
  bool journal_ = false;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::function<void(Level, const std::string&)> sink_;
};

Level parseLevel(std::string_view text, bool& ok);  // "error" "warning" "info" "debug"

}  // namespace ts
