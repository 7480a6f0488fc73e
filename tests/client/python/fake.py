"""The fake node as a process, for tests: see tests/support/fake_node_main.cpp."""
import os
import queue
import subprocess
import tempfile
import threading

VARIABLES = ("TIMESLICE_SOCKET", "TIMESLICE_GROUP", "TIMESLICE_JOB", "TIMESLICE_DEVICES",
             "TIMESLICE_BACKEND", "TIMESLICE_GANG", "TIMESLICE_PRIORITY", "TIMESLICE_REQUIRED",
             "CUDA_VISIBLE_DEVICES")


def clean_environment():
    for name in VARIABLES:
        os.environ.pop(name, None)


class FakeNode:
    """Obeys tell(); seen() waits for the next message whose line starts with a word."""

    def __init__(self):
        self._dir = tempfile.TemporaryDirectory(prefix="timeslice-")
        self.socket = os.path.join(self._dir.name, "node.sock")
        self._process = subprocess.Popen([os.environ["FAKE_NODE"], self.socket], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._done = queue.Queue()
        self._messages = queue.Queue()
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._done.get()

    def _read(self):
        for line in self._process.stdout:
            line = line.rstrip("\n")
            if line == "ready" or line.startswith("done "):
                self._done.put(line)
            else:
                self.lines.append(line)
                self._messages.put(line)

    def tell(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        self._done.get()

    def seen(self, word):
        while True:
            line = self._messages.get()
            if line.split()[0] == word:
                return line

    def count(self, word):
        """How many came before now: the fake has said all that it saw when it has obeyed."""
        self.tell("answer hello 0")
        return sum(1 for line in self.lines if line.split()[0] == word)

    def forget(self):
        """What came before now is not seen any more."""
        self.tell("answer hello 0")
        while not self._messages.empty():
            self._messages.get()

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        self._dir.cleanup()
