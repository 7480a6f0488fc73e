"""What the bench counts, and the JSON of it."""
import collections
import dataclasses
import threading
import time


def rank_of(values, share):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(share * len(values)))], 3) if values else None


@dataclasses.dataclass(eq=False)
class Recovery:
    since: float
    shapes: set
    took: float = None


class Figures:
    def __init__(self, kinds):
        self._lock = threading.Lock()
        self.faults = {kind: {"injected": 0, "bit": 0, "in_switch": 0} for kind in kinds}
        self._recoveries = []  # (kind, recovery) of those that bit
        self.steps = 0
        self.ends = collections.Counter()
        self.lost, self.ended_by_fault, self.killed = [], [], collections.Counter()
        self.refusals = collections.Counter()
        self._waiting = []
        self.broken = []  # strikes that the bench itself failed at

    def granted(self, shape):
        with self._lock:
            now = time.monotonic()
            for wait in [w for w in self._waiting if shape in w.shapes]:
                self._waiting.remove(wait)
                wait.took = now - wait.since

    def recovery(self, shapes):
        """A fault is over now: the next grant of one of these says how long it took."""
        with self._lock:
            self._waiting.append(Recovery(time.monotonic(), shapes))
            return self._waiting[-1]

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

    def struck(self, strike, outcome):
        """None: there was nothing to strike at."""
        with self._lock:
            mine = self.faults[strike.kind]
            mine["injected"] += 1
            if outcome and outcome.bit:
                mine["bit"] += 1
                mine["in_switch"] += bool(outcome.in_switch)
                self._recoveries.append((strike, outcome.recovery))

    def broke(self, strike, error):
        with self._lock:
            self.broken.append(f"{strike.kind} {strike.target} at {strike.at}: {type(error).__name__}: {error}")

    def _recovery_figures(self):
        took = [(recovery.took, strike) for strike, recovery in self._recoveries if recovery.took is not None]
        times = [seconds for seconds, _ in took]
        slowest = sorted(took, key=lambda t: -t[0])[:5]
        return {"p50": rank_of(times, 0.5), "p99": rank_of(times, 0.99), "worst": rank_of(times, 1),
                "slowest": [f"{seconds:.3f} {s.kind} {s.target} at {s.at}" for seconds, s in slowest]}

    def summary(self, observer):
        bit = sum(f["bit"] for f in self.faults.values())
        return {
            "violations": len(observer.violations), "lost": len(self.lost),
            "ended_by_fault": self.ended_by_fault, "killed": sum(self.killed.values()),
            "finished": self.ends["finished"], "faults": self.faults,
            "faults_injected": sum(f["injected"] for f in self.faults.values()), "faults_bit": bit,
            "faults_in_switch": sum(f["in_switch"] for f in self.faults.values()),
            "recovery_s": self._recovery_figures(),
            "steps": self.steps, "device_calls_checked": observer.works, "checkpoint_calls": observer.calls,
            "unsure": observer.unsure, "refusals": dict(self.refusals),
            "lost_jobs": self.lost, "broken_strikes": self.broken, "violation_list": observer.violations[:20]}
