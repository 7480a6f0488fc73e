"""The table of failures in docs/design.md: each row strikes in each phase of a switch, on each node of a two-node job.

A row is a function below: what strikes, and what the table says must come of it. Its tests are made from it, one for each
driver call that it can strike and each node; their names are sentences that begin with the ids of the faults."""
import concurrent.futures
import pathlib
import sys
import unittest

for folder in ("support", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import report  # noqa: E402
from cluster import MIB  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from stage import acquire_all, of, turn, until  # noqa: E402
from switch import CALLS, IN, MUCH, NODES, ORDER, OUT, Switch  # noqa: E402

AT_ONCE = 6  # cases wait for daemons more than for a processor
PHASE = {"lock": "in the quiesce", "checkpoint": "in the save", "restore": "in the restore", "unlock": "in the grant"}
FAILED = r"^failed\b(?!.*cause=stale)|\bjob-faulted\b"  # stale: what was dropped on purpose had begun
ROWS = []


def row(ids, sentence, calls=CALLS):
    """The function that follows is a row of the table: body(test, call, node)."""
    def add(body):
        ROWS.append((ids, sentence, calls, body))
        return body
    return add


def other(n):
    return 1 - n


# --- a driver call fails

@row("FF_A2_P102_P103", "a call that fails once is undone everywhere and tried again", OUT + ("restore",))
def fails_once(test, call, n):
    with Switch() as s:
        turn(s.c.nodes[n], "719 on 1", f"fail.{call}", s.struck(call, n))
        s.begin()
        s.goes_on(test)
        codes = [line.split("code=")[1] for line in s.calls(call, n)]
        test.assertEqual(codes[:2], ["719", "0"])
        test.assertEqual(s.c.master.said(r"\bjob-faulted\b", s.said), [])
        if call in OUT:
            s.whole_again(test, call, n, s.calls(call, n, "begin")[1])


@row("FF_A2_FF_D6_P58", "a job that cannot leave is whole and its fault is named and can be cleared", OUT)
def cannot_leave(test, call, n):
    with Switch() as s:
        turn(s.c.nodes[n], "719", f"fail.{call}", s.o[n])
        s.begin()
        test.assertEqual(s.turns_out(s.i), ["FAULTED"] * 2)
        until(lambda: s.job("o")["fault"] == ORDER[call], "the fault is told")
        test.assertIn(str(s.o[n].pid), s.job("o")["detail"])
        turn(s.c.nodes[n], "", f"fail.{call}", s.o[n])
        until(lambda: s.states(s.o) == ["running"] * 2, "o is whole")
        test.assertEqual(s.c.tsctl("clear-fault", "g/o").returncode, 0)
        s.ask(s.i)
        s.goes_on(test)


@row("FF_A24_FF_D6", "a process that the driver has given up ends its job and the group goes on")
def given_up(test, call, n):
    with Switch() as s:
        s.reach(call, n)
        turn(s.c.nodes[n], "3", "state", s.struck(call, n))
        s.let_go()
        ending, staying = (s.o, s.i) if call in OUT else (s.i, s.o)
        s.c.master.wait_for(rf"\bjob-faulted\b.*job={'o' if call in OUT else 'i'}\b", s.said)
        s.gone(ending)
        if call in IN:
            s.ask(staying)
        for rank in staying:
            rank.hear_grant()
        s.same(test, staying, 1 if call in OUT else 3)
        s.held(test)


@row("FF_A1_FF_D6", "a job that cannot come back is ended and the group goes on", ("restore",))
def cannot_come_back(test, call, n):
    with Switch() as s:
        turn(s.c.nodes[n], "2", "fail.restore", s.i[n])
        turn(s.c.nodes[n], "yes", "sticky_restore_oom", s.i[n])
        s.begin()
        test.assertLessEqual(set(s.turns_out(s.i)), {"FAULTED", "ended"})
        s.c.master.wait_for(r"\bjob-faulted\b.*job=i\b.*fault=restore", s.said)
        s.gone(s.i)
        s.comes_back(test)
        test.assertEqual([of(s.lines(m, "unlock", "begin"), s.i[m].pid) for m in NODES], [[], []])


@row("FF_D6", "a grant that one node cannot complete holds there until it is ended", ("unlock",))
def cannot_unlock(test, call, n):
    with Switch() as s:
        turn(s.c.nodes[n], "719", "fail.unlock", s.i[n])
        s.begin()
        ends = s.turns_out(s.i)
        test.assertEqual((ends[n], ends[other(n)]), ("FAULTED", "granted"))
        until(lambda: s.job("i")["fault"] == "grant", "the fault is told")
        s.ask(s.o)
        test.assertTrue(all(rank.is_waiting() for rank in s.o))
        test.assertEqual(s.c.tsctl("evict", "--kill", "g/i").returncode, 0)
        s.gone(s.i)
        for rank in s.o:
            rank.hear_grant()
        s.same(test, s.o, 3)
        s.held(test)


# --- a driver call hangs

@row("FF_A3_FF_A4_P34_P106", "a call past its deadline is shown and ends in the background and delays no other group")
def hangs(test, call, n):
    with Switch(group={"quiesce_deadline": "300 ms"}, node={"save_deadline": "300 ms", "restore_deadline": "300 ms"},
                cards=2) as s:
        mark = s.c.nodes[n].daemon.mark()
        s.reach(call, n)
        s.c.nodes[n].daemon.wait_for(rf"\boverdue\b.*order={ORDER[call]}\b.*{s.struck(call, n).pid}", mark)
        d = s.c.job(node=n, group="h", job="d", devices="1")
        d.acquire(deadline_ms=PATIENCE * 1000)
        if call == "checkpoint":  # nobody comes in while somebody is on the way out
            test.assertEqual(of(s.lines(n, "restore", "begin"), s.i[n].pid), [])
        until(lambda: any(late["pids"] == [s.struck(call, n).pid] for late in s.c.status()["nodes"][n]["late"]),
              "the call is shown")
        s.let_go()
        s.goes_on(test)


# --- processes end

@row("FF_A6", "a rank that dies in its call has died and nothing has failed")
def rank_dies(test, call, n):
    with Switch() as s:
        s.dead.add(s.struck(call, n).pid)
        turn(s.c.nodes[n], "before", f"crash.{call}", s.struck(call, n))
        s.begin()
        s.c.master.wait_for(rf"\bjob-broken\b.*job={'o' if call in OUT else 'i'}\b", s.said)
        if call in OUT:
            for rank in s.i:
                rank.hear_grant()
            s.same(test, s.i, 1)
        else:
            s.ask(s.o)  # it is ended because others wait
            s.gone(s.i)
            for rank in s.o:
                rank.hear_grant()
            s.same(test, s.o, 3)
        test.assertEqual(s.c.master.said(FAILED, s.said), [])
        s.held(test)


@row("FF_A6_FF_D6_P5", "a job that ends in mid switch ends well and nobody else sees it")
def job_ends(test, call, n):
    with Switch() as s:
        s.reach(call, n)
        ending, staying = (s.o, s.i) if call in OUT else (s.i, s.o)
        s.end(*ending)
        s.let_go_if(call in OUT)
        if call in OUT:
            for rank in staying:
                rank.hear_grant()
            s.same(test, s.i, 1)
        else:
            s.comes_back(test)
        # Its ranks do not die in one instant: of one there may be memory when the other's end is worked on.
        waits = [f"held by pid {pid} " for pid in s.dead]
        failed = [line for line in s.c.master.said(FAILED, s.said) if not any(what in line for what in waits)]
        test.assertEqual(failed, [])
        s.held(test)


# --- callers end

@row("FF_D1_P100", "a turn that nobody waits for any more is given back")
def gives_up(test, call, n):
    with Switch() as s:
        s.reach(call, n)
        s.give_up(s.i)
        if call != "unlock":
            test.assertEqual(s.turns_out(s.i), ["CANCELLED"] * 2)
        s.let_go()
        if call == "unlock":  # granted on the other node already: it is one turn, and a yield ends it
            for rank, end in zip(s.i, s.turns_out(s.i)):
                if end == "granted":
                    rank.ask("yield")
        if call == "lock":
            until(lambda: s.states(s.o) == ["running"] * 2, "o is whole")
            test.assertEqual([s.lines(m, "checkpoint", "begin") for m in NODES], [[], []])
        elif call != "unlock":
            until(lambda: s.states(s.i) == ["running"] * 2, "the switch is completed, i is parked")
            test.assertFalse(s.c.master.said(r"^grant\b.*job=g?/?i\b", s.said))
        s.ask(s.o)
        for rank in s.o:
            rank.hear_grant()
        s.same(test, s.o, 3)
        s.held(test)


@row("FF_D4_P101", "a waiter that loses its connection keeps its turn")
def hangs_up(test, call, n):
    with Switch() as s:
        s.reach(call, n)
        mark = s.c.nodes[n].daemon.mark()
        s.hang_up(s.i[n])
        s.c.nodes[n].daemon.wait_for(rf"\brejoin\b.*pid={s.i[n].pid}\b", mark)
        s.let_go()
        s.goes_on(test)
        test.assertEqual(s.c.master.said(r"\bjob-broken\b", s.said), [])


# --- room

@row("FF_A1", "without room on one node nothing is begun and nothing changes", ("lock",))
def no_room(test, call, n):
    with Switch() as s:
        turn(s.c.nodes[n], "0", "listed", s.o[n])  # what it would free is not seen
        stranger = s.c.process(node=n)
        stranger.ask("start 0")
        stranger.ask(f"alloc {MIB}")
        s.begin()
        s.c.master.wait_for(r"waiter-held-back .*cause=no-device-memory", s.said)
        test.assertEqual([s.lines(m, each, "begin") for m in NODES for each in CALLS], [[]] * 8)
        test.assertEqual(s.states(s.o), ["running"] * 2)
        stranger.end()
        turn(s.c.nodes[n], "", "listed", s.o[n])
        s.goes_on(test)


@row("FF_A1_FF_C2", "a job that finds no room when it comes back stays saved and is refused with who is in its way", ("restore",))
def room_is_taken(test, call, n):
    with Switch() as s:
        s.reach(call, n)
        stranger = s.c.process(node=n)
        stranger.ask("start 0")
        stranger.ask(f"alloc {4 * MIB}")
        s.let_go()
        s.c.master.wait_for(r"\brefuse\b.*job=i\b.*cause=no-device-memory", s.said)
        said = s.refusals(s.i)
        test.assertEqual({no.name for no in said}, {"NO_DEVICE_MEMORY"})
        for word in (str(MUCH), str(4 * MIB), str(stranger.pid)):  # need, free, holder
            test.assertIn(word, str(said[n]))
        test.assertEqual([of(s.lines(m, "unlock", "begin"), s.i[m].pid) for m in NODES], [[], []])
        stranger.end()
        s.ask(s.i)
        s.goes_on(test)


@row("FF_A11_FF_D3", "a process that comes to a device in mid switch is reported or moved with its job", CALLS)
def outside(test, call, n):
    with Switch(master={"heartbeat": "50 ms"}) as s:
        s.reach(call, n)
        late = int(s.o[n].ask(f"child {MIB}"))
        s.let_go()
        reported = rf"\boutside\b.*job=o\b.*\b{late}\b"
        until(lambda: s.c.master.said(reported, s.said) or of(s.lines(n, "checkpoint", "end"), late), "it is seen")
        s.goes_on(test)


# --- daemons and wires

@row("FF_D5_FF_A3_P104", "a node daemon that is killed goes on from what it reads")
def node_killed(test, call, n):
    with Switch() as s:
        s.reach(call, n)
        s.kill_node(n)
        s.let_go()
        s.room_is_seen(call, n)
        s.c.nodes[n].start_connected()
        s.goes_on(test)


@row("FF_D5_FF_A20_P105", "a master that is killed goes on from what it is told")
def master_killed(test, call, n):
    with Switch() as s:
        s.reach(call, n)
        s.c.master.kill()
        s.let_go()
        s.c.start_master()
        s.goes_on(test)


@row("FF_D5_FF_A3", "a node daemon and the master that are killed together go on")
def both_killed(test, call, n):
    # Whether a rank that waits had its slice already nobody knows any more: it is let in when the slice stands still.
    with Switch(group={"gang_wait": "300 ms"}) as s:
        s.reach(call, n)
        s.kill_node(n)
        s.c.master.kill()
        s.let_go()
        s.room_is_seen(call, n)
        s.c.start_master()
        s.c.nodes[n].start_connected()
        s.goes_on(test)


@row("FF_A20_FF_D17", "a wire that is cut is taken up again and nothing is done twice")
def wire_cut(test, call, n):
    with Switch(wires=True) as s:
        s.reach(call, n)
        s.wires[n].hold_answers()
        s.let_go()
        until(lambda: s.calls(call, n), "the call has ended")
        mark = s.c.nodes[n].daemon.mark()
        s.wires[n].cut()
        s.c.nodes[n].daemon.wait_for(r"\bmaster-up\b", mark)
        s.goes_on(test)


@row("FF_E6_B1", "a node that is silent is suspect and nothing is granted there and nothing is lost")
def node_silent(test, call, n):
    with Switch(wires=True, master={"heartbeat": "100 ms", "suspect_after": "1 s"}) as s:
        s.reach(call, n)
        s.wires[n].hold()
        s.let_go()
        s.c.master.wait_for(rf"\bsuspect\b.*node=n{n + 1}\b", s.said)
        test.assertTrue(s.i[n].is_waiting() or call == "unlock")
        test.assertEqual(s.c.status()["nodes"][n]["state"], "suspect")
        s.wires[n].cut()
        s.goes_on(test)


@row("FF_E6_FF_D6", "a node that is given up is clear when it returns and others have its devices")
def node_dead(test, call, n):
    with Switch(wires=True, master={"heartbeat": "100 ms", "suspect_after": "1 s"}) as s:
        s.reach(call, n)
        s.wires[n].hold()
        s.let_go()
        s.c.master.wait_for(rf"\bsuspect\b.*node=n{n + 1}\b", s.said)
        test.assertEqual(s.c.tsctl("declare-dead", f"n{n + 1}").returncode, 0)
        for name in "io":
            s.c.master.wait_for(rf"\bjob-broken\b.*job={name}\b", s.said)
        s.dead.update((s.i[n].pid, s.o[n].pid))  # from here on they are jobs of one rank
        s.wires[n].cut()
        x = [s.c.job(node=m, job="x", gang=2) for m in NODES]
        acquire_all(s.c, x)
        s.fill(x, 5)
        s.same(test, x, 5)
        for ranks in (s.i, s.o):
            test.assertNotIn(s.states([*ranks])[n], ("running", "locked"))
        s.held(test)


# --- the tests

class Table(unittest.TestCase):
    """Its cases run some at a time: each asks for the end of its own."""
    running = {}


def sentences():
    """(name, body, call, node) of each case; tools/list-faults reads the names."""
    for ids, sentence, calls, body in ROWS:
        for call in calls:
            for n in NODES:
                where = f"{PHASE[call]} on the {('first', 'second')[n]} node"
                yield f"test_{ids}_{sentence} {where}".replace(" ", "_"), body, call, n


def case(name, body, call, n):
    def test(self):
        self.running[name].result()
    test.start = lambda pool: pool.submit(body, unittest.TestCase(), call, n)
    return test


for each in sentences():
    setattr(Table, each[0], case(*each))


def load_tests(_loader, chosen, _pattern):
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
    cases = [test for suite in chosen for test in suite]

    class Suite(unittest.TestSuite):
        def run(self, result, debug=False):
            for test in cases:
                name = test.id().rsplit(".")[-1]
                Table.running[name] = getattr(Table, name).start(pool)
            try:
                return super().run(result, debug)
            finally:
                pool.shutdown(cancel_futures=True)
    return Suite(cases)


if __name__ == "__main__":
    report.main()
