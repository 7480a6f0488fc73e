"""What drivers do to those who save and restore processes: simgpu misbehaves, and nothing is lost."""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

for folder in ("support", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import report  # noqa: E402
from cluster import MIB, Cluster  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from puppet import Refused  # noqa: E402
from stage import (BIG, acquire_all, at, of, pass_turn, processes, refused, saved_beside, turn,  # noqa: E402
                   until, used_bytes)


class Restore(unittest.TestCase):
    def test_FF_A1_without_room_no_restore_is_tried_and_who_holds_the_device_is_named(self):
        with Cluster() as c:
            a, b = saved_beside(c)
            stranger = c.process()
            stranger.take_memory(40 * MIB, 3)
            c.queue(a)
            mark = c.master.mark()
            b.ask("yield")
            c.master.wait_for(r"waiter-held-back .*cause=no-device-memory", mark)
            why = c.tsctl("why", "g/a").stdout
            for word in (str(BIG), str(24 * MIB), str(stranger.pid)):  # need, free, holder
                self.assertIn(word, why)
            self.assertEqual(c.nodes[0].trace("restore", when="begin"), [])
            stranger.end()
            self.assertEqual(a.hear_grant()["restored"], 1)
            self.assertEqual(a.ask("check 1"), "same")

    def test_FF_A1_memory_that_a_save_did_not_free_is_not_restored_into(self):
        with Cluster(node={"freed_deadline": "100 ms"}) as c:
            a, b = saved_beside(c)
            b.take_memory(BIG, 2)
            turn(c.nodes[0], "60 min", "release_delay", b)
            c.queue(a)
            mark = c.master.mark()
            b.ask("yield")
            c.master.wait_for(r"not-released", mark)
            self.assertEqual(c.master.wait_for(r"\brestore node=n1 job=g/(\w)", mark)[1], "b")
            self.assertEqual(of(c.nodes[0].trace("restore", when="begin"), a.pid), [])
            b.kill()  # the holder goes
            self.assertEqual(a.hear_grant()["restored"], 1)
            self.assertEqual(a.ask("check 1"), "same")

    def test_FF_A1_a_restore_that_is_lost_for_good_is_not_tried_again_and_the_group_goes_on(self):
        with Cluster() as c:
            a, b = saved_beside(c)
            turn(c.nodes[0], "2", "fail.restore", a)
            turn(c.nodes[0], "yes", "sticky_restore_oom", a)
            c.queue(a)
            mark = c.master.mark()
            b.ask("yield")
            c.master.wait_for(rf"\bjob-faulted\b.*fault=restore.*\b{a.pid}\b.*OUT_OF_MEMORY", mark)
            # It is ended in the same breath, often before it can print its refusal.
            c.master.wait_for(r"\brefuse\b.*cause=job-faulted", mark)
            b.acquire()
            # The second call is the question whether the first has broken it.
            codes = [line.split("code=")[1] for line in of(c.nodes[0].trace("restore"), a.pid)]
            self.assertEqual(codes, ["2", "304"])


class Barriers(unittest.TestCase):
    def gangs(self, c):
        """a: four ranks on two nodes, peers on each; b: one on each node."""
        a = [c.job(node=n // 2, job="a", gang=4) for n in range(4)]
        b = [c.job(node=n, job="b", gang=2) for n in range(2)]
        for n, node in enumerate(c.nodes):
            node.set_card(peers=f"{a[2 * n].pid} {a[2 * n + 1].pid}")
        acquire_all(c, a)
        for seed, rank in enumerate(a):
            rank.take_memory(20 * MIB, seed)
        return a, b

    def test_FF_A2_all_are_locked_before_any_is_saved_and_restored_before_any_is_unlocked(self):
        with Cluster(nodes=2) as c:
            a, b = self.gangs(c)
            turn(c.nodes[1], "100 ms", "delay.lock", a[3])  # the others do not go on without it
            turn(c.nodes[1], "100 ms", "delay.restore", a[3])
            for ranks, others in ((a, b), (b, a)):
                for rank in others:
                    c.queue(rank)
                for rank in ranks:
                    rank.ask("yield")
                for rank in others:
                    rank.hear_grant()
            for seed, rank in enumerate(a):
                self.assertEqual(rank.ask(f"check {seed}"), "same")
            pids = [rank.pid for rank in a]

            def times(call, when):
                return [at(line) for node in c.nodes for pid in pids for line in of(node.trace(call, when=when), pid)]
            self.assertEqual([len(times(call, "end")) for call in ("lock", "checkpoint", "restore", "unlock")], [4] * 4)
            self.assertLess(max(times("lock", "end")), min(times("checkpoint", "begin")))
            self.assertLess(max(times("restore", "end")), min(times("unlock", "begin")))

    def test_FF_A2_a_lock_that_times_out_on_one_node_leaves_the_job_whole_and_running_everywhere(self):
        with Cluster(nodes=2, groups={"g": {"quiesce_deadline": "200 ms"}}) as c:
            a, b = self.gangs(c)
            turn(c.nodes[1], "yes", "lock_times_out", a[3])
            for rank in b:
                c.queue(rank)
            for rank in a:
                rank.ask("yield")
            for rank in b:
                self.assertIn("did not come to rest in time", str(refused(self, rank)))
            ranks = {rank.pid for rank in a}
            until(lambda: all(state == "running" for node in c.nodes
                              for pid, state in processes(node).items() if pid in ranks), "all of a run")
            self.assertEqual([line for node in c.nodes for line in node.trace("checkpoint", when="begin")], [])
            acquire_all(c, a)  # it keeps the group
            for seed, rank in enumerate(a):
                self.assertEqual(rank.ask(f"check {seed}"), "same")


class Deadlines(unittest.TestCase):
    def overdue_save(self, c):
        a, b = c.job(job="a"), c.job(job="b")
        a.acquire()
        a.take_memory(BIG, 1)
        turn(c.nodes[0], "yes", "hang.checkpoint", a)
        c.queue(b)
        mark = c.nodes[0].daemon.mark()
        a.ask("yield")
        c.nodes[0].daemon.wait_for(r"\boverdue\b.*order=save", mark)
        return a, b

    def both_go_on(self, c, a, b):
        b.hear_grant()
        self.assertEqual(processes(c.nodes[0])[a.pid], "checkpointed")
        b.take_memory(BIG, 2)
        self.assertEqual(pass_turn(c, [b], a)["restored"], 1)
        self.assertEqual(a.ask("check 1"), "same")

    def test_FF_A3_a_save_past_its_deadline_is_shown_as_overdue_and_ends_in_the_background(self):
        with Cluster(node={"save_deadline": "50 ms"}) as c:
            a, b = self.overdue_save(c)
            c.master.wait_for(r"waiter-held-back .*cause=overdue")
            why = c.tsctl("why", "g/b").stdout
            self.assertIn("longer than its deadline and is waited for", why)
            self.assertIn(str(a.pid), why)
            turn(c.nodes[0], "", "hang.checkpoint", a)
            self.both_go_on(c, a, b)
            self.assertEqual(len(of(c.nodes[0].trace("checkpoint", when="begin"), a.pid)), 1)

    def test_FF_A3_a_node_daemon_told_to_stop_waits_for_the_call_and_its_next_life_goes_on(self):
        with Cluster(node={"save_deadline": "50 ms"}) as c:
            a, b = self.overdue_save(c)
            node = c.nodes[0]
            mark = node.daemon.mark()
            node.daemon.process.terminate()
            node.daemon.wait_for(r"\bstopping\b", mark)
            turn(node, "", "hang.checkpoint", a)
            self.assertEqual(node.daemon.wait(), 0)
            self.assertEqual(len(of(node.trace("checkpoint"), a.pid)), 1)  # not left in mid-call
            node.start_connected()
            self.both_go_on(c, a, b)

    def test_FF_A3_after_a_kill_in_mid_save_the_true_state_is_read_and_repaired(self):
        for strands, ends_first in (("no", True), ("yes", True), ("no", False)):
            with self.subTest(strands=strands, ends_first=ends_first), Cluster(node={"save_deadline": "50 ms"}) as c:
                a, b = self.overdue_save(c)
                node = c.nodes[0]
                turn(node, strands, "strands", a)
                node.daemon.kill()
                if ends_first:
                    turn(node, "", "hang.checkpoint", a)
                node.start_connected()
                turn(node, "", "hang.checkpoint", a)
                self.both_go_on(c, a, b)

    def test_FF_A3_room_that_a_restore_of_a_killed_daemon_has_taken_is_not_missed_by_the_next(self):
        with Cluster() as c:
            a, b = saved_beside(c)
            node = c.nodes[0]
            node.set_card(h2d="20 MB/s")
            c.queue(a)
            b.ask("yield")
            until(lambda: of(node.trace("restore", when="begin"), a.pid), "a restore begins")
            mark = c.master.mark()
            node.daemon.kill()
            node.start_connected()
            c.master.wait_for(r"order=restore .*cause=busy .*may still be under way", mark)
            a.hear_grant()
            self.assertEqual(a.ask("check 1"), "same")
            self.assertEqual(len(of(node.trace("restore", when="begin"), a.pid)), 1)

    def test_FF_A3_a_job_on_two_nodes_is_whole_again_after_a_kill_on_one_of_them(self):
        with Cluster(nodes=2, node={"save_deadline": "50 ms"}) as c:
            a, b = ([c.job(node=n, job=name, gang=2) for n in (0, 1)] for name in "ab")
            acquire_all(c, a)
            for seed, rank in enumerate(a):
                rank.take_memory(BIG, seed)
            node = c.nodes[1]
            turn(node, "yes", "hang.checkpoint", a[1])
            mark = node.daemon.mark()
            for rank in b:
                c.queue(rank)
            for rank in a:
                rank.ask("yield")
            node.daemon.wait_for(r"\boverdue\b.*order=save", mark)
            node.daemon.kill()
            turn(node, "", "hang.checkpoint", a[1])
            node.start_connected()
            for rank in b:
                rank.hear_grant()
            self.assertEqual([processes(n)[rank.pid] for n, rank in zip(c.nodes, a)], ["checkpointed"] * 2)
            for rank in a:
                c.queue(rank)
            for rank in b:
                rank.ask("yield")
            for seed, rank in enumerate(a):
                rank.hear_grant()
                self.assertEqual(rank.ask(f"check {seed}"), "same")

    def test_FF_A4_a_restore_that_hangs_delays_no_other_group_and_is_shown_with_its_pid_and_since_when(self):
        with Cluster(cards=("--bytes", "64MiB", "--cards", "2"), node={"restore_deadline": "50 ms"}) as c:
            a, b = saved_beside(c, devices="0")
            d, e = (c.job(group="h", job=name, devices="1") for name in "de")
            node = c.nodes[0]
            turn(node, "yes", "hang.restore", a)
            mark = node.daemon.mark()
            c.queue(a)
            b.ask("yield")
            node.daemon.wait_for(r"\boverdue\b.*order=restore", mark)
            d.acquire(deadline_ms=PATIENCE * 1000)
            d.ask("start 1")
            d.ask(f"alloc {BIG}")
            self.assertEqual(pass_turn(c, [d], e)["restored"], 0)
            job = next(j for j in c.status()["jobs"] if j["name"] == "a")
            self.assertEqual(job["cause"], "overdue")
            self.assertGreater(job["since_s"], 0)
            self.assertIn(str(a.pid), json.dumps(job))

    def test_FF_A22_a_restore_that_never_returns_is_ended_by_one_command_and_the_group_goes_on(self):
        with Cluster(node={"restore_deadline": "50 ms"}) as c:
            a, b = saved_beside(c)
            node = c.nodes[0]
            turn(node, "yes", "hang.restore", a)
            mark = node.daemon.mark()
            c.queue(a)
            b.ask("yield")
            node.daemon.wait_for(r"\boverdue\b.*order=restore", mark)
            run = c.tsctl("evict", "--kill", "g/a")
            self.assertEqual(run.returncode, 0, run.stderr)
            b.acquire()
            b.take_memory(BIG, 2)
            self.assertEqual(a.process.wait(PATIENCE), -9)

    def test_FF_A19_a_restore_that_hangs_on_two_of_eight_ranks_names_both(self):
        with Cluster(node={"restore_deadline": "50 ms"}) as c:
            a, b = [c.job(job="a", gang=8) for _ in range(8)], c.job(job="b")
            acquire_all(c, a)
            for seed, rank in enumerate(a):
                rank.take_memory(6 * MIB, seed)
            pass_turn(c, a, b)
            stuck = a[2], a[5]
            node = c.nodes[0]
            turn(node, "yes", "hang.restore", *stuck)
            for rank in a:
                c.queue(rank)
            b.ask("yield")
            def detail():
                return next(j["detail"] for j in c.status()["jobs"] if j["name"] == "a")
            until(lambda: all(str(rank.pid) in detail() for rank in stuck), "both are named")
            turn(node, "", "hang.restore", *stuck)
            for seed, rank in enumerate(a):
                rank.hear_grant()
                self.assertEqual(rank.ask(f"check {seed}"), "same")


class Targets(unittest.TestCase):
    def test_FF_A6_a_rank_that_dies_in_its_lock_has_died_and_nothing_has_failed(self):
        with Cluster() as c:
            a, b = [c.job(job="a", gang=4) for _ in range(4)], c.job(job="b")
            acquire_all(c, a)
            for rank in a:
                rank.take_memory(12 * MIB, 1)
            turn(c.nodes[0], "before", "crash.lock", a[3])
            pass_turn(c, a, b)
            states = processes(c.nodes[0])
            self.assertEqual({states.get(rank.pid) for rank in a[:3]}, {"checkpointed"})  # whole, for who is left
            c.master.wait_for(r"\bjob-broken\b")
            self.assertEqual(len(c.master.said(r"\bjob-broken\b")), 1)
            self.assertEqual(c.master.said(r"^failed\b|\bjob-faulted\b"), [])
            c.nodes[0].daemon.wait_for(rf"\bmember-died\b.*pid={a[3].pid}\b")

    def test_FF_A6_the_last_process_of_a_job_that_dies_in_its_lock_ends_it_and_frees_the_device(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            turn(c.nodes[0], "before", "crash.lock", a)
            mark = c.nodes[0].daemon.mark()
            self.assertEqual(pass_turn(c, [a], b)["restored"], 0)
            b.take_memory(BIG, 2)
            c.nodes[0].daemon.wait_for(r"\bjob-ended\b.*g/a", mark)
            self.assertEqual(c.master.said(r"^failed\b|\bjob-faulted\b"), [])

    def test_FF_A7_a_participant_without_cuda_takes_turns_and_is_never_locked(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            pass_turn(c, [a], b)
            self.assertEqual(c.nodes[0].trace("lock", when="begin"), [])

    def test_FF_A8_processes_without_device_memory_are_left_alone_until_they_have_some(self):
        with Cluster() as c:
            a, b = [c.job(job="a", gang=2) for _ in range(2)], c.job(job="b")
            node = c.nodes[0]
            acquire_all(c, a)
            a[0].take_memory(40 * MIB, 1)
            a[1].ask("start 0")
            starter = int(a[0].ask("child 65536"))
            idle = a[1], starter
            for what, job in (("N/A", a[1]), ("0", starter)):
                turn(node, what, "listed", job)
                turn(node, "yes", "no_context", job)
            pass_turn(c, a, b)
            for job in idle:
                self.assertEqual(of(node.trace("lock", "checkpoint"), getattr(job, "pid", job)), [])
            self.assertEqual(processes(node)[a[0].pid], "checkpointed")
            for rank in a:
                c.queue(rank)
            b.ask("yield")
            for rank in a:
                rank.hear_grant()
            turn(node, "", "listed", *idle)
            turn(node, "", "no_context", *idle)
            a[1].take_memory(10 * MIB, 2)
            pass_turn(c, a, b)
            self.assertEqual({processes(node)[pid] for pid in (a[0].pid, a[1].pid, starter)}, {"checkpointed"})

    def test_FF_A11_a_process_that_appears_while_others_are_locked_is_locked_and_saved_too(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            node = c.nodes[0]
            a.acquire()
            a.take_memory(20 * MIB, 1)
            turn(node, "yes", "hang.lock", a)
            c.queue(b)
            a.ask("yield")
            until(lambda: node.trace("lock", when="begin"), "a is being locked")
            late = int(a.ask(f"child {20 * MIB}"))
            until(lambda: used_bytes(node, late) >= 20 * MIB, "the late one has its memory")
            turn(node, "", "hang.lock", a)
            b.hear_grant()
            self.assertEqual({processes(node)[pid] for pid in (a.pid, late)}, {"checkpointed"})
            saves = node.trace("checkpoint", when="begin")
            self.assertLess(max(at(line) for line in node.trace("lock")), min(at(line) for line in saves))

    def test_FF_A11_who_first_touches_a_device_after_the_yield_is_reported_with_pid_and_job(self):
        with Cluster(master={"heartbeat": "50 ms"}) as c:
            a, b = saved_beside(c)
            mark = c.master.mark()
            late = int(a.ask(f"child {MIB}"))
            said = c.master.wait_for(r"\boutside\b.*", mark)
            self.assertIn("job=a", said.string)
            self.assertIn(str(late), said.string)
            # and at the next switch it is moved like the others
            pass_turn(c, [b], a)


class Calls(unittest.TestCase):
    def test_FF_A12_calls_on_several_processes_overlap(self):
        with Cluster() as c:
            a, b = [c.job(job="a", gang=4) for _ in range(4)], c.job(job="b")
            node = c.nodes[0]
            acquire_all(c, a)
            for rank in a:
                rank.take_memory(12 * MIB, 1)
            turn(node, "yes", "hang.checkpoint", *a)
            c.queue(b)
            for rank in a:
                rank.ask("yield")
            until(lambda: len(node.trace("checkpoint", when="begin")) == 4, "all four are under way")
            self.assertEqual(node.trace("checkpoint"), [])
            turn(node, "", "hang.checkpoint", *a)
            b.hear_grant()

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_FF_A12_no_process_is_made_for_a_switch(self):
        with Cluster() as c:
            a, b = saved_beside(c)
            b.take_memory(BIG, 2)
            node = c.nodes[0]
            trace = c.dir / "exec"
            tracer = subprocess.Popen(["strace", "-f", "-e", "trace=execve,fork,vfork", "-o", trace, "-p",
                                       str(node.daemon.pid)], stderr=subprocess.PIPE, text=True)
            try:
                if "attached" not in tracer.stderr.readline():
                    self.skipTest("strace may not attach to a process here")
                for _ in range(4):
                    pass_turn(c, [b], a)
                    pass_turn(c, [a], b)
            finally:
                tracer.terminate()
                tracer.wait(PATIENCE)
                tracer.stderr.close()
            self.assertNotRegex(trace.read_text(), r"execve|fork")


class Registration(unittest.TestCase):
    def test_FF_A14_doctor_says_which_features_the_driver_cannot_bring_back(self):
        for driver, says in (("580.95.05", "CUDA IPC: no, needs driver 610"), ("610.10", "CUDA IPC: yes")):
            with self.subTest(driver), Cluster(nodes=0) as c:
                node = c.add_node("n1")
                node.set_card(driver=driver)
                node.start_connected()
                self.assertIn(says, c.tsctl("doctor").stdout)

    def test_FF_A15_a_device_in_mig_mode_is_refused_by_that_name_and_not_as_a_lack_of_memory(self):
        with Cluster(nodes=0) as c:
            node = c.add_node("n1")
            node.set_card(mig="yes")
            node.start_connected()
            with self.assertRaises(Refused) as no:
                c.job(job="a")
            self.assertIn("MIG", str(no.exception))
            self.assertNotIn("MEMORY", no.exception.name)
            self.assertIn("MIG is on", c.tsctl("doctor").stdout)

    def test_FF_A23_a_client_of_mps_is_refused_by_that_name_and_not_touched(self):
        with Cluster() as c:
            pipes = c.folder("mps")
            a = c.process(env={"CUDA_MPS_PIPE_DIRECTORY": str(pipes)})
            (pipes / "control").touch()  # a control daemon listens there
            a.ask("start 0")
            with self.assertRaises(Refused) as no:
                a.join(group="g", job="a")
            self.assertEqual(no.exception.name, "UNSUPPORTED")
            self.assertIn(f"process {a.pid} is an MPS client", str(no.exception))
            c.job(job="b").acquire()  # whoever is in its way is locked
            self.assertEqual(of(c.nodes[0].trace("lock", when="begin"), a.pid), [])
            (pipes / "control").unlink()
            a.join(group="g", job="a")

    def test_FF_A23_one_that_only_the_driver_knows_as_a_client_of_mps_is_refused_and_not_touched(self):
        with Cluster() as c:
            node = c.nodes[0]
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(BIG, 1)
            turn(node, "on", "mps", a)
            a.ask("yield")
            words = f"process {a.pid} is an MPS client"
            with self.assertRaises(Refused) as no:
                b.acquire()
            self.assertIn(words, str(no.exception))  # it lies in the way
            with self.assertRaises(Refused) as no:
                a.acquire()
            self.assertEqual(no.exception.name, "UNSUPPORTED")
            self.assertIn(words, str(no.exception))
            self.assertIn(words, c.tsctl("why", "g/a").stdout)
            stranger = c.process()
            stranger.take_memory(MIB, 1)
            turn(node, "on", "mps", stranger)
            by_pid = c.tsctl("snapshot", "--pid", stranger.pid)
            self.assertIn(f"process {stranger.pid} is an MPS client", by_pid.stderr)
            self.assertNotEqual(by_pid.returncode, 0)
            self.assertEqual(node.trace("lock", when="begin"), [])


if __name__ == "__main__":
    report.main()
