"""tsctl snapshot and restore: any process by its pid, by a node alone, without any master."""
import itertools
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import MIB, NOBODY, Cluster, as_user  # noqa: E402


class ByPid(unittest.TestCase):
    def alone(self, **settings):
        c = Cluster(node={"master": "", **settings})
        self.addCleanup(c.close)
        c.nodes[0].start()
        return c

    def test_a_process_is_saved_and_restored_byte_for_byte(self):
        c = self.alone()
        job, other = c.process(), c.process()
        job.take_memory(48 * MIB, 1)
        run = c.tsctl("snapshot", "--pid", job.pid)
        self.assertEqual(run.returncode, 0, run.stderr)
        other.take_memory(48 * MIB, 2)
        self.assertEqual(other.ask("check 2"), "same")
        other.ask("free")
        run = c.tsctl("restore", "--pid", job.pid)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(job.ask("check 1"), "same")

    def test_FF_A1_a_restore_without_room_says_need_and_free_and_loses_nothing(self):
        c = self.alone()
        job, other = c.process(), c.process()
        job.take_memory(48 * MIB, 1)
        self.assertEqual(c.tsctl("snapshot", "--pid", job.pid).returncode, 0)
        other.take_memory(48 * MIB, 2)
        run = c.tsctl("restore", "--pid", job.pid)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("NO_DEVICE_MEMORY", run.stderr)
        self.assertIn("48", run.stderr)
        self.assertEqual(c.nodes[0].trace("restore"), [])  # measured, and not tried
        other.end()
        self.assertEqual(c.tsctl("restore", "--pid", job.pid).returncode, 0)
        self.assertEqual(job.ask("check 1"), "same")

    def test_a_process_without_cuda_is_named(self):
        c = self.alone()
        job = c.process()
        for verb, name in (("snapshot", "NO_CONTEXT"), ("restore", "was not saved here")):
            with self.subTest(verb):
                run = c.tsctl(verb, "--pid", job.pid)
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertIn(name, run.stderr)
                self.assertIn(str(job.pid), run.stderr)

    def test_FF_A7_a_thread_is_refused_with_the_name_of_its_process(self):
        c = self.alone()
        job = c.process()
        job.ask("start 0")  # simgpu's driver has threads, as the real one
        tid = next(int(t) for t in os.listdir(f"/proc/{job.pid}/task") if int(t) != job.pid)
        for verb in ("snapshot", "restore"):
            with self.subTest(verb):
                run = c.tsctl(verb, "--pid", tid)
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertIn("NO_SUCH_PROCESS", run.stderr)
                self.assertIn(str(job.pid), run.stderr)

    def test_FF_A7_one_process_is_saved_once_whether_asked_for_by_its_pid_or_by_a_thread(self):
        c = self.alone()
        job = c.process()
        job.take_memory(48 * MIB, 1)
        tid = next(int(t) for t in os.listdir(f"/proc/{job.pid}/task") if int(t) != job.pid)
        self.assertEqual([c.tsctl("snapshot", "--pid", pid).returncode for pid in (job.pid, tid)], [0, 1])
        self.assertEqual(len(c.nodes[0].trace("checkpoint", when="begin")), 1)
        self.assertEqual(c.tsctl("restore", "--pid", job.pid).returncode, 0)
        self.assertEqual(job.ask("check 1"), "same")

    def test_FF_A7_a_pid_that_is_nobodys_is_refused(self):
        """P64: the error names the pid."""
        c = self.alone()
        daemon = c.nodes[0].daemon.pid
        why = {4194304 * 2: "there is no process 8388608 here", 1: "1 is no process that can be moved",
               daemon: f"{daemon} is no process that can be moved"}
        for verb, pid in itertools.product(("snapshot", "restore"), why):
            with self.subTest(verb, pid=pid):
                run = c.tsctl(verb, "--pid", pid)
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertIn(why[pid], run.stderr)
        for number in (0, -1):
            self.assertEqual(c.tsctl("snapshot", f"--pid={number}").returncode, 2)
        self.assertTrue(c.nodes[0].daemon.alive())

    def test_FF_A17_a_process_saved_by_one_node_is_not_restored_by_another(self):
        c = Cluster(nodes=2, node={"master": ""})
        self.addCleanup(c.close)
        for node in c.nodes:
            node.start()
        job = c.process()
        job.take_memory(48 * MIB, 1)
        self.assertEqual(c.tsctl("snapshot", "--pid", job.pid).returncode, 0)
        run = c.tsctl("restore", "--pid", job.pid, node=1)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("was not saved here", run.stderr)
        self.assertEqual([n.trace("restore", when="begin") for n in c.nodes], [[], []])
        self.assertEqual(c.tsctl("restore", "--pid", job.pid).returncode, 0)
        self.assertEqual(job.ask("check 1"), "same")

    @unittest.skipUnless(os.getuid() == 0, "needs root to be somebody else")
    def test_the_process_of_another_user_is_not_touched(self):
        c = self.alone()
        job = c.process()
        job.take_memory(48 * MIB, 1)
        run = c.tsctl("snapshot", "--pid", job.pid, wrap=as_user((), NOBODY))
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("PERMISSION", run.stderr)
        self.assertIn(str(job.pid), run.stderr)
        self.assertEqual(c.nodes[0].trace("lock", "checkpoint"), [])
        self.assertEqual(job.ask("check 1"), "same")

    def test_FF_A4_a_call_that_hangs_for_good_does_not_keep_the_daemon_from_ending(self):
        c = self.alone(save_deadline="1 ms", restore_deadline="1 ms")
        job = c.process()
        job.take_memory(48 * MIB, 1)
        c.nodes[0].set_card(hang__checkpoint="yes")
        run = c.tsctl("snapshot", "--pid", job.pid, "--deadline", "2s")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("goes on", run.stderr)
        self.assertEqual(c.nodes[0].daemon.stop(), 1)
        self.assertTrue(c.nodes[0].daemon.said(r"\bcalls-abandoned\b.*running=1"))

    def test_without_a_node_daemon_tsctl_exits_69_and_names_the_socket(self):
        c = self.alone()
        c.nodes[0].daemon.stop()
        run = c.tsctl("snapshot", "--pid", os.getpid())
        self.assertEqual(run.returncode, 69, run.stderr)
        self.assertIn(c.nodes[0].socket, run.stderr)


if __name__ == "__main__":
    report.main()
