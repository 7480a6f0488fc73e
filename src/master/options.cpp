#include "master/options.h"

#include <getopt.h>

#include <cstdio>

namespace ts {
namespace {

constexpr const char* kHelp =
    R"(tsmasterd: decides whose turn it is on the GPUs of a cluster. One per cluster; nodes run tsnoded.

usage: tsmasterd [--config FILE] [--announce FILE]
       tsmasterd --check-config [--config FILE]

  --config FILE     configuration, default /etc/timeslice/master.toml
  --check-config    say what is wrong with the configuration, and where; serve nobody
  --announce FILE   when everything is served, write its addresses there, one `what=address` a line:
                    rpc=127.0.0.1:6830, socket=unix:/run/…, http=127.0.0.1:6831. With port 0 in the
                    configuration these are the ports that were free.
  --version         print the version
  --help            print this

signals: TERM and INT end it, HUP reads the configuration again (groups, defaults, any_group,
         operators, log_level, heartbeat, suspect_after, dead_after, recovery_grace, slurm and what
         begins with it; the rest needs a restart).
exit codes: 0 fine, 1 failed, 2 wrong usage, 78 wrong configuration.

examples:
  tsmasterd --check-config                          before a reload or a restart
  tsmasterd --config ./master.toml                  in the foreground, log on stderr
  systemctl reload tsmasterd                        after a change of groups or operators
)";

enum : int { kConfig = 256, kCheck, kAnnounce, kVersion, kHelpOption };

constexpr option kOptions[] = {{"config", required_argument, nullptr, kConfig},
                               {"check-config", no_argument, nullptr, kCheck},
                               {"announce", required_argument, nullptr, kAnnounce},
                               {"version", no_argument, nullptr, kVersion},
                               {"help", no_argument, nullptr, kHelpOption},
                               {nullptr, 0, nullptr, 0}};

std::nullopt_t wrong(const char* what, int& exitCode) {
  std::fprintf(stderr, "%stry: tsmasterd --help\n", what);
  exitCode = 2;
  return std::nullopt;
}

}  // namespace

std::optional<Options> parseOptions(int argc, char** argv, const char* version, int& exitCode) {
  Options options;
  exitCode = 0;
  while (true) {
    switch (::getopt_long(argc, argv, "h", kOptions, nullptr)) {
      case -1:
        if (optind == argc) return options;
        std::fprintf(stderr, "tsmasterd: \"%s\" is no option\n", argv[optind]);
        return wrong("", exitCode);
      case kConfig:
        options.config = optarg;
        break;
      case kCheck:
        options.checkConfig = true;
        break;
      case kAnnounce:
        options.announce = optarg;
        break;
      case kVersion:
        std::printf("tsmasterd %s\n", version);
        return std::nullopt;
      case 'h':
      case kHelpOption:
        std::fputs(kHelp, stdout);
        return std::nullopt;
      default:
        return wrong("", exitCode);  // getopt has said what is wrong
    }
  }
}

}  // namespace ts
