"""What comparable systems get right, as jobs see it; each by its number."""
import concurrent.futures
import pathlib
import signal
import sys
import unittest

for folder in ("support", "faults"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import report  # noqa: E402
from cluster import MIB, Cluster  # noqa: E402
from stage import BIG, acquire_all, of, pass_turn, processes, turn, until  # noqa: E402


class Groups(unittest.TestCase):
    """Groups samplers and trainers on a node each, a job of two roles in both."""

    def roles(self, c, name):
        return [c.job(node=n, group=group, job=name) for n, group in enumerate(("samplers", "trainers"))]

    def nothing_is_left(self, c, *jobs):
        for job in jobs:
            self.assertEqual(job.end(), 0)
        until(lambda: c.status()["jobs"] == [], "nobody holds, waits or lives")

    def test_P1_a_job_samples_and_trains_in_turns_of_two_groups_and_leaves_nothing(self):
        with Cluster(nodes=2) as c:
            roles = self.roles(c, "a")
            for seed, role in enumerate(roles):
                role.acquire()
                role.take_memory(BIG, seed)
                role.ask("yield")
            for _ in range(2):
                for seed, role in enumerate(roles):
                    self.assertEqual(role.acquire()["restored"], 0)
                    self.assertEqual(role.ask(f"check {seed}"), "same")
                    role.ask("yield")
            self.nothing_is_left(c, *roles)

    def test_P2_P3_a_job_that_is_halted_while_it_samples_keeps_its_turn_and_both_finish(self):
        with Cluster(nodes=2) as c:
            (a, _), (b, _) = both = [self.roles(c, name) for name in "ab"]
            a.acquire()
            a.take_memory(58 * MIB, 1)  # nine tenths of the card
            a.process.send_signal(signal.SIGSTOP)
            c.queue(b)
            jobs = {(job["group"], job["name"]): job for job in c.status()["jobs"]}
            self.assertEqual((jobs["samplers", "a"]["phase"], jobs["samplers", "b"]["place"]), ("holding", 1))
            self.assertTrue(b.is_waiting())
            a.process.send_signal(signal.SIGCONT)
            a.ask("yield")
            b.hear_grant()
            b.take_memory(58 * MIB, 2)
            pass_turn(c, [b], a)
            self.assertEqual(a.ask("check 1"), "same")
            pass_turn(c, [a], b)
            self.assertEqual(b.ask("check 2"), "same")
            self.nothing_is_left(c, *sum(both, []))


class TwoNodes(unittest.TestCase):
    def gang(self, c, seed):
        ranks = [c.job(node=n, job="a", gang=2) for n in (0, 1)]
        acquire_all(c, ranks)
        for n, rank in enumerate(ranks):
            rank.take_memory(BIG, seed + n)
        return ranks

    def calls(self, c, name, job):
        return [line for node in c.nodes for line in of(node.trace(name, when="begin"), job.pid)]

    def test_P27_a_parked_job_is_granted_on_two_nodes_without_a_call(self):
        with Cluster(nodes=2) as c:
            a = self.gang(c, 1)
            for _ in range(2):
                for rank in a:
                    rank.ask("yield")
                self.assertEqual([grant["restored"] for grant in acquire_all(c, a)], [0, 0])
            self.assertEqual([node.trace("lock", "restore") for node in c.nodes], [[], []])

    def test_P28_of_a_job_that_had_to_leave_one_node_only_that_rank_is_restored(self):
        with Cluster(nodes=2) as c:
            a, b = self.gang(c, 1), c.job(node=1, job="b")
            pass_turn(c, a, b)
            self.assertEqual([processes(node)[rank.pid] for node, rank in zip(c.nodes, a)], ["locked", "checkpointed"])
            for rank in a:
                c.queue(rank)
            b.ask("yield")
            for n, rank in enumerate(a):
                rank.hear_grant()
                self.assertEqual(rank.ask(f"check {1 + n}"), "same")
            self.assertEqual([len(self.calls(c, "restore", rank)) for rank in a], [0, 1])

    def test_P29_of_a_job_that_was_on_one_node_only_the_other_node_is_cleared_for_it(self):
        with Cluster(nodes=2) as c:
            a, b = [c.job(node=n, job="a", gang=2) for n in (0, 1)], c.job(node=1, job="b")
            acquire_all(c, a)
            a[0].take_memory(BIG, 1)
            pass_turn(c, a, b)
            b.take_memory(BIG, 2)
            for rank in a:
                c.queue(rank)
            b.ask("yield")
            for rank in a:
                rank.hear_grant()
            self.assertEqual(len(self.calls(c, "checkpoint", b)), 1)
            self.assertEqual(self.calls(c, "restore", a[0]), [])


class Calls(unittest.TestCase):
    def test_P36_P59_of_many_snapshots_of_one_process_at_once_one_is_made(self):
        c = Cluster(node={"master": ""})
        self.addCleanup(c.close)
        node = c.nodes[0].start()
        p = c.process()
        p.take_memory(BIG, 1)
        turn(node, "yes", "hang.checkpoint", p)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            first = pool.submit(c.tsctl, "snapshot", "--pid", p.pid)
            try:
                until(lambda: node.trace("checkpoint", when="begin"), "the first is under way")
                others = [c.tsctl("snapshot", "--pid", p.pid, "--deadline", "100ms") for _ in range(3)]
                self.assertEqual([run.returncode for run in others], [1] * 3, others[0].stderr)
            finally:
                turn(node, "", "hang.checkpoint", p)
            self.assertEqual(first.result().returncode, 0)
        self.assertEqual(len(of(node.trace("checkpoint"), p.pid)), 1)

    def test_FF_D14_what_a_job_does_on_a_device_after_it_was_moved_waits_for_its_next_turn(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            pass_turn(c, [a], b)
            a.say("check 1")  # a call into the driver, while its state is away
            b.take_memory(BIG, 2)
            self.assertEqual(b.ask("check 2"), "same")
            self.assertTrue(a.is_waiting())
            b.ask("yield")
            b.ask("leave")
            self.assertEqual(b.end(), 0)
            self.assertEqual(a.hear(), "same")  # nobody competes: it is brought back

    def test_FF_I8_the_spans_of_a_switch_have_the_time_of_each_call_and_sum_to_the_whole(self):
        delays = {"lock": 30, "checkpoint": 50, "restore": 70, "unlock": 40}
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            pass_turn(c, [a], b)
            b.take_memory(BIG, 2)
            c.nodes[0].set_card(**{f"delay.{call}": f"{ms} ms" for call, ms in delays.items()})
            c.queue(a)
            mark = c.master.mark()
            b.ask("yield")
            a.hear_grant()
            told = c.master.wait_for(r"\bswitch-timed\b.*job=a\b.*", mark).string
            spans = {key[:-3]: int(value) for key, value in (w.split("=") for w in told.split() if "_us=" in w)}
            self.assertEqual(sum(us for name, us in spans.items() if name != "total"), spans["total"])
            for call, span in (("lock", "lock"), ("checkpoint", "save"), ("restore", "restore"), ("unlock", "unlock")):
                self.assertGreaterEqual(spans[span], delays[call] * 1000, told)
            self.assertIn("switch-timed", c.tsctl("events").stdout)


class Memory(unittest.TestCase):
    def test_FF_C2_what_does_not_fit_the_budget_of_the_node_is_held_back_with_need_and_limit(self):
        with Cluster(node={"host_budget": "40 MiB"}) as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            c.queue(b)
            mark = c.master.mark()
            a.ask("yield")
            c.master.wait_for(r"\bwaiter-held-back\b.*job=b\b.*cause=no-host-memory", mark)
            why = c.tsctl("why", "g/b").stdout
            for word in (str(BIG), str(40 * MIB)):
                self.assertIn(word, why)
            self.assertEqual(c.nodes[0].trace("lock", when="begin"), [])
            self.assertEqual(a.ask("check 1"), "same")
            a.kill()
            b.hear_grant()

    def test_FF_C5_a_node_daemon_that_may_lock_no_memory_saves_and_restores_all_the_same(self):
        with Cluster(nodes=0) as c:
            c.add_node("n1", wrap=("prlimit", "--memlock=65536:65536", "--")).start_connected()
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            pass_turn(c, [a], b)
            b.take_memory(BIG, 2)
            pass_turn(c, [b], a)
            self.assertEqual(a.ask("check 1"), "same")
            locked = next(line for line in pathlib.Path(f"/proc/{c.nodes[0].daemon.pid}/status").read_text().splitlines()
                          if line.startswith("VmLck"))
            self.assertEqual(locked.split()[1], "0")

    def test_FF_C5_a_process_that_may_not_hold_what_must_be_saved_stays_whole(self):
        with Cluster(groups={"g": {"quiesce_deadline": "200 ms"}}) as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            turn(c.nodes[0], "1 MiB", "host_memory", a)
            mark = c.master.mark()
            c.queue(b)
            a.ask("yield")
            c.master.wait_for(r"\bjob-faulted\b.*fault=save.*OUT_OF_MEMORY", mark)
            a.acquire()
            self.assertEqual(a.ask("check 1"), "same")


if __name__ == "__main__":
    report.main()
