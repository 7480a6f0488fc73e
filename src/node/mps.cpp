#include "node/mps.h"

#include <sys/stat.h>

#include <fstream>

namespace ts::node {
namespace {

// CUDA's own names: "Multi-Process Service", NVIDIA's documentation, environment variables.
constexpr const char* kVariable = "CUDA_MPS_PIPE_DIRECTORY";
constexpr const char* kDefault = "/tmp/nvidia-mps";

std::string variable(const std::string& environ, const std::string& name) {
  std::ifstream in(environ, std::ios::binary);
  for (std::string entry; std::getline(in, entry, '\0');) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return "";
}

}  // namespace

std::string mpsClient(pid_t pid, const std::string& procRoot) {
  std::string process = procRoot + "/" + std::to_string(pid);
  std::string directory = variable(process + "/environ", kVariable);
  bool chosen = !directory.empty();
  if (!chosen) directory = kDefault;
  // As the process sees it: in a container the path is another one.
  struct stat control {
  }, client{};
  if (::stat((process + "/root" + directory + "/control").c_str(), &control) != 0) return "";
  if (::stat(process.c_str(), &client) != 0) return "";
  // Anybody may write to /tmp: what a third one put there keeps nobody out.
  if (!chosen && control.st_uid != 0 && control.st_uid != client.st_uid) return "";
  return mpsRefusal(pid, "a control daemon listens in " + directory);
}

std::string mpsRefusal(pid_t pid, const std::string& how) {
  return "process " + std::to_string(pid) +
         " is an MPS client, which cannot be saved; start it without MPS, or with backend = "
         "\"none\" (" +
         how + ")";
}

}  // namespace ts::node
