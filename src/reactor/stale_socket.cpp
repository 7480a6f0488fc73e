#include "reactor/stale_socket.h"

#include <kj/debug.h>
#include <kj/io.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ts {
namespace {

[[noreturn]] void fail(const std::string& what) {
  kj::throwFatalException(
      kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::str(what.c_str())));
}

// errno of a connection that does not wait; 0: somebody listens.
int probe(const std::string& path, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int fd;
  KJ_SYSCALL(fd = ::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd owned(fd);
  return ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

}  // namespace

void removeStaleSocket(const std::string& path, int type) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return;
  if (!S_ISSOCK(info.st_mode))
    fail(path + " is there and no socket; remove it, or set another path");
  int error = probe(path, type);
  // A full backlog is a daemon that is busy, one of another type a daemon all the same.
  bool isTaken = error == 0 || error == EAGAIN || error == EPROTOTYPE;
  if (isTaken) fail("another daemon listens on " + path + "; stop it, or set another path");
  if (error != ECONNREFUSED && error != ENOENT)
    fail("cannot tell whether another daemon listens on " + path + ": " + std::strerror(error) +
         "; stop it or remove the file");
  ::unlink(path.c_str());
}

}  // namespace ts
