"""What a person sees of each fault, and that the command they are shown ends it."""
import pathlib
import re
import sys
import unittest

for folder in ("support", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import report  # noqa: E402
from cluster import MIB, Cluster  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from stage import BIG, at, of, pass_turn, refused, saved_beside, turn, until  # noqa: E402


def job_of(c, name):
    return next((j for j in c.status()["jobs"] if j["name"] == name), None)


def shown_commands(text):
    """The tsctl commands of a text, as argument lists."""
    return [command.split() for command in re.findall(r"tsctl ((?:evict --kill|clear-fault) \S+)", text)]


class Hangs(unittest.TestCase):
    def hung(self, c, call, verb):
        """Job a, late in one call of the driver; b waits for it."""
        a, b = c.job(job="a"), c.job(job="b")
        a.acquire()
        a.take_memory(BIG, 1)
        node = c.nodes[0]
        turn(node, "yes", f"hang.{call}", a)
        mark = node.daemon.mark()
        c.queue(b)
        a.ask("yield")
        node.daemon.wait_for(rf"\boverdue\b.*order={verb}\b.*{a.pid}", mark)
        until(lambda: job_of(c, "a")["late"], "the master knows")
        return a, b

    def test_FF_A4_a_call_that_hangs_is_shown_with_pid_and_since_when_and_the_shown_command_ends_it(self):
        for call, verb in (("lock", "quiesce"), ("checkpoint", "save")):
            with self.subTest(call), Cluster(groups={"g": {"quiesce_deadline": "50 ms"}},
                                             node={"save_deadline": "50 ms"}) as c:
                a, b = self.hung(c, call, verb)
                for late in (job_of(c, "a")["late"], c.status()["nodes"][0]["late"]):
                    told = [(one["node"], one["job"], one["call"], one["pids"]) for one in late]
                    self.assertEqual(told, [("n1", "g/a", verb, [a.pid])])
                    self.assertGreater(late[0]["for_s"], 0)
                texts = [c.tsctl(*words).stdout for words in (["status"], ["nodes"], ["why", "a"], ["why", "b"])]
                for text in texts:
                    self.assertRegex(text, rf"{verb} of process {a.pid} on n1 runs for [\d.]+ \w+")
                    self.assertIn(["evict", "--kill", "g/a"], shown_commands(text))
                doctor = c.tsctl("doctor").stdout
                self.assertRegex(doctor, rf"{verb} of g/a, in process {a.pid}, runs for")
                self.assertEqual(c.tsctl(*shown_commands(texts[0])[0]).returncode, 0)
                self.assertEqual(a.process.wait(PATIENCE), -9)
                b.hear_grant()
                self.assertEqual(c.status()["nodes"][0]["late"], [])

    def test_a_late_call_of_another_user_is_not_told(self):
        with Cluster(groups={"g": {"quiesce_deadline": "50 ms"}}, node={"save_deadline": "50 ms"}) as c:
            a, _ = self.hung(c, "checkpoint", "save")
            seen = c.tsctl("--json", "nodes", wrap=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"],
                           env={"TIMESLICE_MASTER": str(c.master_dir / "master.sock")})
            self.assertNotIn(str(a.pid), seen.stdout)


class Faults(unittest.TestCase):
    def see(self, c, job, kind):
        """Shown as a table and as JSON, with pid, since when, why and the commands; returns those."""
        until(lambda: job_of(c, "a")["fault"], "a is faulted")
        told = job_of(c, "a")
        self.assertEqual((told["phase"], told["fault"]), ("faulted", kind))
        self.assertGreater(told["since_s"], 0)
        self.assertIn(str(job.pid), told["detail"])
        self.assertIn("n1", told["detail"])
        for words in (["status"], ["why", "a"]):
            text = c.tsctl(*words).stdout
            self.assertIn(str(job.pid), text)
            self.assertEqual(shown_commands(text), [["clear-fault", "g/a"], ["evict", "--kill", "g/a"]])
        return shown_commands(text)

    def faulted(self, c, kind, knob, value):
        a, b = c.job(job="a"), c.job(job="b")
        a.acquire()
        a.take_memory(BIG, 1)
        turn(c.nodes[0], value, knob, a)
        mark = c.master.mark()
        c.queue(b)
        a.ask("yield")
        c.master.wait_for(rf"\bjob-faulted\b.*fault={kind}\b", mark)
        no = refused(self, b)
        self.assertEqual(no.name, "FAULTED")
        self.assertIn("a", str(no))
        return a, b

    def test_FF_D6_a_fault_is_shown_and_leaves_when_it_is_cleared(self):
        """P26: a faulted job is left alone and shown."""
        for kind, knob, value in (("quiesce", "lock_times_out", "yes"), ("save", "fail.checkpoint", "999")):
            with self.subTest(kind), Cluster(groups={"g": {"quiesce_deadline": "50 ms"}}) as c:
                a, b = self.faulted(c, kind, knob, value)
                clear, _ = self.see(c, a, kind)
                a.acquire()  # it may be granted its own devices, and stays faulted
                self.see(c, a, kind)
                a.ask("yield")
                turn(c.nodes[0], "", knob, a)
                self.assertEqual(c.tsctl(*clear).returncode, 0)
                self.assertEqual((job_of(c, "a")["fault"], job_of(c, "a")["detail"]), ("", ""))
                b.acquire()
                b.take_memory(BIG, 2)
                self.assertEqual(pass_turn(c, [b], a)["restored"], 1)
                self.assertEqual(a.ask("check 1"), "same")

    def test_FF_D6_a_fault_of_a_grant_is_shown_and_is_let_go_once_more(self):
        with Cluster() as c:
            a, b = saved_beside(c)
            turn(c.nodes[0], "999", "fail.unlock", a)
            c.queue(a)
            b.ask("yield")
            self.assertEqual(refused(self, a).name, "FAULTED")
            _, kill = self.see(c, a, "grant")
            self.assertEqual(c.tsctl(*kill).returncode, 0)
            self.assertEqual(a.process.wait(PATIENCE), -9)
            b.acquire()

    def test_FF_D6_no_fault_outlives_its_job(self):
        """P48: who asks after a faulted job gets the turn."""
        with Cluster(groups={"g": {"quiesce_deadline": "50 ms"}}) as c:
            a, b = self.faulted(c, "save", "fail.checkpoint", "999")
            _, kill = self.see(c, a, "save")
            self.assertEqual(c.tsctl(*kill).returncode, 0)
            self.assertEqual(a.process.wait(PATIENCE), -9)
            until(lambda: job_of(c, "a") is None, "the job has ended")
            again = c.job(job="a")
            again.acquire()
            self.assertEqual((job_of(c, "a")["fault"], job_of(c, "a")["detail"]), ("", ""))
            again.take_memory(BIG, 3)
            pass_turn(c, [again], b)

    def test_FF_D6_a_job_that_ends_in_mid_switch_ends_well_and_nobody_else_sees_it(self):
        for call in ("lock", "checkpoint", "restore"):
            with self.subTest(call), Cluster() as c:
                if call == "restore":
                    a, b = saved_beside(c)
                    turn(c.nodes[0], "before", "crash.restore", a)
                    c.queue(a)
                    b.ask("yield")
                else:
                    a, b = c.job(job="a"), c.job(job="b")
                    a.acquire()
                    a.take_memory(BIG, 1)
                    turn(c.nodes[0], "before", f"crash.{call}", a)
                    c.queue(b)
                    a.ask("yield")
                    b.hear_grant()
                    b.ask("yield")
                until(lambda: job_of(c, "a") is None, "the job has ended")
                b.acquire()
                b.take_memory(BIG, 2)
                self.assertEqual(c.master.said(r"^failed\b|\bjob-faulted\b"), [])

    def test_FF_D20_a_restore_that_fails_is_tried_ever_more_rarely_and_then_not_again(self):
        with Cluster() as c:
            a, b = saved_beside(c)
            turn(c.nodes[0], "719", "fail.restore", a)
            c.queue(a)
            mark = c.master.mark()
            b.ask("yield")
            said = c.master.wait_for(r"\bjob-faulted\b.*fault=restore.*", mark).string
            # It is ended in the same breath, often before it can print its refusal.
            c.master.wait_for(r"\brefuse\b.*cause=job-faulted", mark)
            self.assertIn("n1", said)
            self.assertIn(str(a.pid), said)
            times = [at(line) for line in of(c.nodes[0].trace("restore", when="begin"), a.pid)]
            gaps = [after - before for before, after in zip(times, times[1:])]
            self.assertEqual(len(gaps), 4)
            for n, gap in enumerate(gaps):
                self.assertGreaterEqual(gap, 0.5 * 2 ** n)
            self.assertEqual(len(c.master.said(r"^job-faulted\b")), 1)
            self.assertEqual(len(c.master.said(r"^waiter-held-back\b.*job=\S*a\b")), 1)
            b.acquire()
            b.take_memory(40 * MIB, 2)

    def test_what_a_waiter_was_once_told_is_not_shown_of_the_holder(self):
        with Cluster() as c:
            a, b = saved_beside(c)
            stranger = c.process()
            stranger.take_memory(40 * MIB, 3)
            c.queue(a)
            b.ask("yield")
            until(lambda: str(stranger.pid) in job_of(c, "a")["detail"], "who holds the device is told")
            stranger.end()
            a.hear_grant()
            self.assertEqual((job_of(c, "a")["cause"], job_of(c, "a")["detail"]), ("", ""))


if __name__ == "__main__":
    report.main()
