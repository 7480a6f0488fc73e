#!/usr/bin/env python3
"""Runs the main job: two trainings alone, then both at once, taking turns on the cards of two nodes.

Needs a built tree. Prints progress on stderr, then a table; with --json the last line of the output is
one JSON object. Ends what it has started, and leaves only what --keep names.

Exit: 0 both jobs computed the same alone and shared, and did not fit at once; 1 they did not, or something
failed; 2 usage; 128 + N ended by signal N.
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time

from main_job import fitting, jobs, report, workload
from main_job.cards import Real, Simulated, real_gpus
from main_job.cluster import Cluster, Node
from main_job.processes import Children, Failed

JOBS = [jobs.Job('a', 'add', 11), jobs.Job('b', 'subtract', 12)]
MIB = 1 << 20
# Everything a rank has on the card but its ballast, rounded up.
SMALL_PARTS = 2 * MIB

EXAMPLES = """examples:
  tools/demo/run_main_job.py --json | tail -1 | python3 -m json.tool
  tools/demo/run_main_job.py --steps 6 --scale 0.01 --keep /tmp/run
  tools/demo/run_main_job.py --device cuda --card-mib 16384
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default='build', metavar='DIR', help='built tree [build]')
    parser.add_argument('--json', action='store_true', help='end with one JSON object')
    parser.add_argument('--device', choices=['auto', 'simgpu', 'cuda'], default='auto',
                        help='which cards [auto: the real one if there is one]')
    parser.add_argument('--steps', type=int, metavar='N', help='training steps [20]')
    parser.add_argument('--scale', type=float, metavar='X',
                        help='factor of all times [1/60; 1/25 on a real card]')
    parser.add_argument('--card-mib', type=int, metavar='N',
                        help='memory per card; on a real card what is left free [96; 2048]')
    parser.add_argument('--job-mib', type=int, metavar='N',
                        help='device memory of a job per card [60 %% of the card]')
    parser.add_argument('--cards-in', default='/dev/shm', metavar='DIR',
                        help='where simulated cards are made: a tmpfs, or it takes longer [/dev/shm]')
    parser.add_argument('--keep', metavar='DIR', help='folder for curves, logs and the result')
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    return args


class MainJob:
    def __init__(self, args, folder, say):
        self.args = args
        self.say = say
        self.folder = folder
        self.keep = args.keep or folder
        os.makedirs(self.keep, exist_ok=True)
        logs = os.path.join(self.keep, 'logs')
        os.makedirs(logs, exist_ok=True)
        self.children = Children(logs)
        self._choose(args)

    def _choose(self, args):
        gpus = real_gpus() if args.device != 'simgpu' else None
        if args.device == 'cuda' and not gpus:
            raise Failed('--device cuda: no CUDA driver that finds a GPU here')
        self.real = gpus is not None
        self.scale = args.scale or (1 / 25 if self.real else 1 / 60)
        self.steps = args.steps or 20
        self.card_bytes = (args.card_mib or (2048 if self.real else 96)) * MIB
        self.job_bytes = args.job_mib * MIB if args.job_mib else self.card_bytes * 6 // 10
        self.tsdemo = os.path.join(args.build, 'tools/demo/tsdemo')
        if not os.access(self.tsdemo, os.X_OK):
            raise Failed(f'no {self.tsdemo}: build it with `ninja -C {args.build} main-job`')
        if self.real:
            # One machine is one node, whatever it has.
            devices = [0, 1] if gpus[0] > 1 else [0, 0]
            self.cards = Real(self.children, self.tsdemo, self.card_bytes, set(devices))
            self.nodes = [Node('node0', {}, device) for device in devices]
        else:
            self.cards = Simulated(args.build, self.folder, self.card_bytes, self.job_bytes, self.scale)
            self.nodes = [Node(name, self.cards.make(name)) for name in ('node0', 'node1')]
        self.ranks_per_card = 2 if self.real and gpus[0] == 1 else 1

    def run(self):
        for line in workload.describe(self.scale, self.real):
            self.say(line)
        self.cards.prepare()
        runner = self._runner()
        solo, alone = self._alone(runner)
        fits, refusal = fitting.try_together(runner, *JOBS)
        self.say(f"fit     both at once without turns: {'yes' if fits else 'no: ' + refusal}")
        shared, wall, used = self._shared(runner)
        figures = [report.job_figures(job, solo[job.name], shared[job.name], self.ranks_per_card)
                   for job in JOBS]
        result = report.figures(self.cards.kind, self.card_bytes, figures, fits,
                                {'alone': alone, 'shared': used}, wall,
                                sum(shared[job.name][0]['switches'] for job in JOBS))
        return result, refusal

    def _runner(self):
        ballast = self.job_bytes // self.ranks_per_card - SMALL_PARTS
        expected = self.steps * workload.step_s() * self.scale
        shape = jobs.Shape(self.steps, self.scale, ballast, limit_s=60 + 5 * expected)
        return jobs.Runner(self.tsdemo, self.nodes, self.children, shape, self.say,
                           os.path.join(self.keep, 'curves'))

    def _alone(self, runner):
        """Each job by itself, without timeslice: as it runs today."""
        solo = {}
        shares = []
        for job in JOBS:
            results, wall, used = self._measured(runner, 'alone', [job])
            solo |= results
            shares.append((wall, used))
        return solo, sum(used * wall for wall, used in shares) / sum(wall for wall, _ in shares)

    def _shared(self, runner):
        cluster = Cluster(self.args.build, self.folder, self.children, self.nodes)
        cluster.start()
        try:
            return self._measured(runner, 'shared', JOBS, cluster.daemons)
        finally:
            cluster.stop()

    def _measured(self, runner, label, chosen, daemons=()):
        """Results, wall time, and the share of it in which the cards were busy."""
        before = self.cards.busy_s()
        results, wall = runner.run(label, chosen, daemons)
        if before is None:
            # Ranks that share a card work at the same time: what one is busy, the card is.
            busy = sum(report.mean(rank['busy_s'] for rank in ranks) for ranks in results.values())
            return results, wall, busy / wall
        return results, wall, (self.cards.busy_s() - before) / len(self.nodes) / wall


def say(text, start=time.monotonic()):
    print(f'{time.monotonic() - start:6.1f} s  {text}', file=sys.stderr, flush=True)


def stop(number, _frame):
    raise SystemExit(128 + number)


def main():
    args = parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    folder = tempfile.mkdtemp(prefix='timeslice-',
                              dir=args.cards_in if os.access(args.cards_in, os.W_OK) else None)
    job = None
    try:
        job = MainJob(args, folder, say)
        result, refusal = job.run()
    except Failed as failure:
        print(f'run_main_job: {failure}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if job:
            job.children.end_all()
        shutil.rmtree(folder, ignore_errors=True)
    print('\n'.join(report.table(result, refusal)))
    if args.keep:
        with open(os.path.join(args.keep, 'result.json'), 'w') as f:
            json.dump(result, f, indent=1)
    if args.json:
        print(json.dumps(result))
    sys.stdout.flush()
    wrong = list(report.verdict(result))
    for sentence in wrong:
        print(f'run_main_job: {sentence}', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
