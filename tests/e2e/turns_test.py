"""Jobs whose state does not fit beside each other take turns, and lose nothing."""
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import MIB, Cluster  # noqa: E402
from puppet import Refused  # noqa: E402

BIG = 48 * MIB  # two of them do not fit a card of 64 MiB


class Turns(unittest.TestCase):
    def test_P3_P7_two_jobs_larger_than_the_card_take_turns_and_keep_every_byte(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            c.queue(b)
            a.ask("yield")
            first = b.hear_grant()
            self.assertEqual(first["restored"], 0)
            b.take_memory(BIG, 2)
            for turn in range(3):
                c.queue(a)
                b.ask("yield")
                self.assertEqual(a.hear_grant()["restored"], 1)
                self.assertEqual(a.ask("check 1"), "same", f"turn {turn}")
                c.queue(b)
                a.ask("yield")
                self.assertEqual(b.hear_grant()["restored"], 1)
                self.assertEqual(b.ask("check 2"), "same", f"turn {turn}")
            b.ask("yield")

    def test_FF_I7_a_grant_says_how_long_it_was_waited_for_and_what_was_moved(self):
        """P32: the other is moved away before a job that has nothing there yet."""
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            first = a.acquire()
            self.assertEqual((first["restored"], first["moved"]), (0, 0))
            a.take_memory(BIG, 1)
            c.queue(b)
            since = time.monotonic()
            self.assertTrue(b.is_waiting())
            least = (time.monotonic() - since) * 1e6
            a.ask("yield")
            second = b.hear_grant()
            self.assertEqual((second["restored"], second["moved"]), (0, BIG))
            self.assertGreaterEqual(second["waited"], least)
            b.take_memory(BIG, 2)
            c.queue(a)
            b.ask("yield")
            third = a.hear_grant()
            self.assertEqual((third["restored"], third["moved"]), (1, 2 * BIG))
            epochs = [grant["epoch"] for grant in (first, second, third)]
            self.assertEqual(epochs, sorted(set(epochs)))

    def test_without_turns_the_second_job_does_not_fit(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            b.ask("start 0")
            with self.assertRaisesRegex(Refused, "CUDA 2: cuMemAlloc"):
                b.ask(f"alloc {BIG}")

    def test_a_waiter_is_not_granted_before_the_yield(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            mine = a.acquire()
            c.queue(b)
            self.assertEqual(a.ask("state"), f"active=1 entered=1 epoch={mine['epoch']}")
            self.assertTrue(b.is_waiting())
            a.ask("yield")
            self.assertGreater(b.hear_grant()["epoch"], mine["epoch"])

    def test_P22_parking_moves_nothing(self):
        with Cluster() as c:
            a = c.job(job="a")
            c.job(job="b")  # is there, and asks for nothing
            a.acquire()
            a.take_memory(BIG, 1)
            for _ in range(3):
                a.ask("yield")
                self.assertEqual(a.acquire()["restored"], 0)
            self.assertEqual(c.nodes[0].trace("lock", "checkpoint", "restore", "unlock"), [])
            self.assertEqual(a.ask("check 1"), "same")

    def test_a_yielded_job_that_nobody_follows_may_still_be_computing_on_its_card(self):
        with Cluster() as c:
            a = c.job(job="a")
            a.acquire()
            a.take_memory(BIG, 1)
            a.ask("yield")
            self.assertEqual(a.ask("check 1"), "same")

    def test_trying_answers_at_once_that_another_holds(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            with self.assertRaises(Refused) as no:
                b.ask("try")
            self.assertEqual(no.exception.name, "BUSY")

    def test_FF_D1_a_deadline_ends_a_wait_and_leaves_no_place_in_the_queue(self):
        """P49: the queue is empty afterwards."""
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            with self.assertRaises(Refused) as no:
                b.acquire(deadline_ms=50)
            self.assertEqual(no.exception.name, "TIMED_OUT")
            a.ask("yield")
            self.assertEqual(a.acquire()["restored"], 0)

    def test_FF_D12_the_order_of_asking_is_the_order_of_turns(self):
        """P41: each waiter once, first come first served."""
        with Cluster() as c:
            jobs = [c.job(job=name) for name in "abcd"]
            jobs[0].acquire()
            for job in jobs[1:]:
                c.queue(job)
            for before, job in zip(jobs, jobs[1:]):
                before.ask("yield")
                job.hear_grant()
            self.assertTrue(all(job.is_waiting() for job in jobs))


def times(cluster, call, when):
    """When the nodes' drivers began or ended a call, by the clock that they share."""
    return [float(line.split()[0]) for node in cluster.nodes for line in node.trace(call, when=when)]


class TwoNodes(unittest.TestCase):
    def gang(self, c, job):
        """One process of the job on each node; they are granted together or not at all."""
        return [c.job(node=n, job=job, gang=2) for n in (0, 1)]

    def turn(self, c, ranks):
        for rank in ranks:
            c.queue(rank)

    def test_gangs_over_two_nodes_take_turns_and_keep_every_byte(self):
        with Cluster(nodes=2) as c:
            a, b = self.gang(c, "a"), self.gang(c, "b")
            self.turn(c, a)
            grants = [rank.hear_grant() for rank in a]
            self.assertEqual(grants[0]["epoch"], grants[1]["epoch"])
            for seed, rank in enumerate(a):
                rank.take_memory(BIG, 10 + seed)
            self.turn(c, b)
            for rank in a:
                rank.ask("yield")
            for seed, rank in enumerate(b):
                rank.hear_grant()
                rank.take_memory(BIG, 20 + seed)
            self.turn(c, a)
            for rank in b:
                rank.ask("yield")
            for seed, rank in enumerate(a):
                self.assertEqual(rank.hear_grant()["restored"], 1)
                self.assertEqual(rank.ask(f"check {10 + seed}"), "same")

    def test_the_slice_ends_when_all_ranks_have_yielded(self):
        with Cluster(nodes=2) as c:
            a, b = self.gang(c, "a"), self.gang(c, "b")
            self.turn(c, a)
            for rank in a:
                rank.hear_grant()
            self.turn(c, b)
            a[0].ask("yield")
            self.assertTrue(all(rank.is_waiting() for rank in b))
            a[1].ask("yield")
            for rank in b:
                rank.hear_grant()

    def test_FF_A2_no_rank_is_saved_before_every_rank_is_locked(self):
        with Cluster(nodes=2) as c:
            a, b = self.gang(c, "a"), self.gang(c, "b")
            self.turn(c, a)
            for rank in a:
                rank.hear_grant()
                rank.take_memory(BIG, 1)
            c.nodes[1].set_card(lock="50 ms")
            self.turn(c, b)
            for rank in a:
                rank.ask("yield")
            for rank in b:
                rank.hear_grant()
            locked = times(c, "lock", "end")
            saving = times(c, "checkpoint", "begin")
            self.assertEqual((len(locked), len(saving)), (2, 2))
            self.assertLess(max(locked), min(saving))


if __name__ == "__main__":
    report.main()
