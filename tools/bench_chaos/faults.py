"""Each kind of fault: how it strikes, how it ends, and what log or trace shows that it bit."""
import dataclasses
import re
import signal
import subprocess
import threading
import time

from puppet import Refused

from observer import LOST_ANSWER
from shapes import SHAPES, STRANGER

WAIT_FOR_SWITCH = 3  # seconds that a strike waits for a switch on its target
WAIT_FOR_RANK = 6  # seconds that a strike waits for a process as it needs it
WAIT_FOR_BITE = 8  # seconds that a knob waits for the call that it spoils
FAILURE = 709


@dataclasses.dataclass
class Outcome:
    bit: bool
    in_switch: bool
    recovery: object  # runs since the fault was over


def shapes_on(places):
    return {shape.name for shape in SHAPES if shape.claim & set(places)}


ALL = {place for shape in SHAPES for place in shape.claim}


class Faults:
    """The tools of a strike: daemons, wires, cards, jobs, and who may touch which of them at a time."""

    def __init__(self, cluster, proxies, observer, figures, slots):
        self.cluster, self.proxies, self.observer = cluster, proxies, observer
        self.slots = {slot.shape.name: slot for slot in slots}
        self.figures = figures
        self.master = threading.Lock()
        self.nodes = [threading.Lock() for _ in cluster.nodes]
        self.strangers = set()  # where one has taken its memory
        self._cards = threading.Lock()

    def strike(self, strike):
        method = getattr(self, "_" + strike.kind.replace("-", "_"))
        return method(*strike.target, strike.lasts)

    def stranger_on(self, places):
        return bool(self.strangers & places)

    # Daemons.

    def _master_killed(self, _):
        return self._master_ends(lambda: self.cluster.master.kill())

    def _master_restarted(self, _):
        return self._master_ends(lambda: self.cluster.master.stop())

    def _master_ends(self, end):
        with self.master:
            in_switch = self._await_switch(ALL)
            marks = self._marks()
            end()
            recovery = self._over(ALL)
            self.cluster.start_master()
            return Outcome(self._one_says(r"\bmaster-(down|up)\b", marks), in_switch, recovery)

    def _master_stopped(self, lasts):
        with self.master:
            in_switch = self._await_switch(ALL)
            marks = self._marks()
            self._stopped(self.cluster.master.process, lasts + self._suspicion())
            recovery = self._over(ALL)
            return Outcome(self._one_says(r"\bmaster-down\b", marks, 5), in_switch, recovery)

    def _node_killed(self, node, _):
        return self._node_ends(node, lambda daemon: daemon.kill())

    def _node_restarted(self, node, _):
        return self._node_ends(node, lambda daemon: daemon.stop())

    def _node_ends(self, node, end):
        with self.nodes[node]:
            in_switch = self._await_switch(self._places(node))
            master = self.cluster.master
            mark = master.mark()
            end(self.cluster.nodes[node].daemon)
            recovery = self._over(self._places(node))
            self.cluster.nodes[node].start_connected()
            said = self._says(master, rf"\b(reported|suspect) node=n{node + 1}\b", mark)
            return Outcome(said, in_switch, recovery)

    def _node_stopped(self, node, lasts):
        with self.nodes[node]:
            return self._suspected(node, lambda: self._stopped(self.cluster.nodes[node].daemon.process,
                                                               lasts + self._suspicion()))

    def _both_killed(self, node, _):
        with self.master, self.nodes[node]:
            in_switch = self._await_switch(self._places(node))
            marks = self._marks()
            self.cluster.master.kill()
            self.cluster.nodes[node].daemon.kill()
            recovery = self._over(ALL)
            self.cluster.start_master()
            self.cluster.nodes[node].start_connected()
            marks[node] = (self.cluster.nodes[node].daemon, 0)
            return Outcome(self._one_says(r"\bmaster-up\b", marks), in_switch, recovery)

    # Wires.

    def _link_cut(self, node, _):
        with self.nodes[node]:
            in_switch = self._await_switch(self._places(node))
            daemon = self.cluster.nodes[node].daemon
            mark = daemon.mark()
            self.proxies[node].cut()
            recovery = self._over(self._places(node))
            bit = self._says(daemon, r"\bmaster-(down|up)\b", mark)
            return Outcome(bit, in_switch, recovery)

    def _link_stalled(self, node, lasts):
        def stall():
            self.proxies[node].hold()
            time.sleep(lasts + self._suspicion())
            self.proxies[node].let_go()
        with self.nodes[node]:
            return self._suspected(node, stall)

    def _suspected(self, node, strike):
        in_switch = self._await_switch(self._places(node))
        master, daemon = self.cluster.master, self.cluster.nodes[node].daemon
        at_master, at_node = master.mark(), daemon.mark()
        strike()
        recovery = self._over(self._places(node))
        suspect = rf"\bsuspect node=n{node + 1}\b"
        logs = [(daemon, at_node), (master, at_master)]
        if self.cluster.master is not master:  # another fault has struck meanwhile
            logs.append((self.cluster.master, 0))
        bit = self._one_says(rf"\bmaster-down\b|{suspect}", logs, 2)
        return Outcome(bit, in_switch, recovery)

    # Processes of jobs.

    def _rank_killed(self, job, rank, _):
        with self._rank(job, rank) as one:
            if one is None:
                return None
            in_switch = self._await_switch(self._of(one))
            daemon = self.cluster.nodes[one.place.node].daemon
            mark = daemon.mark()
            one.life.kill(one, "rank-killed")
            recovery = self._over(self._of(one))
            bit = self._says(daemon, rf"\bmember-died\b.*pid={one.pid}\b", mark)
            return Outcome(bit, in_switch, recovery)

    def _rank_stopped(self, job, rank, lasts):
        with self._rank(job, rank) as one:
            if one is None:
                return None
            begun = self._await_call(one, ("lock", "restore"), since=time.monotonic())  # another follows at once
            since = time.monotonic()
            one.puppet.process.send_signal(signal.SIGSTOP)

            def waits():
                return any(c.end is None for c in self.observer.calls_of(one.place.node, one.pid, since=since))
            bit = begun and self.observer.wait_for(waits, WAIT_FOR_SWITCH)
            time.sleep(lasts)
            bit = bit and waits()
            one.puppet.process.send_signal(signal.SIGCONT)
            return Outcome(bit, bit, self._over(self._of(one)))

    def _rank_crashes_in_lock(self, job, rank, _):
        def bites(one, since):
            return not one.lives()
        return self._spoil(job, rank, "crash.lock", "before", bites, doomed=True)

    # Calls of the driver.

    def _lock_slow(self, job, rank, lasts):
        return self._slow("lock", job, rank, lasts)

    def _save_slow(self, job, rank, lasts):
        return self._slow("checkpoint", job, rank, lasts)

    def _restore_slow(self, job, rank, lasts):
        return self._slow("restore", job, rank, lasts)

    def _slow(self, call, job, rank, lasts):
        def bites(one, since):
            return any(c.end and c.end - c.begin >= lasts for c in self._calls(one, call, since))
        return self._spoil(job, rank, f"delay.{call}", f"{round(lasts * 1000)} ms", bites)

    def _lock_fails(self, job, rank, _):
        return self._fails("lock", job, rank)

    def _save_fails(self, job, rank, _):
        return self._fails("checkpoint", job, rank)

    def _restore_fails(self, job, rank, _):
        return self._fails("restore", job, rank)

    def _fails(self, call, job, rank):
        def bites(one, since):
            return any(c.code == FAILURE for c in self._calls(one, call, since))
        return self._spoil(job, rank, f"fail.{call}", f"{FAILURE} on 1", bites)

    def _unlock_fails(self, job, rank, _):
        return self._fails("unlock", job, rank)

    def _reply_lost(self, job, rank, lasts):
        call = ("lock", "checkpoint", "restore", "unlock")[int(lasts * 1000) % 4]

        def bites(one, since):
            return any(c.code == LOST_ANSWER for c in self._calls(one, call, since))
        return self._spoil(job, rank, f"fail.{call}", f"{LOST_ANSWER} after", bites)

    def _lock_hangs(self, job, rank, lasts):
        return self._hangs("lock", "quiesce", job, rank, lasts)

    def _save_hangs(self, job, rank, lasts):
        return self._hangs("checkpoint", "save", job, rank, lasts)

    def _restore_hangs(self, job, rank, lasts):
        return self._hangs("restore", "restore", job, rank, lasts)

    def _hangs(self, call, order, job, rank, lasts):
        with self._rank(job, rank) as one:
            if one is None:
                return None
            daemon = self.cluster.nodes[one.place.node].daemon
            mark, since = daemon.mark(), time.monotonic()
            self._turn(one, f"hang.{call}", "yes")
            if begun := self._await_call(one, (call,), since):
                time.sleep(self.cluster.save_deadline + lasts)
            self._turn(one, f"hang.{call}", "")
            recovery = self._over(self._of(one))
            bit = begun and self.observer.wait_for(
                lambda: any(c.end and c.end - c.begin > lasts for c in self._calls(one, call, since)), WAIT_FOR_BITE)
            bit = bit or bool(daemon.said(rf"\boverdue\b.*order={order} job=\S*{one.life.name}\b", mark))
            return Outcome(bit, bit, recovery)

    def _late_release(self, job, rank, lasts):
        master = self.cluster.master
        mark = master.mark()

        def bites(one, since):
            return any(c.end and c.code == 0 for c in self._calls(one, "checkpoint", since))
        outcome = self._spoil(job, rank, "release_delay", f"{round(lasts * 1000) + 500} ms", bites)
        if outcome and outcome.bit:
            outcome.bit = self._says(master, r"not-released", mark, 2)
        return outcome

    def _stranger(self, node, card, lasts):
        with self.nodes[node]:
            place = {(node, card)}
            one = self.cluster.process(node)
            one.ask(f"start {card}")
            master = self.cluster.master
            mark, sat = master.mark(), False
            end = time.monotonic() + WAIT_FOR_BITE
            while not sat and time.monotonic() < end:
                try:
                    sat = bool(one.ask(f"alloc {STRANGER}"))
                except Refused:  # the card is full: somebody leaves it in the next switch
                    time.sleep(0.002)
            in_switch = self.observer.is_switching(place)
            self.strangers |= place if sat else set()
            bit = sat and self._says(master, r"cause=(no-device-memory|stranger|not-released|outside)", mark, 3 + lasts)
            one.kill()
            self.strangers -= place
            return Outcome(bit, in_switch, self._over(place))

    # Tools.

    def _spoil(self, job, rank, knob, value, bites, doomed=False):
        """Turns a knob of one process until the call that it spoils has come."""
        with self._rank(job, rank) as one:
            if one is None:
                return None
            since = time.monotonic()
            if doomed:
                one.doomed = knob
            self._turn(one, knob, value)
            bit = self.observer.wait_for(lambda: bites(one, since) or not one.lives(), WAIT_FOR_BITE) and bites(one, since)
            self._turn(one, knob, "")
            return Outcome(bit, bit, self._over(self._of(one)))

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
