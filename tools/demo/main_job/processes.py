"""Child processes that never outlive the run: ended by their pid, last one first, and nobody else."""
import ctypes
import os
import select
import signal
import subprocess
import threading
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Failed(Exception):
    """Something this run needs went wrong; the text says what and where to look."""


def _end_with_parent():
    # Even when this program is killed without a chance to tidy up.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """One process; its stderr goes to a log and, line by line, to whoever listens."""

    def __init__(self, name, argv, env, log, on_line=None, **popen):
        self.name = name
        self.log = log
        self.lines = []
        self._on_line = on_line
        self._popen = subprocess.Popen(argv, env={**os.environ, **env}, stderr=subprocess.PIPE, text=True,
                                       preexec_fn=_end_with_parent, start_new_session=True, **popen)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with open(self.log, 'a') as log:
            for line in self._popen.stderr:
                log.write(line)
                log.flush()
                self.lines = self.lines[-20:] + [line.rstrip()]
                if self._on_line:
                    self._on_line(line.rstrip())

    pid = property(lambda self: self._popen.pid)
    stdin = property(lambda self: self._popen.stdin)
    stdout = property(lambda self: self._popen.stdout)
    code = property(lambda self: self._popen.poll())

    def wait(self, timeout=None):
        try:
            code = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f'{self.name} does not end within {timeout:.0f} s; see {self.log}') from None
        self._reader.join(5)
        return code

    def end(self):
        if self._popen.poll() is not None:
            return
        self._popen.terminate()
        try:
            self._popen.wait(10)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()

    def describe_end(self):
        return f'{self.name} ended with {self.code}:\n    ' + '\n    '.join(self.lines[-5:])


def as_they_end(children, until):
    """Each child when it has ended, in that order; None if the time `until` comes first."""
    left = {os.pidfd_open(child.pid): child for child in children}
    try:
        while left:
            ready = select.select(left, [], [], max(0, until - time.monotonic()))[0]
            if not ready:
                yield None
            for fd in ready:
                os.close(fd)
                yield left.pop(fd)
    finally:
        for fd in left:
            os.close(fd)


class Children:
    def __init__(self, logs):
        self.logs = logs
        self._children = []

    def start(self, name, argv, env, **more):
        log = os.path.join(self.logs, name.replace(' ', '-') + '.log')
        child = Child(name, argv, env, log, **more)
        self._children.append(child)
        return child

    def end_all(self):
        while self._children:
            self._children.pop().end()
