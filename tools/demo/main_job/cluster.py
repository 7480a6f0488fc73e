"""Two nodes on this machine: a master, a node daemon for each, and what their programs need to know."""
import dataclasses
import os
import time

from .processes import Failed

GROUP = 'demo'
MASTER = '''\
listen = ["127.0.0.1:0"]
socket = "{folder}/master.sock"
http = ""
database = "{folder}/master.db"
auth = "none"
'''
NODE = '''\
name = "{name}"
master = "{master}"
socket = "{folder}/{name}.sock"
state_dir = "{folder}/{name}.state"
auth = "none"
backend = "cuda"
'''


@dataclasses.dataclass
class Node:
    name: str
    env: dict  # in which programs on it see its card
    device: int = 0
    socket: str = ''

    def turn_env(self, job):
        return {'TIMESLICE_SOCKET': self.socket, 'TIMESLICE_GROUP': GROUP, 'TIMESLICE_JOB': job,
                'TIMESLICE_DEVICES': str(self.device), 'TIMESLICE_REQUIRED': '1'}


class Cluster:
    def __init__(self, build, folder, children, nodes):
        self._build = build
        self._folder = folder
        self._children = children
        self._nodes = nodes  # of the ranks; two ranks may be on the same one
        self.daemons = []

    def start(self):
        master = self._daemon('tsmasterd', 'src/master/tsmasterd', MASTER, {}, 'master')['rpc']
        for node in {node.name: node for node in self._nodes}.values():
            self._daemon(f'tsnoded {node.name}', 'src/node/tsnoded', NODE, node.env, node.name, master)
        for node in self._nodes:
            node.socket = os.path.join(self._folder, node.name + '.sock')

    def _daemon(self, label, program, config, env, name, master=''):
        """Starts it and returns what it announces: where it listens."""
        path = os.path.join(self._folder, name)
        with open(path + '.toml', 'w') as f:
            f.write(config.format(folder=self._folder, master=master, name=name))
        argv = [os.path.join(self._build, program), '--config', path + '.toml',
                '--announce', path + '.announced']
        daemon = self._children.start(label, argv, env)
        self.daemons.append(daemon)
        return _announced(daemon, path + '.announced')

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.end()


def _announced(daemon, path, limit_s=30):
    end = time.monotonic() + limit_s
    while not os.path.exists(path):
        if daemon.code is not None:
            daemon.wait()
            raise Failed(daemon.describe_end())
        if time.monotonic() > end:
            raise Failed(f'{daemon.name} is not ready after {limit_s} s; see {daemon.log}')
        time.sleep(0.02)
    with open(path) as f:
        return dict(line.rstrip().split('=', 1) for line in f)
