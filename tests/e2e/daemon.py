"""A daemon under test: started, read line by line, and ended with the test that started it."""
import datetime
import os
import re
import signal
import subprocess
import threading
import time

# Seconds until a test gives up, with the log in its hands.
PATIENCE = int(os.environ.get("TIMESLICE_TEST_PATIENCE", "60"))


def now():
    """This moment, as log lines have it."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def written(line):
    at = re.search(r"\bat=(\S+)", line)
    return at[1] if at else ""


class Daemon:
    """A process whose log lines are events: tests wait for a line, never for a time."""

    def __init__(self, name, command, env=None, wrap=(), pass_fds=()):
        self.name = name
        self.lines = []
        self.times = []  # of each line, when it was read
        self._heard = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen(
            [*wrap, *command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            errors="replace", env={**os.environ, **(env or {})}, pass_fds=pass_fds)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self.process.pid

    def mark(self):
        """A place in the log; wait_for(since=mark) looks at what comes after it only."""
        with self._heard:
            return len(self.lines)

    def wait_for(self, pattern, since=0, after=""):
        """Returns the match of the first line after `since` that has `pattern`, as soon as there is one.
        `after`: not one that was written before then, however late it is read; as now() says it."""
        wanted = re.compile(pattern)
        with self._heard:
            seen = since
            while True:
                for line in self.lines[seen:]:
                    if written(line) >= after and (match := wanted.search(line)):
                        return match
                seen = len(self.lines)
                if self._ended:
                    raise AssertionError(f"{self.name} ended without {pattern!r}\n{self.tail()}")
                if not self._heard.wait(PATIENCE):
                    raise AssertionError(f"{self.name} never said {pattern!r}\n{self.tail()}")

    def said(self, pattern, since=0):
        with self._heard:
            return [line for line in self.lines[since:] if re.search(pattern, line)]

    def tail(self, count=40):
        return "".join(f"  {self.name}: {line}\n" for line in self.lines[-count:])

    def stop(self):
        """As an init system stops it. Returns the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self):
        return self._end(signal.SIGKILL)

    def alive(self):
        return self.process.poll() is None

    def wait(self):
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def _end(self, number):
        if self.alive():
            self.process.send_signal(number)
        return self.wait()

    def _read(self):
        for line in self.process.stderr:
            with self._heard:
                self.times.append(time.monotonic())
                self.lines.append(line.rstrip("\n"))
                self._heard.notify_all()
        with self._heard:
            self._ended = True
            self._heard.notify_all()
