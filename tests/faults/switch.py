"""One switch over two nodes, held in the middle of a driver call, and the promises read off the trace of both nodes."""
import os
import re
import signal

from cluster import MIB, Cluster
from daemon import PATIENCE
from puppet import Refused
from proxy import Proxy
from stage import acquire_all, at, of, processes, turn, until

NODES = (0, 1)
MUCH = 6 * MIB  # two of them do not fit a card
CALLS = ("lock", "checkpoint", "restore", "unlock")  # in the order of a switch
ORDER = dict(zip(CALLS, ("quiesce", "save", "restore", "grant")))
OUT, IN = CALLS[:2], CALLS[2:]  # about whose process a call is


class Switch:
    """with Switch(…) as s: job `o` holds a card of each node, job `i` is saved on both and waits for them. s.begin() lets
    `o` yield, s.reach(call, node) lets the switch come as far as this call and no further, s.let_go() ends the call."""

    def __init__(self, wires=False, group=None, node=None, master=None, cards=1):
        group = {"broken_grace": "20 ms", **(group or {})}
        self.c = Cluster(nodes=0, groups={"g": group}, node=node, master=master,
                         cards=("--bytes", "8MiB", "--cards", str(cards)))
        self._wired = wires
        self.wires = []
        self.killed = set()  # daemons that died with calls of theirs under way
        self.dead = set()    # processes of the jobs
        self._held = None

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__(True)
            raise
        return self

    def _start(self):
        self.c.start_master()
        for n in NODES:
            if self._wired:
                self.wires.append(Proxy(self.c.address))
            self.c.add_node(f"n{n + 1}", **({"master": self.wires[n].address} if self._wired else {}))
            self.c.nodes[n].start_connected()
        self.i, self.o = ([self.c.job(node=n, job=name, gang=2, devices="0") for n in NODES] for name in "io")
        acquire_all(self.c, self.i)
        self.fill(self.i, 1)
        self.pass_turn(self.i, self.o)
        self.fill(self.o, 3)
        self.ask(self.i)
        self.marks = [len(self._lines(node)) for node in self.c.nodes]
        self.said = self.c.master.mark()

    def __exit__(self, kind, *_):
        for wire in self.wires:
            wire.close()
        self.c.__exit__(kind)

    @staticmethod
    def fill(ranks, seed):
        for n, rank in enumerate(ranks):
            rank.take_memory(MUCH, seed + n)

    def ask(self, ranks):
        for rank in ranks:
            self.c.queue(rank)

    def pass_turn(self, ranks, others):
        self.ask(others)
        for rank in ranks:
            rank.ask("yield")
        return [rank.hear_grant() for rank in others]

    # --- how far it comes

    def begin(self):
        for rank in self.o:
            rank.ask("yield")

    def struck(self, call, n):
        return (self.o if call in OUT else self.i)[n]

    def reach(self, call, n):
        """The switch begins, and stands in this call on node n until let_go()."""
        self.hold(call, n)
        self.begin()
        until(lambda: self.calls(call, n, "begin"), f"{call} on n{n + 1}")

    def hold(self, call, n):
        self._held = f"hang.{call}", self.struck(call, n), n
        turn(self.c.nodes[n], "yes", self._held[0], self._held[1])

    def let_go_if(self, lives):
        if lives:
            self.let_go()

    def let_go(self):
        name, rank, n = self._held
        turn(self.c.nodes[n], "", name, rank)

    def calls(self, call, n, when="end"):
        """Since the switch began, on this node and about the process that the call is about."""
        return of(self.lines(n, call, when), self.struck(call, n).pid)

    def lines(self, n, call, when):
        return [line for line in self._lines(self.c.nodes[n])[self.marks[n]:] if f" {when} {call} " in line]

    @staticmethod
    def _lines(node):
        file = node.cards / "trace"
        return file.read_text().splitlines() if file.exists() else []

    # --- what strikes

    def end(self, *ranks):
        for rank in ranks:
            self.dead.add(rank.pid)
            rank.kill()

    def signal(self, number, ranks):
        for rank in ranks:
            os.kill(rank.pid, number)

    def give_up(self, ranks):
        self.signal(signal.SIGUSR1, ranks)

    def hang_up(self, rank):
        self.signal(signal.SIGUSR2, [rank])

    def kill_node(self, n):
        self.killed.add(self.c.nodes[n].daemon.pid)
        self.c.nodes[n].daemon.kill()

    def room_is_seen(self, call, n):
        """What a killed daemon was restoring has its memory already and is listed only when it is there: until then a new
        life finds no room for it."""
        if call == "restore":
            until(lambda: self.states(self.i)[n] == "locked", "the restore has ended")

    # --- what became of it

    def states(self, ranks):
        return [processes(self.c.nodes[n]).get(rank.pid) for n, rank in zip(NODES, ranks)]

    def job(self, name):
        return next((j for j in self.c.status()["jobs"] if j["name"] == name), None)

    def same(self, test, ranks, seed):
        test.assertEqual([rank.ask(f"check {seed + n}") for n, rank in enumerate(ranks)], ["same"] * len(ranks))

    def goes_on(self, test):
        """The waiter has its turn, then the other its own, with every byte; and the promises held all the way."""
        grants = [rank.hear_grant() for rank in self.i]
        test.assertEqual({grant["epoch"] for grant in grants}, {grants[0]["epoch"]})
        self.same(test, self.i, 1)
        self.pass_turn(self.i, self.o)
        self.same(test, self.o, 3)
        self.held(test)

    def comes_back(self, test):
        """Nobody competes with the saved job any more: it is restored, whole, without being asked for, and may go on."""
        until(lambda: self.states(self.o) == ["running"] * 2, "o is back")
        acquire_all(self.c, self.o)
        self.same(test, self.o, 3)
        self.held(test)

    def gone(self, ranks):
        """They are ended by the daemons."""
        for rank in ranks:
            rank.process.wait(PATIENCE)
            self.dead.add(rank.pid)

    def whole_again(self, test, call, n, again):
        """What was done to the job on the other node had been undone before it was tried again."""
        m = 1 - n
        undone = "unlock" if call == "lock" else "restore"
        done = of(self.lines(m, call, "end"), self.o[m].pid)
        back = of(self.lines(m, undone, "end"), self.o[m].pid)
        if done and at(done[0]) < at(again):
            test.assertTrue(back and at(back[0]) < at(again), f"o was not whole on n{m + 1}")

    def turns_out(self, ranks):
        """How each waiting acquire ended: "granted", the name of the refusal, or "ended" with its process."""
        ends = []
        for rank in ranks:
            try:
                rank.hear_grant()
                ends.append("granted")
            except Refused as no:
                ends.append(no.name)
            except AssertionError:
                rank.process.wait(0)
                ends.append("ended")
        return ends

    @staticmethod
    def refusals(ranks):
        said = []
        for rank in ranks:
            try:
                rank.hear_grant()
            except Refused as no:
                said.append(no)
        return said

    def held(self, test):
        """Barriers, commit point, exclusion and fences, over all calls of both nodes since the switch began."""
        ranks = {rank.pid: name for name, job in (("i", self.i), ("o", self.o)) for rank in job}
        lines = sorted(line for n, node in enumerate(self.c.nodes) for line in self._lines(node)[self.marks[n]:])
        watch = Watch(ranks, self.dead, self.killed)
        for line in lines:
            if wrong := watch.see(line):
                test.fail("\n".join([f"{wrong}, at", line, "of", *lines]))


