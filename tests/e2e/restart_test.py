"""Deaths and restarts: a slice outlives every daemon, and a dead holder is followed by the next."""
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import MIB, Cluster, Programs  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from puppet import Refused  # noqa: E402

BIG = 48 * MIB


class Deaths(unittest.TestCase):
    def test_FF_D9_P101_a_killed_holder_is_followed_by_the_next_on_an_empty_card(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            c.queue(b)
            a.kill()
            self.assertEqual(b.hear_grant()["restored"], 0)
            b.take_memory(BIG, 2)

    def test_FF_D6_a_killed_job_that_was_saved_takes_nothing_with_it(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            c.queue(b)
            a.ask("yield")
            b.hear_grant()
            b.take_memory(BIG, 2)
            a.kill()
            b.ask("yield")
            self.assertEqual(b.acquire()["restored"], 0)
            self.assertEqual(b.ask("check 2"), "same")

    def test_FF_D6_P100_a_waiter_that_dies_is_passed_over(self):
        with Cluster() as c:
            a, b, d = (c.job(job=name) for name in "abd")
            a.acquire()
            c.queue(b)
            c.queue(d)
            mark = c.master.mark()
            b.kill()
            c.master.wait_for(r"\bleft\b.*died=yes|\bended\b", mark)
            a.ask("yield")
            d.hear_grant()

    def test_a_job_that_ends_in_order_leaves_its_place(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            c.queue(b)
            self.assertEqual(a.end(), 0)
            b.hear_grant()


class MasterRestart(unittest.TestCase):
    def restart(self, c, kill=True):
        marks = [n.daemon.mark() for n in c.nodes]
        c.master.kill() if kill else self.assertEqual(c.master.stop(), 0)
        c.start_master()
        for node, mark in zip(c.nodes, marks):
            node.daemon.wait_for(r"\bmaster-up\b", mark)

    def test_a_join_waits_for_the_master_that_restarts(self):
        with Cluster() as c:
            node = c.nodes[0].daemon
            mark = node.mark()
            c.master.kill()
            node.wait_for(r"\bmaster-down\b", mark)
            job = c.process()
            job.say("join group=g job=a deadline=60000")
            node.wait_for(r"\bjoin-waits\b", mark)
            c.start_master()
            job.hear()
            job.acquire()

    def test_FF_D5_P105_a_slice_outlives_a_killed_master(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            mine = a.acquire()
            a.take_memory(BIG, 1)
            self.restart(c)
            self.assertIn(f"entered=1 epoch={mine['epoch']}", a.ask("state"))
            c.queue(b)
            self.assertEqual(a.ask("check 1"), "same")  # still on the card
            self.assertTrue(b.is_waiting())
            a.ask("yield")
            theirs = b.hear_grant()
            self.assertGreater(theirs["generation"], mine["generation"])
            b.take_memory(BIG, 2)

    def test_FF_D5_P105_waiters_keep_their_order_over_a_restart(self):
        with Cluster() as c:
            a, b, d = (c.job(job=name) for name in "abd")
            a.acquire()
            c.queue(b)
            c.queue(d)
            self.restart(c)
            a.ask("yield")
            b.hear_grant()
            self.assertTrue(d.is_waiting())
            b.ask("yield")
            d.hear_grant()

    def test_FF_D4_a_yield_while_the_master_is_away_is_not_lost(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            c.queue(b)
            marks = [n.daemon.mark() for n in c.nodes]
            c.master.kill()
            c.nodes[0].daemon.wait_for(r"\bmaster-down\b", marks[0])
            a.ask("yield")
            self.assertTrue(b.is_waiting())  # a node never answers an acquire by itself
            c.start_master()
            b.hear_grant()
            b.take_memory(BIG, 2)

    def test_an_acquire_after_a_yield_that_no_master_has_heard_gets_the_next_turn(self):
        with Cluster() as c:
            a = c.job(job="a")
            a.acquire()
            mark = c.nodes[0].daemon.mark()
            c.master.kill()
            c.nodes[0].daemon.wait_for(r"\bmaster-down\b", mark)
            a.ask("yield")
            a.say("acquire 0")
            c.start_master()
            a.hear_grant()
            self.assertFalse(c.master.said("already-entered"))

    def test_FF_D5_P35_a_saved_job_comes_back_under_the_next_master(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            c.queue(b)
            a.ask("yield")
            b.hear_grant()
            b.take_memory(BIG, 2)
            self.restart(c, kill=False)
            c.queue(a)
            b.ask("yield")
            self.assertEqual(a.hear_grant()["restored"], 1)
            self.assertEqual(a.ask("check 1"), "same")

    def test_FF_D5_a_gang_over_two_nodes_keeps_its_slice(self):
        with Cluster(nodes=2) as c:
            a = [c.job(node=n, job="a", gang=2) for n in (0, 1)]
            b = c.job(node=1, job="b")
            for rank in a:
                c.queue(rank)
            for rank in a:
                rank.hear_grant()
            self.restart(c)
            c.queue(b)
            a[0].ask("yield")
            self.assertTrue(b.is_waiting())
            a[1].ask("yield")
            b.hear_grant()


    def test_FF_D5_a_gang_that_was_gathering_gets_no_turn_before_it_is_there(self):
        with Cluster(nodes=2) as c:
            first = c.job(node=0, job="a", gang=2)
            c.take_place(first)
            self.restart(c)
            c.master.wait_for(r"\btime-passed\b")  # the grace, after which what is there counts
            self.assertTrue(first.is_waiting())
            last = c.job(node=1, job="a", gang=2)
            last.acquire()
            first.hear_grant()

    def test_FF_D5_a_gang_that_had_gathered_needs_nobody_who_has_left(self):
        with Cluster(nodes=2) as c:
            stays, leaves = (c.job(node=n, job="a", gang=2) for n in (0, 1))
            leaves.ask("leave")
            c.nodes[1].daemon.wait_for(r"\bjob-ended\b")
            self.restart(c)
            stays.acquire()

    def test_a_rank_that_has_yielded_stays_where_it_is_while_the_slice_runs_on_elsewhere(self):
        with Cluster(nodes=2) as c:
            a = [c.job(node=n, job="a", gang=2) for n in (0, 1)]
            b = c.job(node=0, job="b")
            for rank in a:
                c.queue(rank)
            for i, rank in enumerate(a):
                rank.hear_grant()
                rank.take_memory(BIG, i)
            c.queue(b)
            a[0].ask("yield")
            c.master.wait_for(r"\byield\b")
            c.master.kill()
            c.nodes[1].daemon.kill()  # the other half of the slice is not told of for a while
            mark = c.nodes[0].daemon.mark()
            c.start_master()
            c.nodes[0].daemon.wait_for(r"\bmaster-up\b", mark)
            c.master.wait_for(r"\btime-passed\b")  # the grace, in which only order is waited for
            self.assertEqual(c.nodes[0].trace("checkpoint", when="begin"), [])
            self.assertTrue(b.is_waiting())
            c.nodes[1].start_connected()
            self.assertTrue(b.is_waiting())
            a[1].ask("yield")
            b.hear_grant()
            b.take_memory(BIG, 2)
            c.queue(a[0])
            c.queue(a[1])
            b.ask("yield")
            for i, rank in enumerate(a):
                rank.hear_grant()
                self.assertEqual(rank.ask(f"check {i}"), "same")


def queue_all(c, jobs):
    for job in jobs:
        c.take_place(job)


class Upgrade(unittest.TestCase):
    """Step by step as docs/operations.md has it, under running jobs."""

    def steps(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/operations.md").read_text()
        text = page.split("\n## Upgrading under running jobs\n")[1].split("\n## ")[0]
        return re.findall(r"(tsmasterd --check-config|tsnoded --check-config|systemctl restart \w+|tsctl doctor)", text)

    def all_up(self, c):
        while {n["state"] for n in c.status()["nodes"]} != {"up"}:
            pass

    def queue(self, c, complete):
        """Who waits, in order, as soon as all have come back to their daemons."""
        while True:
            queue = next((g["queue"] for g in c.status()["groups"] if g["name"] == "g"), [])
            if len(queue) == complete:
                return queue

    def check(self, program, path):
        done = subprocess.run([program, "--check-config", "--config", path], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def restart_master(self, c):
        marks = [node.daemon.mark() for node in c.nodes]
        self.assertEqual(c.master.stop(), 0)
        c.start_master()
        for node, mark in zip(c.nodes, marks):
            node.daemon.wait_for(r"\bmaster-up\b", mark)
        self.all_up(c)

    def restart_nodes(self, c):
        for node in c.nodes:
            self.assertEqual(node.daemon.stop(), 0)
            node.start_connected()
            self.all_up(c)

    def test_FF_D5_the_documented_upgrade_loses_nothing_and_keeps_the_order(self):
        with Cluster(nodes=2) as c:
            saved, holder, *waiters = (c.job(job=name) for name in ("saved", "holder", "first", "second", "third"))
            other = c.job(node=1, job="other")
            other.acquire()
            other.take_memory(BIG, 9)
            saved.acquire()
            saved.take_memory(BIG, 1)
            c.queue(holder)
            saved.ask("yield")
            holder.hear_grant()
            holder.take_memory(BIG, 2)
            queue_all(c, (*waiters, saved))
            does = {"tsmasterd --check-config": lambda: self.check(Programs.master, c.master_dir / "master.toml"),
                    "tsnoded --check-config": lambda: self.check(Programs.node, c.nodes[0].dir / "node.toml"),
                    "systemctl restart tsmasterd": lambda: self.restart_master(c),
                    "systemctl restart tsnoded": lambda: self.restart_nodes(c),
                    "tsctl doctor": lambda: self.assertEqual(c.tsctl("doctor").returncode, 0)}
            steps = self.steps()
            self.assertEqual(steps, list(does))
            for step in steps:
                does[step]()
                self.assertEqual(self.queue(c, 4), ["first", "second", "third", "saved"])
                self.assertEqual((holder.ask("check 2"), other.ask("check 9")), ("same", "same"))
            holding = {j["name"] for j in c.status()["jobs"] if j["phase"] == "holding"}
            self.assertEqual(holding, {"holder", "other"})
            now = holder
            for job in (*waiters, saved):
                now.ask("yield")
                job.hear_grant()
                now = job
            self.assertEqual(c.nodes[0].daemon.said(r"\bplaced\b"), [])  # nobody had to ask anew
            self.assertEqual(saved.ask("check 1"), "same")
            saved.ask("yield")
            holder.acquire()
            self.assertEqual(holder.ask("check 2"), "same")


class Order(unittest.TestCase):
    """Who waits longest is next, whichever daemons were killed meanwhile."""

    def expect_turns(self, holder, waiters):
        for i, job in enumerate(waiters):
            holder.ask("yield")
            job.hear_grant()
            for later in waiters[i + 1:]:
                self.assertTrue(later.is_waiting())
            holder = job

    def kill_and_start(self, c, master, nodes):
        marks = [n.daemon.mark() for n in c.nodes]
        if master:
            c.master.kill()
        for node in nodes:
            node.daemon.kill()
        if master:
            c.start_master()
        for node in nodes:
            node.start_connected()
        for node, mark in zip(c.nodes, marks):
            if master and node not in nodes:
                node.daemon.wait_for(r"\bmaster-up\b", mark)

    def test_FF_D5_waiters_of_one_node_keep_their_order(self):
        for master in (False, True):
            with self.subTest(master=master), Cluster() as c:
                a, *waiters = (c.job(job=name) for name in "abcdef")
                a.acquire()
                queue_all(c, waiters)
                self.kill_and_start(c, master, c.nodes)
                self.expect_turns(a, waiters)

    def test_FF_D5_waiters_of_two_nodes_keep_their_order(self):
        for master, killed in ((False, [0]), (False, [0, 1]), (True, []), (True, [0]), (True, [0, 1])):
            with self.subTest(master=master, killed=killed), Cluster(nodes=2) as c:
                jobs = [[c.job(node=n, job=name) for n in (0, 1)] for name in "abcdef"]
                a, *waiters = (job[i % 2] for i, job in enumerate(jobs))  # each claims both nodes
                a.acquire()
                queue_all(c, waiters)
                self.kill_and_start(c, master, [c.nodes[i] for i in killed])
                self.expect_turns(a, waiters)

    def test_FF_D5_a_place_outlives_two_masters_and_a_node(self):
        with Cluster() as c:
            a, *waiters = (c.job(job=name) for name in "abcde")
            a.acquire()
            mark = c.nodes[0].daemon.mark()
            c.master.kill()
            c.nodes[0].daemon.wait_for(r"\bmaster-down\b", mark)
            for job in waiters:
                job.say("acquire 0")
            mark = c.nodes[0].daemon.mark()
            c.start_master()
            c.nodes[0].daemon.wait_for(r"\bmaster-up\b", mark)
            c.job(job="z")  # its answer comes after the places that the waiters were given
            order = c.status()["groups"][0]["queue"]
            self.assertEqual(sorted(order), list("bcde"))
            self.kill_and_start(c, True, c.nodes)
            self.expect_turns(a, [waiters["bcde".index(name)] for name in order])


class NodeRestart(unittest.TestCase):
    def restart(self, c, kill=True):
        node = c.nodes[0]
        node.daemon.kill() if kill else self.assertEqual(node.daemon.stop(), 0)
        node.start_connected()

    def test_FF_D5_a_slice_outlives_a_killed_node_daemon(self):
        for kill in (True, False):
            with self.subTest(kill=kill), Cluster() as c:
                a, b = c.job(job="a"), c.job(job="b")
                mine = a.acquire()
                a.take_memory(BIG, 1)
                self.restart(c, kill)
                self.assertEqual(a.ask("check 1"), "same")
                self.assertIn(f"epoch={mine['epoch']}", a.ask("state"))
                c.queue(b)
                self.assertTrue(b.is_waiting())
                a.ask("yield")
                b.hear_grant()
                b.take_memory(BIG, 2)

    def test_a_waiter_keeps_waiting_over_a_restart_of_its_node(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            c.queue(b)
            self.restart(c)
            a.ask("yield")
            b.hear_grant()

    def test_FF_D5_P104_a_saved_job_is_restored_by_the_next_daemon(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            c.queue(b)
            a.ask("yield")
            b.hear_grant()
            b.take_memory(BIG, 2)
            self.restart(c)
            c.queue(a)
            b.ask("yield")
            self.assertEqual(a.hear_grant()["restored"], 1)
            self.assertEqual(a.ask("check 1"), "same")

    def test_FF_D9_a_holder_that_died_while_the_daemon_was_away_is_followed(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            c.queue(b)
            c.nodes[0].daemon.kill()
            a.kill()
            c.nodes[0].start_connected()
            b.hear_grant()
            b.take_memory(BIG, 2)


    def test_a_daemon_under_a_new_name_does_not_take_the_jobs_along(self):
        with Cluster() as c:
            a = c.job(job="a")
            a.acquire()
            node = c.nodes[0]
            node.daemon.kill()
            node.config["name"] = "renamed"
            self.assertEqual(node.run().wait(), 78)
            self.assertTrue(node.daemon.said(f"{node.config['state_dir']}/journal holds 1 jobs of node \"n1\".*"
                                             "\"renamed\""))
            node.config["name"] = "n1"
            node.start_connected()
            a.ask("yield")

    def test_FF_D5_a_journal_that_lost_its_end_is_refused(self):
        with Cluster() as c:
            a = c.job(job="a")
            a.acquire()
            node = c.nodes[0]
            node.daemon.kill()
            journal = pathlib.Path(node.config["state_dir"]) / "journal"
            whole = journal.read_bytes()
            journal.write_bytes(whole[:100])
            self.assertEqual(node.run().wait(), 1)
            self.assertTrue(node.daemon.said(f"{journal} is damaged: .*remove the file"))
            journal.write_bytes(whole)
            node.start_connected()
            a.ask("yield")


if __name__ == "__main__":
    report.main()
