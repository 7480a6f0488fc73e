"""The jobs: lives of so many steps, each step a turn in which device memory becomes another that depends on it."""
import queue
import random
import subprocess
import threading
import time

from daemon import PATIENCE
from puppet import Refused

STEPS = 12
MUTATIONS = 2  # in a step
LONGEST_THOUGHT = 0.06  # seconds
REFUSALS_IN_A_ROW = 400
LEFT_ALONE = 5  # seconds that what is left of an ended job is given to end

# A refusal after which a program asks again: nothing of the job is lost.
PASSING = {"UNAVAILABLE", "MASTER_DOWN", "TIMED_OUT", "BUSY", "NO_DEVICE_MEMORY", "NO_HOST_MEMORY", "NOT_RELEASED",
           "DEADLOCK", "SHUTDOWN", "CANCELLED"}

# What a job's own FAULTED says, and the row of the failure table (docs/design.md) that it is.
ROWS = {"FAULTED: release of pid": "a node cannot complete a grant",
        "FAULTED: restore of pid": "restore of I fails for good",
        "FAULTED: save of pid": "save fails before the commit point, and I cannot be saved"}


class Ended(Exception):
    """The life is over before its last step: by the bench, by a fault whose row says so, or for no good reason."""

    def __init__(self, how, why, row=None):
        super().__init__(why)
        self.how, self.row = how, row


class Rank:
    """One process of a life."""

    def __init__(self, life, index):
        self.life, self.index = life, index
        self.place = life.shape.places[index]
        self.puppet = life.cluster.process(self.place.node)
        self.digest = None
        self.busy = threading.Lock()  # one fault at a time
        self.doomed = None  # the fault that is going to make it crash
        self.steps = 0
        self.allocating = None  # since when
        life.observer.watch(self.puppet.pid, life.name, self.place.node, self.place.cards)

    @property
    def pid(self):
        return self.puppet.pid

    def lives(self):
        return self.puppet.process.poll() is None

    def run(self):
        options = {"group": self.life.shape.group, "job": self.life.name, "deadline": 60000,
                   "devices": ",".join(map(str, self.place.cards))}
        if len(self.life.shape.places) > 1:
            options["gang"] = len(self.life.shape.places)
        self._again("join", lambda: self.puppet.join(**options))
        for step in range(self.life.steps):
            self._turn(step)
            time.sleep(self.life.thoughts[self.index][step])
        self.life.observer.forget(self.place.node, self.pid)
        self.puppet.ask("leave")
        self.puppet.end()

    def _turn(self, step):
        self._again("acquire", self.puppet.acquire)
        self.life.granted()
        if step == 0:
            self.allocating = time.monotonic()
            for card in self.place.cards:
                self.puppet.ask(f"start {card}")
                self.puppet.ask(f"alloc {self.life.shape.bytes}")
            self.puppet.ask(f"fill {self.life.number * 16 + self.index}")
        for i in range(MUTATIONS):
            self.puppet.ask(f"mutate {step * MUTATIONS + i}")
        if step + 1 == self.life.steps:
            self.digest = self.puppet.ask("digest")
        self.steps += 1
        try:
            self.puppet.ask("yield")
        except Refused as no:
            self.life.refused("yield", no)

    def _again(self, what, ask):
        for _ in range(REFUSALS_IN_A_ROW):
            try:
                return ask()
            except Refused as no:
                self.life.refused(what, no)
                self._judge(what, no)
        raise Ended("lost", f"{what} refused {REFUSALS_IN_A_ROW} times in a row")

    def _judge(self, what, no):
        if no.name not in PASSING and not self.life.is_passing(no):
            row = row_of(no)
            raise Ended("ended_by_fault" if row else "lost", f"{what}: {no}", row)
        time.sleep(0.02)  # as a program does that is told to ask later