class Watch:
    """Follows each process through the calls about it. A call counts as done when it ended well; one whose caller was
    killed, as soon as somebody goes on from there."""
    AFTER = {"lock": "still", "checkpoint": "saved", "restore": "still", "unlock": "runs"}
    LINE = re.compile(r"\S+ (begin|end) (\w+) pid=(\d+) caller=(\d+)(?: code=(\d+))?$")

    def __init__(self, jobs, dead, killed):
        self.jobs, self.dead, self.killed = jobs, dead, killed
        self.stands = {pid: "runs" if job == "o" else "saved" for pid, job in jobs.items()}
        self.under_way = {}  # pid: (call, caller)
        self.inherited = {}  # pid: the call of a killed daemon before the one under way

    def see(self, line):
        """What is wrong, or nothing."""
        when, call, pid, caller, code = self.LINE.match(line).groups()
        pid, caller = int(pid), int(caller)
        if pid not in self.jobs or pid in self.dead:
            return None
        if when == "end":
            return self.ended(call, pid, int(code))
        self.inherit(pid)
        if pid in self.under_way:
            return "two calls about one process at once"
        wrong = getattr(self, call)(pid)
        self.under_way[pid] = call, caller
        return wrong

    def inherit(self, pid):
        call, caller = self.under_way.get(pid, (None, None))
        self.inherited.pop(pid, None)
        if caller in self.killed:
            del self.under_way[pid]
            self.inherited[pid] = call
            self.stands[pid] = self.AFTER[call]

    def ended(self, call, pid, code):
        self.under_way.pop(pid, None)
        if code == 0:
            self.stands[pid] = self.AFTER[call]
        # What a killed daemon had asked for ends whenever it does; its next life may have asked meanwhile.
        late = self.inherited.get(pid) == call
        return "a call in a wrong state: it was done already, or out of turn" if code == 401 and not late else None

    def others(self, pid, same_job):
        return {other: self.stands[other] for other, job in self.jobs.items()
                if other != pid and other not in self.dead and (job == self.jobs[pid]) == same_job}

    def lock(self, pid):
        return None

    def checkpoint(self, pid):
        runs = [other for other, stand in self.others(pid, True).items() if stand == "runs" and not self.left(other)]
        return f"saved before barrier 1: process {runs} of its job runs" if runs else None

    def restore(self, pid):
        return None

    def unlock(self, pid):
        away = [other for other, stand in self.others(pid, True).items() if stand == "saved" and not self.left(other)]
        if away:
            return f"let run before barrier 2: process {away} of its job is saved"
        runs = [other for other, stand in self.others(pid, False).items() if stand == "runs"]
        return f"let run while process {runs} of the other job runs" if runs else None

    def left(self, pid):
        """The call about it has nobody any more who could say that it has ended."""
        return self.under_way.get(pid, (None, None))[1] in self.killed
