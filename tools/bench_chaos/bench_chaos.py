#!/usr/bin/env python3
"""Twelve jobs on four nodes of simulated cards, and faults at random: is anything lost, is anybody let in?

usage: tools/bench chaos [--minutes M] [--seed S] [--json] [--logs DIR] [--plan]

  --minutes M  how long faults strike (default 2)
  --seed S     of the schedule of faults and of the jobs (default: one of chance, printed)
  --json       the figures as JSON
  --logs DIR   leaves the logs of all daemons and the traces of all cards there
  --plan       prints the schedule and strikes nothing

Each job does its steps, a turn each: device memory becomes another that depends on it. It must end with the digest of
its undisturbed run, which is made first. An observer reads the traces of the cards and the processes, never a daemon.
Exit: 0 nothing lost and no violation, 1 something was, 2 usage.

Examples:
  tools/bench chaos
  tools/bench chaos --minutes 0.5 --seed 7 --json
"""
import argparse
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
PROGRAMS = {"TSMASTERD": "src/master/tsmasterd", "TSNODED": "src/node/tsnoded", "TSCTL": "src/cli/tsctl",
            "E2E_PUPPET": "tests/e2e/e2e_puppet", "SIMGPU_CARD": "src/simgpu/simgpu-card",
            "SIMGPU_LIBS": "src/simgpu/lib"}


def arguments():
    parser = argparse.ArgumentParser(prog="tools/bench chaos", description=__doc__, add_help=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=TOP / "build", type=pathlib.Path)
    parser.add_argument("--minutes", default=2, type=float)
    parser.add_argument("--seed", default=random.randrange(1_000_000), type=int)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--logs", type=pathlib.Path)
    parser.add_argument("-h", "--help", action="store_true")
    return parser.parse_args()


def find_tools(build):
    os.environ.update({name: str(build.resolve() / at) for name, at in PROGRAMS.items()})
    sys.path[:0] = [str(TOP / "tests/e2e"), str(TOP / "tests/faults")]


def strike_all(schedule, faults, figures, say):
    """Returns when the last fault is over."""
    def one(strike):
        try:
            figures.struck(strike, faults.strike(strike))
        except Exception as error:  # whatever it is, the run is not what it says
            figures.broke(strike, error)

    begin = time.monotonic()
    threads = []
    for strike in schedule:
        time.sleep(max(0, begin + strike.at - time.monotonic()))
        say(f"{strike.at:8.3f} {strike.kind} {strike.target}")
        threads.append(threading.Thread(target=one, args=(strike,), daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join()


def run(options, say):
    from faults import Faults
    from figures import Figures
    from jobs import Slot
    from observer import Observer
    from plan import KINDS, schedule
    from shapes import SHAPES
    from world import alive, keep_logs, make_cluster, start_nodes
    observer = Observer(alive)
    figures = Figures(KINDS)
    with make_cluster() as cluster:
        proxies = start_nodes(cluster, observer)
        slots = [Slot(cluster, observer, figures, shape, i + 1, options.seed) for i, shape in enumerate(SHAPES)]
        for slot in slots:
            slot.rehearse()
        say("the undisturbed runs are done")
        faults = Faults(cluster, proxies, observer, figures, slots)
        for slot in slots:
            slot.faults = faults
        over = threading.Event()
        threads = [threading.Thread(target=slot.run, args=(over.is_set,), daemon=True) for slot in slots]
        for thread in threads:
            thread.start()
        strike_all(schedule(options.seed, options.minutes), faults, figures, say)
        over.set()
        say("the last faults are over; the jobs end")
        for thread in threads:
            thread.join()
        if options.logs:
            keep_logs(options.logs, cluster)
        for proxy in proxies:
            proxy.close()
    return figures.summary(observer)


def show(figures):
    print(f"violations {figures['violations']}, lost {figures['lost']}, seed {figures['seed']}, "
          f"{figures['minutes']} min, {figures['steps']} steps")
    for kind, f in figures["faults"].items():
        print(f"  {kind:22} {f['injected']:4} struck {f['bit']:4} bit {f['in_switch']:4} in a switch")
    recovery = figures["recovery_s"]
    print(f"recovery p50 {recovery['p50']} s, p99 {recovery['p99']} s, worst {recovery['worst']} s")
    for broken in figures["broken_strikes"]:
        print(f"not struck as planned: {broken}")
    for lost in figures["lost_jobs"]:
        print(f"lost {lost['job']}: {lost['why']}")


def end(number, _frame):
    """As an exception, so that no daemon is left."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    options = arguments()
    if options.help:
        print(__doc__)
        return 0
    find_tools(options.programs)
    if options.plan:
        from plan import schedule
        for strike in schedule(options.seed, options.minutes):
            print(f"{strike.at:8.3f} {strike.kind} {strike.target} {strike.lasts}")
        return 0
    def say(line):
        print(line, file=sys.stderr, flush=True)
    say(f"seed {options.seed}")
    figures = {"seed": options.seed, "minutes": options.minutes, **run(options, say)}
    print(json.dumps(figures, indent=2)) if options.json else show(figures)
    return 1 if figures["violations"] or figures["lost"] or figures["broken_strikes"] else 0


if __name__ == "__main__":
    sys.exit(main())
