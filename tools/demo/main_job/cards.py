"""The GPUs of the run: simulated ones, or the machine's own."""
import json
import os
import subprocess
import sys

from . import workload
from .processes import Failed

PROBE = '''
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
total = ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
assert cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0) == 0
print(count.value, total.value)
'''


def real_gpus():
    """(count, bytes of the first), or nothing. Asked in a process of its own, which leaves no context."""
    answer = subprocess.run([sys.executable, '-c', PROBE], capture_output=True, text=True)
    return tuple(map(int, answer.stdout.split())) if answer.returncode == 0 else None


class Simulated:
    """One card per node, each in a folder of its own."""
    kind = 'simgpu'

    def __init__(self, build, folder, bytes_, job_bytes, scale):
        self.bytes = bytes_
        self._tool = os.path.join(build, 'src/simgpu/simgpu-card')
        self._library = os.path.join(build, 'src/simgpu/lib')
        self._folder = folder
        self._options = ['--bytes', str(bytes_),
                         '--d2h', _rate(job_bytes, workload.SWITCH_OUT_S * scale),
                         '--h2d', _rate(job_bytes, workload.SWITCH_IN_S * scale)]
        self._cards = []

    def prepare(self):
        pass

    def make(self, name):
        """A node's card; returns the environment in which programs see it."""
        cards = os.path.join(self._folder, name)
        self._ask('create', cards, *self._options)
        self._cards.append(cards)
        path = os.pathsep.join(filter(None, [self._library, os.environ.get('LD_LIBRARY_PATH')]))
        return {'SIMGPU_CARDS': cards, 'LD_LIBRARY_PATH': path}

    def busy_s(self):
        """How long kernels have run, summed over the cards."""
        shown = [json.loads(self._ask('show', cards, '--json')) for cards in self._cards]
        return sum(card['busy_s'] for one in shown for card in one['cards'])

    def _ask(self, *words):
        done = subprocess.run([self._tool, *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"{self._tool} {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout


class Real:
    """The machine's own GPUs. A filler on each leaves as much of it free as the run asks for."""
    kind = 'cuda'

    def __init__(self, children, tsdemo, free_bytes, devices):
        self.bytes = free_bytes
        self._children = children
        self._tsdemo = tsdemo
        self._devices = devices

    def prepare(self):
        for device in self._devices:
            filler = self._children.start(
                f'filler {device}', [self._tsdemo, '--name', 'filler', '--device', str(device),
                                     '--hold-all-but', str(self.bytes)], {}, stdin=-1, stdout=-1)
            if not filler.stdout.readline():
                filler.wait(60)
                raise Failed(filler.describe_end())

    def busy_s(self):
        return None  # the driver does not count it; the jobs do


def _rate(job_bytes, seconds):
    return f'{max(1, round(job_bytes / seconds / 1e3))} KB/s'
