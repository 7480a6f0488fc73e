#include "options.h"

#include <CLI/CLI.hpp>

#include "image.h"

namespace demo {
namespace {

constexpr int kUsage = 2;

std::string footer() {
  const std::string toolkit = kernelImage().toolkit;
  const std::string kernels =
      toolkit.empty() ? "Kernels: built without nvcc; this program runs on simgpu only.\n"
                      : "Kernels: built by CUDA " + toolkit +
                            " for sm_80, sm_90 and later; a real GPU "
                            "needs a driver for\n  CUDA " +
                            toolkit + " or newer.\n";
  return "\nTurns: the job takes them when TIMESLICE_GROUP or TIMESLICE_SOCKET is set, as `tsctl "
         "run` "
         "and Slurm\n  do. Otherwise it has the GPU to itself.\n" +
         kernels +
         "Exit: 0 done, 1 failed, 2 usage, 3 no room on the card.\n\n"
         "Examples:\n"
         "  tsdemo --steps 24                                    one rank, as fast as it goes\n"
         "  tsdemo --rank 0 --world 2 --peer 127.0.0.1:7000 &    two ranks\n"
         "  tsdemo --rank 1 --world 2 --peer 127.0.0.1:7000\n"
         "  tsdemo --no-update --out flat.jsonl                  the score stays at chance";
}

void addTraining(CLI::App& app, Options& o) {
  static const std::map<std::string, Task> kTasks = {{"add", Task::Add},
                                                     {"subtract", Task::Subtract}};
  app.add_option("--task", o.trainer.task, "what the verifier asks for")
      ->transform(CLI::CheckedTransformer(kTasks, CLI::ignore_case))
      ->option_text("add|subtract [add]");
  app.add_option("--seed", o.trainer.seed, "everything random follows from it")
      ->option_text("N [1]");
  app.add_option("--steps", o.steps, "training steps")
      ->option_text("N [24]")
      ->check(CLI::Range(1u, 1000000u));
  app.add_flag_callback(
      "--no-update", [&o] { o.trainer.update = false; },
      "everything happens, at a learning rate of 0");
}

void addWork(CLI::App& app, Options& o) {
  app.add_option("--time-scale", o.trainer.timeScale,
                 "phases last this part of the modelled seconds; 0: as fast as it goes")
      ->option_text("X [0]")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--ballast-bytes", o.trainer.ballastBytes,
                 "device memory that changes in every step: 64MiB, or a number of bytes")
      ->option_text("SIZE [0]")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--device", o.device, "CUDA device, as CUDA_VISIBLE_DEVICES numbers them")
      ->option_text("N [0]");
}

void addRanks(CLI::App& app, Options& o) {
  app.add_option("--rank", o.meeting.rank, "this process among the ranks")->option_text("N [0]");
  app.add_option("--world", o.meeting.world, "number of ranks; also the gang that shares a slice")
      ->option_text("N [1]")
      ->check(CLI::Range(1u, 64u));
  app.add_option("--peer", o.meeting.address, "where rank 0 listens")->option_text("HOST:PORT");
  app.add_option("--listen-fd", o.meeting.listenFd,
                 "rank 0: an inherited socket that listens there already")
      ->option_text("N");
}

void addOutput(CLI::App& app, Options& o) {
  app.add_option("--name", o.name, "of the job, in messages and results")
      ->option_text("NAME [demo]");
  app.add_option("--out", o.curve, "the learning curve, one JSON object per step")
      ->option_text("FILE");
  app.add_flag("--json", o.json, "print the result as one JSON object");
  app.add_flag("--quiet", o.quiet, "no line per step on stderr");
  app.add_flag("--hold", o.hold,
               "only take the device memory, say so, and hold it until stdin is closed");
  app.add_option("--hold-all-but", o.leaveFree,
                 "the same with all but so much of the card's memory")
      ->option_text("SIZE")
      ->transform(CLI::AsSizeValue(false));
}

void checkRanks(const Meeting& m) {
  if (m.rank >= m.world) {
    throw CLI::ValidationError("--rank", "rank " + std::to_string(m.rank) + " of a world of " +
                                             std::to_string(m.world) + ": ranks count from 0");
  }
  const bool met = !m.address.empty() || (m.rank == 0 && m.listenFd >= 0);
  if (m.world > 1 && !met) {
    throw CLI::ValidationError("--world", "more than one rank needs --peer HOST:PORT");
  }
}

}  // namespace

Parsed parseOptions(int argc, char** argv) {
  CLI::App app(
      "Trains a small policy on a GPU by reinforcement learning, and takes turns on it.\n"
      "A step samples answers to sums (GPU), has a program judge them (CPU), and learns from "
      "the judgement (GPU).",
      "tsdemo");
  Parsed parsed;
  addTraining(app, parsed.options);
  addWork(app, parsed.options);
  addRanks(app, parsed.options);
  addOutput(app, parsed.options);
  app.footer(footer());
  try {
    app.parse(argc, argv);
    checkRanks(parsed.options.meeting);
  } catch (const CLI::ParseError& error) {
    parsed.exit = app.exit(error) == 0 ? 0 : kUsage;
  }
  return parsed;
}

}  // namespace demo
