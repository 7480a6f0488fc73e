"""Who gets the turn, and that a call which ends on the way leaves nothing behind."""
import pathlib
import random
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import MIB, Cluster  # noqa: E402
from puppet import Refused  # noqa: E402

BIG = 48 * MIB  # two of them do not fit a card of 64 MiB


class CallsThatEnd(unittest.TestCase):
    def test_FF_D1_an_acquire_that_times_out_anywhere_in_a_switch_is_granted_or_leaves_nothing(self):
        seed = random.randrange(1 << 30)
        deadlines = random.Random(seed)
        with self.subTest(seed=seed), Cluster() as c:
            holder, other = c.job(job="a"), c.job(job="b")
            for seed, job in enumerate((holder, other)):
                job.acquire()
                job.take_memory(BIG, seed)
                job.ask("yield")
            seeds = {holder: 0, other: 1}
            began = time.monotonic()
            holder.acquire()
            whole_switch = max(1, int(1000 * (time.monotonic() - began)))
            for _ in range(60):
                other.say(f"acquire {deadlines.randint(1, 2 * whole_switch)}")
                holder.ask("yield")
                try:
                    other.hear_grant()
                    holder, other = other, holder
                except Refused as no:
                    self.assertEqual(no.name, "TIMED_OUT")
                    holder.acquire()
                self.assertEqual(holder.ask(f"check {seeds[holder]}"), "same")
            holder.ask("yield")
            other.acquire()
            self.assertEqual(other.ask(f"check {seeds[other]}"), "same")

    def test_FF_D1_a_waiter_killed_anywhere_in_a_switch_leaves_nothing(self):
        with Cluster() as c:
            a = c.job(job="a")
            a.acquire()
            a.take_memory(BIG, 1)
            for i in range(12):
                b = c.job(job=f"b{i}")
                c.queue(b)
                mark = c.master.mark()
                a.ask("yield")
                event = ("yield", "prepare", "quiesce", "save", "grant")[i % 5]
                c.master.wait_for(rf"\b{event}\b", mark)
                b.kill()
                a.acquire()
                self.assertEqual(a.ask("check 1"), "same", event)


class ColdStart(unittest.TestCase):
    def test_FF_D2_P6_jobs_whose_processes_run_before_their_first_acquire_take_turns(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            for job in (a, b):
                job.ask("start 0")
            self.assertEqual(a.acquire()["restored"], 0)
            c.queue(b)
            self.assertTrue(b.is_waiting())
            a.ask("yield")
            b.hear_grant()

    def test_FF_D2_a_holder_without_any_device_state_is_followed_after_its_yield(self):
        """P31, P33: a job of which nothing lies on the devices is loaded at once."""
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            self.assertEqual(a.acquire()["restored"], 0)
            c.queue(b)
            a.ask("yield")
            self.assertEqual(b.hear_grant()["restored"], 0)

    def test_FF_D3_a_holder_that_does_not_use_its_card_yet_keeps_it(self):
        with Cluster(master={"heartbeat": "20 ms"}) as c:
            a, b = c.job(job="a"), c.job(job="b")
            b.acquire()
            b.take_memory(BIG, 2)
            b.ask("yield")
            a.acquire()  # the card is empty, and it is granted
            c.queue(b)
            mark = c.master.mark()
            c.status()
            self.assertTrue(b.is_waiting())
            a.take_memory(BIG, 1)
            c.status()
            self.assertTrue(b.is_waiting())
            self.assertFalse(c.master.said(r"\bgrant\b.*job=g/b", mark))
            a.ask("yield")
            self.assertEqual(b.hear_grant()["restored"], 1)
            self.assertEqual(b.ask("check 2"), "same")

    def test_P5_a_parked_job_whose_process_exits_has_nothing_to_save(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            a.ask("yield")
            a.kill()
            self.assertEqual(b.acquire()["restored"], 0)
            b.take_memory(BIG, 2)
            self.assertEqual(c.nodes[0].trace("checkpoint", when="begin"), [])


class Fairness(unittest.TestCase):
    def test_FF_D12_a_job_that_asks_again_after_each_yield_goes_behind_the_others(self):
        """P21: who yields and asks again is behind whom it has kept waiting."""
        with Cluster() as c:
            a, *others = (c.job(job=name) for name in "abcd")
            a.acquire()
            for job in others:
                c.queue(job)
            waiting = others + [a]
            holder = a
            for _ in range(8):
                holder.ask("yield")
                if holder is not waiting[-1]:
                    waiting.append(holder)
                c.queue(waiting[-1])
                holder = waiting.pop(0)
                holder.hear_grant()
                self.assertTrue(all(job.is_waiting() for job in waiting))

    def test_FF_D12_status_shows_the_place_of_each_waiter_and_how_long_it_takes_already(self):
        with Cluster() as c:
            a, *others = (c.job(job=name) for name in "abc")
            a.acquire()
            for job in others:
                c.queue(job)
            jobs = {job["name"]: job for job in c.status()["jobs"]}
            self.assertEqual([jobs[name]["place"] for name in "abc"], [0, 1, 2])
            self.assertTrue(all(jobs[name]["since_s"] > 0 for name in "abc"), jobs)

    def test_FF_D13_groups_on_cards_of_their_own_switch_at_the_same_time(self):
        with Cluster(cards=("--bytes", "64MiB", "--cards", "2")) as c:
            pairs = [[c.job(job=name, group=group, devices=device) for name in "ab"]
                     for device, group in enumerate(("first", "second"))]
            for device, (a, _) in enumerate(pairs):
                a.acquire()
                a.ask(f"start {device}")
                a.ask(f"alloc {BIG}")
            c.nodes[0].set_card(hang__checkpoint="yes")  # of the first card
            (a, b), (d, e) = pairs
            c.queue(b)
            a.ask("yield")
            c.queue(e)
            d.ask("yield")
            e.hear_grant()  # while the first pair is in the middle of its switch
            self.assertTrue(b.is_waiting())
            c.nodes[0].set_card(hang__checkpoint="no")
            b.hear_grant()


if __name__ == "__main__":
    report.main()
