#include "cli/slurm_site.h"

#include "cli/failure.h"
#include "scontrol/program_output.h"

namespace ts::cli {
namespace {

std::string firstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string scontrol(std::vector<std::string> words, std::chrono::microseconds timeout) {
  words.insert(words.begin(), "scontrol");
  ProgramOutput said = outputOf(words, timeout);
  if (!said.why.empty()) {
    throw Failure(Exit::Unreachable,
                  "scontrol: " + said.why +
                      "; install Slurm's client commands here (Debian: slurm-client), or run this "
                      "where they are");
  }
  if (said.exit != 0) {
    throw Failure(Exit::Unreachable,
                  "scontrol ended with " + std::to_string(said.exit) + ": " +
                      firstLine(said.err.empty() ? said.out : said.err) +
                      "; start slurmctld, or set SLURM_CONF to the site's slurm.conf");
  }
  return said.out;
}

}  // namespace

SlurmSite askSlurm(std::chrono::microseconds timeout) {
  return {parseSlurmConfig(scontrol({"show", "config"}, timeout)),
          parseSlurmRecords(scontrol({"--all", "--oneliner", "show", "partition"}, timeout)),
          parseSlurmRecords(scontrol({"--all", "--oneliner", "show", "node"}, timeout))};
}

}  // namespace ts::cli