class Life:
    """A job from its join to its last step."""

    def __init__(self, cluster, observer, figures, shape, number, name, seed, steps=STEPS):
        self.cluster, self.observer, self.figures = cluster, observer, figures
        self.shape, self.number, self.name, self.steps = shape, number, name, steps
        self.killed = None  # by which fault
        self._lock = threading.Lock()
        self.stranger_on = lambda places, since: False
        self._end = None
        self._over = threading.Event()
        self._running = len(shape.places)
        rng = random.Random(f"{seed} {name}")
        self.thoughts = [[rng.uniform(0, LONGEST_THOUGHT) for _ in range(steps)] for _ in shape.places]
        self.ranks = [Rank(self, i) for i in range(len(shape.places))]

    @property
    def digests(self):
        return [rank.digest for rank in self.ranks]

    def kill(self, rank, why):
        """A process of it dies by the bench, and what becomes of the job counts as killed."""
        if not rank.lives():
            return
        self.killed = self.killed or why
        self.observer.forget(rank.place.node, rank.pid)
        rank.puppet.process.kill()

    def run(self):
        """Returns how it ended: finished, killed, ended_by_fault or lost; with why and the row."""
        threads = [threading.Thread(target=self._run, args=(rank,), daemon=True) for rank in self.ranks]
        for thread in threads:
            thread.start()
        self._over.wait()
        for thread in threads:  # the daemons end what is left of a broken job
            thread.join(LEFT_ALONE)
        for rank in self.ranks:
            self.observer.forget(rank.place.node, rank.pid)
            rank.puppet.kill()
        for thread in threads:
            thread.join()
        return self._end or ("finished", "", None)

    def _run(self, rank):
        try:
            rank.run()
        except Ended as end:
            self._ended(end.how, str(end), end.row)
        except queue.Empty:
            self._ended("lost", f"no answer in {PATIENCE} s: " + self.why())
        except Refused as no:
            self._ended(*self._refusal(rank, no))
        except Exception as end:  # a process that is gone has no answers
            self._ended("lost", f"{type(end).__name__}: {end}")
        with self._lock:
            self._running -= 1
            if self._running == 0 or self._end:
                self._over.set()

    def _ended(self, how, why, row=None):
        with self._lock:
            killed = self.killed or next((r.doomed for r in self.ranks if r.doomed and not r.lives()), None)
            if self._end is None:
                self._end = ("killed", killed, None) if killed else (how, why, row)

    def _refusal(self, rank, no):
        """A first allocation beside a stranger's: nobody could know what this job was going to need."""
        places = {(rank.place.node, card) for card in rank.place.cards}
        if "CUDA 2" in str(no) and rank.steps == 0 and self.stranger_on(places, rank.allocating):
            return "ended_by_fault", str(no), "a device is used outside a slice"
        shown = subprocess.run([self.cluster.card_tool, "show", self.cluster.nodes[rank.place.node].cards],
                               capture_output=True, text=True)
        return "lost", f"{no}, pid {rank.pid}, now: {shown.stdout}", None

    def why(self):
        return self.cluster.tsctl("why", f"{self.shape.group}/{self.name}").stdout

    def granted(self):
        self.figures.granted(self.shape.name)

    def refused(self, what, no):
        self.figures.refused(what, no.name)

    def is_passing(self, no):
        """FAULTED of another job in the way: this one is whole and asks again."""
        return no.name == "FAULTED" and "in the way: " in str(no)


def row_of(no):
    """The row of the failure table by which this refusal ends a job, if there is one."""
    return next((row for words, row in ROWS.items() if no.name == "FAULTED" and words in str(no)), None)


class Slot:
    """One of the twelve: a life after the other, until the bench is over."""

    def __init__(self, cluster, observer, figures, shape, number, seed):
        self.made = (cluster, observer, figures, shape, number)
        self.figures, self.shape, self.seed = figures, shape, seed
        self.life = None
        self.lives = 0
        self.expected = None
        self.faults = None

    def new_life(self):
        self.lives += 1
        self.life = Life(*self.made, f"{self.shape.name}-{self.lives}", self.seed)
        if self.faults:
            self.life.stranger_on = self.faults.stranger_on
        return self.life

    def rehearse(self):
        """Alone and undisturbed: the digests that every later life must have."""
        how, why, _ = self.new_life().run()
        if how != "finished":
            raise RuntimeError(f"{self.life.name} ended undisturbed: {why}")
        self.expected = self.life.digests

    def run(self, is_over):
        while not is_over():
            life = self.new_life()
            how, why, row = life.run()
            if how == "finished" and life.digests != self.expected:
                how, why = "lost", f"digests {life.digests}, undisturbed {self.expected}"
            self.figures.ended(life, how, why, row)
