"""Faults of the processes that use a card: those of jobs, and one that is nobody's."""
import signal
import time

from hands import WAIT_FOR_BITE, WAIT_FOR_SWITCH, Hands, Outcome
from puppet import Refused
from shapes import STRANGER


class ProcessFaults(Hands):
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

    def _stranger(self, node, card, lasts):
        with self.nodes[node]:
            place = (node, card)
            stay = self.stays.new(place)
            one = self.cluster.process(node)
            one.ask(f"start {card}")
            master = self.cluster.master
            mark, sat = master.mark(), False
            end = time.monotonic() + WAIT_FOR_BITE
            while not sat and time.monotonic() < end:
                stay.may_begin()
                try:
                    sat = bool(one.ask(f"alloc {STRANGER}"))
                except Refused:  # the card is full: somebody leaves it in the next switch
                    time.sleep(0.002)
            if not sat:
                self.stays.forget(stay)
            in_switch = self.observer.is_switching({place})
            bit = sat and self._says(master, r"cause=(no-device-memory|stranger|not-released|outside)", mark, 3 + lasts)
            one.kill()
            stay.is_over()
            return Outcome(bit, in_switch, self._over({place}))
