#!/usr/bin/env python3
"""What the Slurm plugin costs a step: medians of steps inside one allocation on a real Slurm, in turn without the
plugin, with it and nothing asked of it, and with a group whose turn is free. A cost is the median of what a step took
more than the one without the plugin of the same round. As root: it starts a cluster of its own.

usage: bench_slurm.py --programs BUILD [--steps N] [--json]

  --steps N   of each kind (default: 50)

examples:
  tools/bench slurm
  tools/bench slurm --steps 200 --json
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def options():
    parser = argparse.ArgumentParser(usage="tools/bench slurm [--steps N] [--json]", add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    if chosen.help:
        print(__doc__)
        sys.exit(0)
    if chosen.programs is None or chosen.steps < 1:
        parser.error("--programs BUILD and at least one step are needed")
    return chosen


def find_programs(build):
    """Where the tools of the tests look for them."""
    for name, path in (("TSMASTERD", "src/master/tsmasterd"), ("TSNODED", "src/node/tsnoded"), ("TSCTL", "src/cli/tsctl"),
                       ("SPANK_PLUGIN", "spank-plugin/spank_timeslice.so"),
                       ("PRELOAD_LIBRARY", "src/preload/libtimeslice-preload.so"),
                       ("TIMESLICE_LIBRARY", "src/client/libtimeslice.so.0")):
        os.environ[name] = str((build / path).resolve())


class Kinds:
    """The three kinds of steps, in one allocation."""

    def __init__(self, slurm):
        self.slurm = slurm
        self.words = {"none": [], "not_asked": [], "asked": ["--timeslice-group=bench"]}

    def step(self, kind, job):
        self.slurm.write_plugstack("" if kind == "none" else self.slurm.plugin_line())
        command = ["srun", f"--jobid={job}", "--overlap", "-n1", *self.words[kind], "true"]
        begin = time.perf_counter()
        done = self.slurm.run(*command)
        took = time.perf_counter() - begin
        if done.returncode != 0:
            raise SystemExit(f"a step of the kind {kind} failed: {done.stderr}")
        return took * 1000


def measure(steps):
    from slurm import slurm_cluster
    with slurm_cluster(nodes=1, cards=None, node={"log_level": "info"}, master={"log_level": "info"}) as (_, slurm):
        job = slurm.sbatch("exec sleep 100000", user=None)
        slurm.wait_running(job)
        kinds = Kinds(slurm)
        took = {kind: [] for kind in kinds.words}
        for kind in took:
            kinds.step(kind, job)  # what is read from disk for the first time
        order = list(took)
        for _ in range(steps):
            for kind in order:
                took[kind].append(kinds.step(kind, job))
            order.append(order.pop(0))  # what a step leaves behind meets another kind each time
    return took


def median_cost(took, kind):
    """Against the step without the plugin of the same round: the machine may do other things, and then does so for both."""
    return statistics.median(ms - none for ms, none in zip(took[kind], took["none"]))


def main():
    chosen = options()
    find_programs(chosen.programs)
    sys.path[:0] = [str(TOP / "tests" / "slurm"), str(TOP / "tests" / "e2e")]
    took = measure(chosen.steps)
    result = {"bench": "slurm", "steps": chosen.steps,
              **{f"{kind}_ms": round(statistics.median(ms), 3) for kind, ms in took.items()},
              **{f"{kind}_costs_ms": round(median_cost(took, kind), 3) for kind in ("not_asked", "asked")}}
    if chosen.json:
        print(json.dumps(result))
        return
    print(f"medians of {chosen.steps} steps of each kind, in one allocation")
    print(f"  without the plugin           {result['none_ms']:9.2f} ms")
    print(f"  with it, not asked           {result['not_asked_ms']:9.2f} ms   costs {result['not_asked_costs_ms']:.2f} ms; goal: under 1 ms")
    print(f"  with a turn that is free     {result['asked_ms']:9.2f} ms   costs {result['asked_costs_ms']:.2f} ms; goal: under 10 ms")


if __name__ == "__main__":
    main()
