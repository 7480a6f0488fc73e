"""Starts the ranks of jobs, one per node, and collects what they say."""
import dataclasses
import json
import os
import re
import select
import socket
import time

from .processes import Failed, as_they_end

NO_ROOM = 3  # exit code of tsdemo
STEP = re.compile(r'step (\d+) of (\d+) ')


@dataclasses.dataclass
class Job:
    name: str
    task: str
    seed: int


@dataclasses.dataclass
class Shape:
    """What all runs of one comparison have in common."""
    steps: int
    scale: float
    ballast: int  # bytes per rank
    limit_s: float  # a run that takes longer is stuck


class Runner:
    def __init__(self, tsdemo, nodes, children, shape, say, curves):
        self.tsdemo = tsdemo
        self.nodes = nodes  # one per rank
        self.children = children
        self.shape = shape
        self.say = say
        self.curves = curves

    def run(self, label, jobs, daemons=()):
        """Runs the jobs at once, through the daemons if there are any. Returns the results of each job's
        ranks, and the wall time of all."""
        start = time.monotonic()
        ranks = {job.name: self._start(label, job, turns=bool(daemons)) for job in jobs}
        self._wait([rank for job in ranks.values() for rank in job], list(daemons))
        wall = time.monotonic() - start
        return {name: [json.loads(rank.stdout.read()) for rank in job] for name, job in ranks.items()}, wall

    def _start(self, label, job, turns):
        listener = socket.create_server(('127.0.0.1', 0))
        peer = '%s:%d' % listener.getsockname()
        with listener:
            return [self._start_rank(label, job, rank, turns, peer, listener.fileno())
                    for rank in range(len(self.nodes))]

    def _start_rank(self, label, job, rank, turns, peer, listen_fd):
        argv = self._argv(job, rank) + ['--steps', str(self.shape.steps), '--json', '--rank', str(rank),
                                        '--world', str(len(self.nodes)), '--peer', peer]
        more = {}
        if rank == 0:
            os.makedirs(self.curves, exist_ok=True)
            argv += ['--listen-fd', str(listen_fd),
                     '--out', os.path.join(self.curves, f'{job.name}-{label}.jsonl')]
            more = {'pass_fds': [listen_fd], 'on_line': self._progress(label)}
        else:
            argv += ['--quiet']
        env = dict(self.nodes[rank].env)
        if turns:
            env |= self.nodes[rank].turn_env(job.name)
        return self.children.start(f'{label} {job.name} rank {rank}', argv, env, stdout=-1, **more)

    def _argv(self, job, rank):
        return [self.tsdemo, '--name', job.name, '--task', job.task, '--seed', str(job.seed),
                '--time-scale', repr(self.shape.scale), '--ballast-bytes', str(self.shape.ballast),
                '--device', str(self.nodes[rank].device)]

    def _progress(self, label):
        def on_line(line):
            found = STEP.search(line)
            if not found or int(found[1]) % 4 == 0 or found[1] == found[2]:
                self.say(f'{label:7} {line}')
        return on_line

    def _wait(self, ranks, daemons):
        left = set(ranks)
        for child in as_they_end(ranks + daemons, time.monotonic() + self.shape.limit_s):
            if child is None:
                raise Failed(f'not done after {self.shape.limit_s:.0f} s; logs in {self.children.logs}')
            if child.wait() != 0 or child in daemons:
                raise Failed(child.describe_end())
            left.discard(child)
            if not left:
                return

    def hold(self, label, job):
        """Takes the device memory of a job, outside any turn, and nothing more. Returns its ranks."""
        return [self.children.start(f'{label} {job.name} rank {rank}', self._argv(job, rank) + ['--hold'],
                                    node.env, stdin=-1, stdout=-1)
                for rank, node in enumerate(self.nodes)]


def holds(rank, limit_s=60):
    """True once the rank has its memory, False if the card has no room for it."""
    if select.select([rank.stdout], [], [], limit_s)[0] and rank.stdout.readline():
        return True
    code = rank.wait(limit_s)
    if code == NO_ROOM:
        return False
    raise Failed(rank.describe_end())


def let_go(rank, limit_s=60):
    rank.stdin.close()
    rank.wait(limit_s)
