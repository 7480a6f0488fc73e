// Cards in a directory of their own, and programs that use them.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "simgpu/host.h"
#include "simgpu/uuid.h"

namespace simgpu_test {

constexpr std::uint64_t kMiB = 1 << 20;

// A program that takes commands. Killed with its stage.
class Actor {
public:
  Actor(const std::string& cards, const std::vector<std::string>& environment) {
    int in[2];
    int out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0)
      throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) become(cards, environment, in[0], out[1]);
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = ::fdopen(out[0], "r");
  }
  ~Actor() { kill(); }
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  pid_t pid() const { return pid_; }
  std::string self() const { return std::to_string(pid_); }

  // Says a line and waits for the answer.
  std::string ask(const std::string& line) {
    say(line);
    return hear();
  }
  void say(const std::string& line) {
    std::string whole = line + "\n";
    if (::write(to_, whole.data(), whole.size()) < 0) throw std::runtime_error("actor is gone");
  }
  std::string hear() {
    char line[512];
    if (std::fgets(line, sizeof line, from_) == nullptr) return "gone";
    std::string text(line);
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }
  // An answer that must be "ok VALUE".
  std::string value(const std::string& line) {
    std::string text = ask(line);
    if (!text.starts_with("ok")) throw std::runtime_error(line + ": " + text);
    return text.size() > 3 ? text.substr(3) : "";
  }
  std::uint64_t number(const std::string& line) { return std::stoull(value(line)); }

  // Gone as with kill -9, and not even a zombie left.
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
    ::close(to_);
    std::fclose(from_);
  }

private:
  [[noreturn]] static void become(const std::string& cards,
                                  const std::vector<std::string>& environment, int in, int out) {
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::setenv("SIMGPU_CARDS", cards.c_str(), 1);
    for (const auto& pair : environment) {
      std::size_t equals = pair.find('=');
      ::setenv(pair.substr(0, equals).c_str(), pair.substr(equals + 1).c_str(), 1);
    }
    const char* program = std::getenv("SIMGPU_ACTOR");
    ::execl(program, program, static_cast<char*>(nullptr));
    ::_exit(127);
  }

  pid_t pid_ = 0;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

class Stage {
public:
  explicit Stage(const std::vector<std::string>& cards = {"bytes = 64 MiB"}) {
    char place[] = "/dev/shm/simgpu-test-XXXXXX";
    if (::mkdtemp(place) == nullptr) throw std::runtime_error("no /dev/shm");
    dir_ = place;
    std::vector<std::string> texts;
    for (const auto& card : cards)
      texts.push_back("uuid = " + simgpu::freshUuid() + "\n" + card + "\n");
    if (auto error = simgpu::createHost(dir_, texts)) throw std::runtime_error(*error);
    std::string error;
    host_ = simgpu::Host::open(dir_, error);
    if (!host_) throw std::runtime_error(error);
  }
  ~Stage() { std::filesystem::remove_all(dir_); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const std::string& dir() const { return dir_; }
  simgpu::Host& host() { return *host_; }
  simgpu::Card& card(unsigned index = 0) { return host_->card(index); }

  std::unique_ptr<Actor> actor(const std::vector<std::string>& environment = {}) {
    return std::make_unique<Actor>(dir_, environment);
  }
  // A program with a context on the first device it sees.
  std::unique_ptr<Actor> started(const std::vector<std::string>& environment = {}) {
    auto made = actor(environment);
    made->value("start 0");
    return made;
  }
  void set(const std::string& key, const std::string& value, unsigned card = 0) {
    auto error = simgpu::setKey(dir_ + "/" + std::to_string(card) + "/card.conf", key, value);
    if (error) throw std::runtime_error(*error);
  }
  std::string trace() const { return simgpu::fileText(dir_ + "/trace"); }

private:
  std::string dir_;
  std::unique_ptr<simgpu::Host> host_;
};

}  // namespace simgpu_test
