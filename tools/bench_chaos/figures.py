"""What the bench counts, and the JSON of it."""
import collections
import threading
import time


def rank_of(values, share):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(share * len(values)))], 3) if values else None


class Figures:
    def __init__(self, kinds):
        self._lock = threading.Lock()
        self.faults = {kind: {"injected": 0, "bit": 0, "in_switch": 0} for kind in kinds}
        self.recoveries = []
        self.steps = 0
        self.ends = collections.Counter()
        self.lost, self.ended_by_fault, self.killed = [], [], collections.Counter()
        self.refusals = collections.Counter()
        self._waits = []  # (since, shapes)

    def granted(self, shape):
        with self._lock:
            now = time.monotonic()
            for wait in [w for w in self._waits if shape in w[1]]:
                self._waits.remove(wait)
                self.recoveries.append(now - wait[0])

    def recovers(self, shapes):
        """A fault is over now: the next grant of one of these says how long it took."""
        with self._lock:
            self._waits.append((time.monotonic(), set(shapes)))

    def refused(self, what, name):
        with self._lock:
            self.refusals[f"{what} {name}"] += 1

    def ended(self, life, how, why, row):
        with self._lock:
            self.ends[how] += 1
            self.steps += sum(rank.steps for rank in life.ranks)
            if how == "killed":
                self.killed[why] += 1
            elif how == "lost":
                self.lost.append({"job": life.name, "why": why})
            elif how == "ended_by_fault":
                self.ended_by_fault.append({"job": life.name, "row": row, "why": why})

    def struck(self, kind, bit, in_switch):
        with self._lock:
            mine = self.faults[kind]
            mine["injected"] += 1
            mine["bit"] += bit
            mine["in_switch"] += bit and in_switch

    def summary(self, observer):
        bit = sum(f["bit"] for f in self.faults.values())
        return {
            "violations": len(observer.violations), "lost": len(self.lost),
            "ended_by_fault": self.ended_by_fault, "killed": sum(self.killed.values()),
            "finished": self.ends["finished"], "faults": self.faults,
            "faults_injected": sum(f["injected"] for f in self.faults.values()), "faults_bit": bit,
            "faults_in_switch": sum(f["in_switch"] for f in self.faults.values()),
            "recovery_s": {"p50": rank_of(self.recoveries, 0.5), "p99": rank_of(self.recoveries, 0.99),
                           "worst": rank_of(self.recoveries, 1)},
            "steps": self.steps, "device_calls_checked": observer.works, "checkpoint_calls": observer.calls,
            "unsure": observer.unsure, "refusals": dict(self.refusals),
            "lost_jobs": self.lost, "violation_list": observer.violations[:20]}
