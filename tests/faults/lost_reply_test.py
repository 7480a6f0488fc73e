"""The wire between master and node breaks after the work and before the answer: nothing is done twice."""
import contextlib
import pathlib
import signal
import sys
import unittest

for folder in ("support", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import report  # noqa: E402
from cluster import Cluster  # noqa: E402
from proxy import Proxy  # noqa: E402
from stage import BIG, of, pass_turn, saved_beside, turn  # noqa: E402


@contextlib.contextmanager
def cluster_behind_a_proxy():
    with Cluster(nodes=0) as c:
        proxy = Proxy(c.address)
        try:
            c.add_node("n1", master=proxy.address).start_connected()
            yield c, proxy
        finally:
            proxy.close()


class LostReply(unittest.TestCase):
    def lose_the_answer(self, c, proxy, order, call, job):
        """While `call` on the job hangs, the node's answers are held; it ends, and they are lost."""
        node = c.nodes[0].daemon
        node.wait_for(rf"^{order} job=g/{job.name}\b", job.mark)
        proxy.hold_answers()
        turn(c.nodes[0], "", f"hang.{call}", job)
        node.wait_for(rf"\border-ended\b.*order={order} job=g/{job.name}\b", job.mark)
        mark = node.mark()
        proxy.cut()
        node.wait_for(r"\bmaster-up\b", mark)

    def once(self, c, call, job):
        return [line.split("code=")[1] for line in of(c.nodes[0].trace(call), job.pid)]

    def watch(self, c, job, name):
        job.name, job.mark = name, c.nodes[0].daemon.mark()
        return job

    def test_FF_A20_a_save_or_a_quiesce_whose_answer_is_lost_is_done_once(self):
        for order, call in (("quiesce", "lock"), ("save", "checkpoint")):
            with self.subTest(order), cluster_behind_a_proxy() as (c, proxy):
                a, b = c.job(job="a"), c.job(job="b")
                a.acquire()
                a.take_memory(BIG, 1)
                c.queue(b)
                self.watch(c, a, "a")
                turn(c.nodes[0], "yes", f"hang.{call}", a)
                a.ask("yield")
                self.lose_the_answer(c, proxy, order, call, a)
                b.hear_grant()
                self.assertEqual(self.once(c, call, a), ["0"])
                b.take_memory(BIG, 2)
                pass_turn(c, [b], a)
                self.assertEqual(a.ask("check 1"), "same")

    def test_FF_A20_a_restore_or_a_grant_whose_answer_is_lost_is_done_once(self):
        for order, call in (("restore", "restore"), ("grant", "unlock")):
            with self.subTest(order), cluster_behind_a_proxy() as (c, proxy):
                a, b = saved_beside(c)
                c.queue(a)
                self.watch(c, a, "a")
                turn(c.nodes[0], "yes", f"hang.{call}", a)
                b.ask("yield")
                self.lose_the_answer(c, proxy, order, call, a)
                grant = a.hear_grant()
                self.assertEqual(self.once(c, call, a), ["0"])
                self.assertEqual(a.ask("check 1"), "same")
                self.assertIn(f"entered=1 epoch={grant['epoch']}", a.ask("state"))
                pass_turn(c, [a], b)  # the master knows who holds

    def test_FF_A20_an_acquire_or_a_yield_that_was_not_heard_is_told_again_and_counts_once(self):
        with cluster_behind_a_proxy() as (c, proxy):
            a, b = c.job(job="a"), c.job(job="b")
            node = c.nodes[0].daemon
            for ask, job, said in (("acquire 0", a, None), ("yield", a, r"\byield job=g/a\b")):
                mark = node.mark()
                proxy.hold_answers()
                job.say(ask)
                if said:
                    node.wait_for(said, mark)
                proxy.cut()
                node.wait_for(r"\bmaster-up\b", mark)
                job.hear()
            b.acquire()
            self.assertEqual(len(c.master.said(r"^slice-ended\b.*job=a\b")), 1)
            self.assertEqual(len(c.master.said(r"^grant\b.*job=a\b")), 1)

    def test_FF_D17_jobs_see_nothing_of_wires_that_are_cut_held_and_lost_again_and_again(self):
        with cluster_behind_a_proxy() as (c, proxy):
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            pass_turn(c, [a], b)
            b.take_memory(BIG, 2)
            strikes = (proxy.hold_answers, proxy.hold, proxy.cut, lambda: a.process.send_signal(signal.SIGUSR2))
            holder, other = b, a
            for strike in strikes * 3:
                node = c.nodes[0].daemon
                mark = node.mark()
                other.say("acquire 0")
                strike()
                holder.ask("yield")
                proxy.cut()  # what was held is lost
                node.wait_for(r"\bmaster-up\b", mark)
                other.hear_grant()
                holder, other = other, holder
            self.assertEqual(b.ask("check 2"), "same")
            pass_turn(c, [b], a)
            self.assertEqual(a.ask("check 1"), "same")


if __name__ == "__main__":
    report.main()
