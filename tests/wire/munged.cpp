#include "wire/munged.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "wire/auth.h"

namespace ts::test {

Munged::Munged() {
  char name[] = "/tmp/timeslice-munge-XXXXXX";
  directory_ = ::mkdtemp(name);
  ::chmod(directory_.c_str(), 0755);
  std::array<char, 128> key{};
  if (::getrandom(key.data(), key.size(), 0) != ssize_t(key.size())) return;
  std::ofstream(directory_ + "/key").write(key.data(), key.size());
  ::chmod((directory_ + "/key").c_str(), 0400);
  if (std::filesystem::exists("/usr/sbin/munged")) start();
}

void Munged::start() {
  std::string key = "--key-file=" + directory_ + "/key", socket = "--socket=" + this->socket();
  std::string pidFile = "--pid-file=" + directory_ + "/pid",
              log = "--log-file=" + directory_ + "/log";
  std::string seed = "--seed-file=" + directory_ + "/seed";
  pid_ = ::fork();
  if (pid_ == 0) {
    int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 1);
    ::dup2(null, 2);
    ::execl("/usr/sbin/munged", "munged", "--foreground", "--force", key.c_str(), socket.c_str(),
            pidFile.c_str(), log.c_str(), seed.c_str(), nullptr);
    ::_exit(127);
  }
  // Until it answers, or has given up.
  while (!ready()) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return;
    }
  }
}

bool Munged::ready() const {
  if (!std::filesystem::exists(socket())) return false;
  return newMungeAuth(socket())->prove(Role::Node, {newNonce(), newNonce()}).ok;
}

Munged::~Munged() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);  // a munged that is told to end just before it waits goes on waiting
    ::waitpid(pid_, nullptr, 0);
  }
  std::filesystem::remove_all(directory_);
}

}  // namespace ts::test
