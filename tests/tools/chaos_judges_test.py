#!/usr/bin/env python3
"""The judges of tools/bench chaos: a planted violation is found, and a seed is a schedule.

usage: chaos_judges_test.py SOURCE_ROOT
"""
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
for folder in ("tests/support", "tests/e2e", "tests/faults", "tools/bench_chaos"):
    sys.path.insert(0, str(SOURCE / folder))
import report  # noqa: E402
from figures import Figures  # noqa: E402
from observer import LOST_ANSWER, Observer  # noqa: E402
from plan import KINDS, schedule  # noqa: E402
from shapes import CARD, SHAPES  # noqa: E402

A, B = 11, 12


class Trace:
    """Two jobs on one card, and the lines that their processes write."""

    def __init__(self):
        self.living = {A, B}
        self.observer = Observer(lambda pid: pid in self.living)
        self.observer.watch(A, "a", 0, [0])
        self.observer.watch(B, "b", 0, [0])
        self.at = 1.0

    def say(self, when, call, pid, code=None):
        self.at += 0.001
        end = "" if code is None else f" code={code}"
        self.observer.feed(0, f"{self.at:.9f} {when} {call} pid={pid} caller={pid}{end}")

    def call(self, call, pid, code=0):
        self.say("begin", call, pid)
        self.say("end", call, pid, code)

    def moves_out(self, pid):
        self.call("lock", pid)
        self.call("checkpoint", pid)

    def moves_in(self, pid):
        self.call("restore", pid)
        self.call("unlock", pid)

    def works(self, pid):
        self.call("cuMemcpyHtoD", pid)

    def takes_memory(self, pid):
        self.call("cuMemAlloc", pid)

    def violations(self):
        return [(v["job"], v["beside"]) for v in self.observer.violations]


class TheObserver(unittest.TestCase):
    def setUp(self):
        self.trace = Trace()
        self.trace.takes_memory(A)

    def test_turns_with_whole_switches_are_none(self):
        t = self.trace
        t.works(A)
        t.moves_out(A)
        t.takes_memory(B)
        for out, back in ((B, A), (A, B)):
            t.moves_out(out)
            t.moves_in(back)
            t.works(back)
        self.assertEqual(t.violations(), [])
        self.assertEqual(t.observer.unsure, 0)

    def test_work_beside_a_process_that_runs_is_found_with_both_names(self):
        self.trace.works(B)
        self.assertEqual(self.trace.violations(), [("b", "a")])

    def test_work_beside_one_that_was_let_go_too_early_is_found(self):
        t = self.trace
        t.moves_out(A)
        t.takes_memory(B)
        t.moves_in(A)
        t.works(B)
        self.assertEqual(t.violations(), [("b", "a")])

    def test_a_lock_that_failed_has_stopped_nobody(self):
        t = self.trace
        t.call("lock", A, code=600)
        t.works(B)
        self.assertEqual(t.violations(), [("b", "a")])

    def test_a_lock_whose_answer_was_lost_has_stopped_it(self):
        t = self.trace
        t.call("lock", A, code=LOST_ANSWER)
        t.works(B)
        self.assertEqual(t.violations(), [])

    def test_the_dead_are_in_nobodys_way(self):
        t = self.trace
        t.living.remove(A)
        t.works(B)
        self.assertEqual(t.violations(), [])

    def test_a_call_without_an_end_is_counted_as_unsure(self):
        t = self.trace
        t.say("begin", "lock", A)
        t.works(B)
        self.assertEqual((t.violations(), t.observer.unsure), ([], 1))

    def test_another_card_and_another_node_are_not_shared(self):
        t = self.trace
        t.observer.watch(13, "c", 0, [1])
        t.observer.watch(14, "d", 1, [0])
        t.works(13)
        t.observer.feed(1, f"{t.at:.9f} begin cuMemAlloc pid=14 caller=14")
        self.assertEqual(t.violations(), [])

    def test_a_trace_that_grows_is_followed(self):
        t = self.trace
        with tempfile.NamedTemporaryFile("w") as file:
            t.observer.follow(0, file.name)
            file.write("2.0 begin cuMemcpyHtoD pid=12 ")
            file.flush()
            file.write("caller=12\n")
            file.flush()
            self.assertTrue(t.observer.wait_for(t.violations, 60))

    def test_a_switch_runs_from_its_first_call_to_the_next_work(self):
        t = self.trace
        here = {(0, 0)}
        self.assertFalse(t.observer.is_switching(here))
        t.say("begin", "lock", A)
        self.assertTrue(t.observer.is_switching(here))
        t.say("end", "lock", A, 0)
        t.call("checkpoint", A)
        self.assertTrue(t.observer.is_switching(here))
        t.takes_memory(B)
        self.assertFalse(t.observer.is_switching(here))


class ThePlan(unittest.TestCase):
    def test_a_seed_reproduces_its_schedule(self):
        self.assertEqual(schedule(7, 2), schedule(7, 2))
        self.assertNotEqual(schedule(7, 2), schedule(8, 2))

    def test_two_minutes_have_each_kind_often_enough(self):
        kinds = [strike.kind for strike in schedule(7, 2)]
        self.assertGreaterEqual(len(kinds), 200)
        self.assertGreaterEqual(len(set(kinds)), 12)
        self.assertGreaterEqual(min(kinds.count(kind) for kind in KINDS), 10)

    def test_no_two_jobs_that_share_a_card_fit_it_and_groups_share_none(self):
        for one in SHAPES:
            for other in SHAPES:
                if one is not other and one.claim & other.claim:
                    self.assertEqual(one.group, other.group)
                    self.assertGreater(one.bytes + other.bytes, CARD)


class TheFigures(unittest.TestCase):
    def test_a_recovery_ends_with_the_next_grant_of_a_job_that_was_touched(self):
        figures = Figures(KINDS)
        recovery = figures.recovery({"g1", "g2"})
        figures.granted("h1")
        self.assertIsNone(recovery.took)
        figures.granted("g2")
        first = recovery.took
        figures.granted("g1")
        self.assertEqual(recovery.took, first)


if __name__ == "__main__":
    report.main()
