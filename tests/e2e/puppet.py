"""A job of a test: a process that joins, acquires and fills its card when it is told to."""
import os
import queue
import signal
import subprocess
import threading

from daemon import PATIENCE


class Refused(Exception):
    """The client library said no: `name` is the status, the text is for a person."""

    def __init__(self, answer):
        super().__init__(answer)
        self.name = answer.split(":", 1)[0]


class Puppet:
    def __init__(self, program, env, user=None):
        def become():
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **env}, preexec_fn=become)
        self.errors = None  # the file that holds its stderr, if one does
        self._answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self):
        return self.process.pid

    def say(self, line):
        """Gives a command and does not wait; hear() has the answer when there is one."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        """The answer of a command: its value, or Refused."""
        answer = self._answers.get(timeout=PATIENCE)
        if answer is None:
            said = self.errors.read_text() if self.errors else ""
            raise AssertionError(f"job {self.pid} ended with {self.process.wait(PATIENCE)}: {said}")
        if answer.startswith("error "):
            raise Refused(answer[6:])
        return answer[3:]

    def ask(self, line):
        self.say(line)
        return self.hear()

    def is_waiting(self):
        """No answer has come yet. Says something only after a point where one would have come."""
        return self._answers.empty()

    def join(self, **options):
        return self.ask("join " + " ".join(f"{key}={value}" for key, value in options.items()))

    def acquire(self, deadline_ms=0):
        return grant(self.ask(f"acquire {deadline_ms}"))

    def hear_grant(self):
        return grant(self.hear())

    def take_memory(self, size, seed):
        """Device memory whose every word depends on its place and on `seed`."""
        self.ask("start 0")
        self.ask(f"alloc {size}")
        self.ask(f"fill {seed}")

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def end(self):
        """As a program that comes to its end."""
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def _read(self):
        for line in self.process.stdout:
            self._answers.put(line.rstrip("\n"))
        self._answers.put(None)


def grant(text):
    return {key: int(value) for key, value in (word.split("=") for word in text.split())}
