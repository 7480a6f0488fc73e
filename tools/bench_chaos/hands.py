"""What a strike works with: daemons, wires, cards and processes of jobs, and who may touch which of them at a time."""
import dataclasses
import signal
import subprocess
import threading
import time

from shapes import SHAPES
from stays import Stays

WAIT_FOR_SWITCH = 3  # seconds that a strike waits for a switch on its target
WAIT_FOR_RANK = 6  # seconds that a strike waits for a process as it needs it
WAIT_FOR_BITE = 8  # seconds that a knob waits for the call that it spoils
ALL = {place for shape in SHAPES for place in shape.claim}


@dataclasses.dataclass
class Outcome:
    bit: bool
    in_switch: bool
    recovery: object  # runs since the fault was over


def shapes_on(places):
    return {shape.name for shape in SHAPES if shape.claim & set(places)}


class Hands:
    def __init__(self, cluster, proxies, observer, figures, slots):
        self.cluster, self.proxies, self.observer = cluster, proxies, observer
        self.slots = {slot.shape.name: slot for slot in slots}
        self.figures = figures
        self.master = threading.Lock()
        self.nodes = [threading.Lock() for _ in cluster.nodes]
        self.stays = Stays()  # of strangers, who are in no group
        self._cards = threading.Lock()

    def _over(self, places):
        """The fault has ended now."""
        return self.figures.recovery(shapes_on(places))

    def _rank(self, job, rank):
        return _Busy(self.slots[job], rank)

    def _turn(self, one, knob, value):
        node = self.cluster.nodes[one.place.node]
        with self._cards:
            subprocess.run([self.cluster.card_tool, "set", node.cards / str(one.place.cards[0]),
                            f"{knob}@{one.pid}={value}"], check=True)

    def _calls(self, one, call, since):
        return self.observer.calls_of(one.place.node, one.pid, call, since)

    def _await_call(self, one, names, since):
        """A checkpoint call on the process runs."""
        def runs():
            return any(c.name in names and c.end is None and c.begin >= since
                       for c in self.observer.calls_of(one.place.node, one.pid))
        return self.observer.wait_for(lambda: runs() or not one.lives(), WAIT_FOR_BITE) and runs()

    def _of(self, one):
        return {(one.place.node, card) for card in one.place.cards}

    def _places(self, node):
        return {place for place in ALL if place[0] == node}

    def _await_switch(self, places):
        return self.observer.wait_for(lambda: self.observer.is_switching(places), WAIT_FOR_SWITCH)

    def _stopped(self, process, seconds):
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def _suspicion(self):
        return self.cluster.suspect_after + 2 * self.cluster.heartbeat

    def _marks(self):
        return [(node.daemon, node.daemon.mark()) for node in self.cluster.nodes]

    def _one_says(self, pattern, marks, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if any(daemon.said(pattern, mark) for daemon, mark in marks):
                return True
            time.sleep(0.01)
        return False

    def _says(self, daemon, pattern, mark, seconds=5):
        return self._one_says(pattern, [(daemon, mark)], seconds)


class _Busy:
    """A process that has memory on its card and that no other fault has in hand; None if there is none in time."""

    def __init__(self, slot, rank):
        self._slot, self._index = slot, rank

    def __enter__(self):
        end = time.monotonic() + WAIT_FOR_RANK
        while True:
            rank = self._slot.life.ranks[self._index]
            if 0 < rank.steps <= rank.life.steps - 3 and rank.lives() and rank.busy.acquire(blocking=False):
                self._rank = rank
                return rank
            if time.monotonic() > end:
                self._rank = None
                return None
            time.sleep(0.01)

    def __exit__(self, *_):
        if self._rank:
            self._rank.busy.release()
