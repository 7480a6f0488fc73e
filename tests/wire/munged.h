// A munged of the test's own: its key, its socket, gone with the object.
#pragma once

#include <sys/types.h>

#include <string>

namespace ts::test {

class Munged {
public:
  Munged();
  ~Munged();
  Munged(const Munged&) = delete;
  Munged& operator=(const Munged&) = delete;

  // False where no munged is installed, or it does not start: such tests are skipped.
  bool runs() const { return pid_ > 0; }
  std::string socket() const { return directory_ + "/socket"; }

private:
  void start();
  bool ready() const;

  std::string directory_;
  pid_t pid_ = -1;
};

}  // namespace ts::test
