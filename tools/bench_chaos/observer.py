"""Watches cards and processes, never a daemon: does a job work on a card on which another's process runs?"""
import collections
import dataclasses
import threading

from watch import follow

# simgpu's knobs lose an answer with this code only: the call did its work.
LOST_ANSWER = 708
WORK = ("cuMem", "cuLaunch")
RUNNING, MAYBE, STOPPED, AWAY = "running", "maybe", "stopped", "away"
KEPT = 400  # calls of a process, for evidence


@dataclasses.dataclass
class Call:
    name: str
    begin: float
    end: float = None
    code: int = None


@dataclasses.dataclass
class Watched:
    """A process of a job and what the trace says of it. AWAY: it has no memory on its cards."""
    pid: int
    job: str
    node: int
    cards: tuple
    state: str = AWAY
    before: str = AWAY  # the state before the call that runs
    calls: collections.deque = dataclasses.field(default_factory=lambda: collections.deque(maxlen=KEPT))


class Observer:
    """Feed it lines of a trace in the order of the file: each was written before what it caused."""

    def __init__(self, alive):
        self._alive = alive  # of a pid: does it live, as the kernel has it
        self._processes = {}
        self._gone = set()
        self._switching = {}  # (node, card): a checkpoint call began, and no device work since
        self._changed = threading.Condition()
        self.violations = []
        self.unsure = 0  # device work while a call on another process had begun and its end was not seen
        self.works = 0
        self.calls = 0

    def watch(self, pid, job, node, cards):
        with self._changed:
            self._processes[node, pid] = Watched(pid, job, node, tuple(cards))

    def forget(self, node, pid):
        """It is dead, or will be within the next moment."""
        with self._changed:
            self._gone.add((node, pid))

    def follow(self, node, path):
        threading.Thread(target=self._read, args=(node, path), daemon=True).start()

    def calls_of(self, node, pid, name=None, since=0.0):
        """The checkpoint calls on a process that were not over at `since`."""
        with self._changed:
            process = self._processes.get((node, pid))
            return [dataclasses.replace(c) for c in (process.calls if process else ())
                    if (name is None or c.name == name) and (c.end is None or c.end >= since)]

    def is_switching(self, places):
        with self._changed:
            return any(self._switching.get(place) for place in places)

    def wait_for(self, condition, seconds):
        """True as soon as the condition holds; it is looked at when a trace grows."""
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def _read(self, node, path):
        for lines in follow(path):
            with self._changed:
                for line in lines:
                    self._line(node, line)
                self._changed.notify_all()

    def feed(self, node, line):
        with self._changed:
            self._line(node, line)

    def _line(self, node, line):
        words = line.split()
        if len(words) < 4 or words[1] not in ("begin", "end"):
            return
        fields = dict(word.split("=", 1) for word in words[3:])
        process = self._processes.get((node, int(fields["pid"])))
        if process is None:
            return
        at, when, call = float(words[0]), words[1], words[2]
        code = int(fields.get("code", 0))
        if call.startswith(WORK):
            self._work(process, at, when, call, code)
        elif call in ("lock", "checkpoint", "restore", "unlock"):
            self._checkpoint(process, at, when, call, code)

    def _work(self, process, at, when, call, code):
        places = [(process.node, card) for card in process.cards]
        if when == "begin":
            self.works += 1
            for place in places:
                self._switching[place] = False
            self._check(process, at, call, places)
        elif call.startswith("cuMemAlloc") and code == 0:
            process.state = RUNNING

    def _check(self, process, at, call, places):
        for other in self._processes.values():
            if other.job == process.job or other.node != process.node or not set(other.cards) & set(process.cards):
                continue
            if other.state not in (RUNNING, MAYBE) or self._is_dead(other):
                continue
            if other.state == MAYBE:
                self.unsure += 1
                continue
            self.violations.append({"at": at, "card": f"n{process.node + 1}:{process.cards[0]}", "call": call,
                                    "job": process.job, "pid": process.pid, "beside": other.job,
                                    "beside_pid": other.pid})

    def _is_dead(self, process):
        if (process.node, process.pid) not in self._gone and self._alive(process.pid):
            return False
        process.state = AWAY
        return True

    def _checkpoint(self, process, at, when, call, code):
        if when == "begin":
            self._begin(process, at, call)
        else:
            self._end(process, at, call, code)

    def _begin(self, process, at, call):
        self.calls += 1
        process.calls.append(Call(call, at))
        process.before = process.state
        if call in ("lock", "unlock") and process.state in (RUNNING, STOPPED):
            process.state = MAYBE
        for card in process.cards:
            self._switching[process.node, card] = True

    def _end(self, process, at, call, code):
        for made in reversed(process.calls):
            if made.name == call and made.end is None:
                made.end, made.code = at, code
                break
        if call == "unlock":
            for card in process.cards:
                self._switching[process.node, card] = False
        if code not in (0, LOST_ANSWER):
            process.state = process.before if process.state == MAYBE else process.state
            return
        process.state = {"lock": STOPPED, "checkpoint": AWAY, "restore": STOPPED, "unlock": RUNNING}[call]
