"""Faults of single driver calls, by simgpu's knobs; the trace of the card shows that each has bitten."""
import time

from hands import WAIT_FOR_BITE, Hands, Outcome
from observer import LOST_ANSWER

FAILURE = 709


class CallFaults(Hands):
    def _rank_crashes_in_lock(self, job, rank, _):
        def bites(one, since):
            return not one.lives()
        return self._spoil(job, rank, "crash.lock", "before", bites, doomed=True)

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

    def _spoil(self, job, rank, knob, value, bites, doomed=False):
        """Turns a knob of one process until the call that it spoils has come."""
        with self._rank(job, rank) as one:
            if one is None:
                return None
            since = time.monotonic()
            if doomed:
                one.doomed = "rank-crashes-in-lock"
            self._turn(one, knob, value)
            self.observer.wait_for(lambda: bites(one, since) or not one.lives(), WAIT_FOR_BITE)
            self._turn(one, knob, "")
            bit = bites(one, since)
            one.doomed = one.doomed if bit else None
            return Outcome(bit, bit, self._over(self._of(one)))
