"""However a job or a daemon ends, the group is free again: no ghost, no drained node, the next job runs."""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import NOBODY  # noqa: E402
from slurm import until  # noqa: E402
from turns import BIG, RL, Turns  # noqa: E402


class Ends(Turns):
    """Two jobs whose state does not fit beside each other; whatever becomes of the one, the other has its turn."""

    def test_FF_G9_scancel_frees_a_holder_with_state_on_the_device(self):
        self.holder()
        self.slurm.run("scancel", "1")
        self.assert_free("1.0")

    def test_FF_G9_scancel_frees_a_job_that_is_saved(self):
        saved = self.holder()
        saved.ask("yield")
        other = self.holder()
        self.wait_phase("1.0", "idle")
        self.slurm.run("scancel", "1")
        until(lambda: "1.0" not in self.jobs(), lambda: f"it is gone: {self.jobs()}")
        self.assertEqual(other.ask("check 1"), "same")
        other.end()
        self.assert_free("2.0")

    def test_FF_G9_scancel_frees_a_job_that_waits(self):
        waits = self.holder()
        waits.ask("yield")
        other = self.holder()
        self.cluster.queue(waits)
        self.slurm.run("scancel", "1")
        until(lambda: "1.0" not in self.jobs(), lambda: f"it is gone: {self.jobs()}")
        other.end()
        self.assert_free("2.0")

    def test_FF_G9_scancel_frees_a_holder_that_has_touched_no_device(self):
        job = self.slurm.puppet(RL, "-wn1")
        job.ask("join")
        job.ask("acquire 0")
        self.slurm.run("scancel", "1")
        self.assert_free("1.0")

    def test_FF_G9_scancel_frees_a_job_that_is_parked(self):
        self.holder().ask("yield")
        self.wait_phase("1.0", "parked")
        self.slurm.run("scancel", "1")
        self.assert_free("1.0")

    def cancel_in_mid(self, call):
        """Of a switch away from job 1.0, or back to it: the driver hangs in this call about its process, and ends with it."""
        first = self.holder()
        node = self.cluster.nodes[0]
        away = call in ("lock", "checkpoint")
        other = self.slurm.puppet(RL, "-wn1")
        self.wait_phase("2.0", "waiting")
        if not away:
            first.ask("yield")
            other.ask("join")
            other.ask("acquire 0")
            other.take_memory(BIG, 2)
            self.cluster.queue(first)
        node.set_card(**{f"hang__{call}": "yes"})
        self.addCleanup(lambda: node.set_card(**{f"hang__{call}": ""}))
        (first if away else other).ask("yield")
        until(lambda: node.trace(call, when="begin"), f"it is in {call}")
        self.slurm.run("scancel", "1")
        until(lambda: not self.slurm.run("squeue", "-h", "-j", "1").stdout, "Slurm has ended it")
        node.set_card(**{f"hang__{call}": ""})
        until(lambda: "1.0" not in self.jobs(), lambda: f"it is gone: {self.jobs()}")
        if away:
            other.ask("join")
        other.end()
        self.assert_free("2.0")

    def test_FF_G9_scancel_frees_a_job_that_is_being_stopped(self):
        self.cancel_in_mid("lock")

    def test_FF_G9_scancel_frees_a_job_that_is_being_saved(self):
        self.cancel_in_mid("checkpoint")

    def test_FF_G9_scancel_frees_a_job_that_is_being_restored(self):
        self.cancel_in_mid("restore")

    def test_FF_G9_scancel_frees_a_job_that_is_being_let_go(self):
        self.cancel_in_mid("unlock")

    def test_a_step_that_is_cancelled_alone_is_gone_while_its_job_goes_on(self):
        feed = f"(echo join; echo acquire 0; sleep 1000) | {os.environ['E2E_PUPPET']}"
        job = self.slurm.sbatch(f"srun -n1 bash -c '{feed}'; echo $?; sleep 1000", RL, "-wn1")
        self.wait_phase(f"{job}.0", "holding")
        self.slurm.run("scancel", f"{job}.0")
        self.assert_free(f"{job}.0")
        self.assertEqual(self.slurm.job(job)["JobState"], "RUNNING")
        self.slurm.run("scancel", job)
        self.assertEqual(self.slurm.wait(job)["JobState"], "CANCELLED")

    def test_tasks_that_ignore_SIGTERM_are_killed_by_slurm_and_leave_nothing(self):
        deaf = f"trap '' TERM; (echo join; echo acquire 0; exec sleep 1000) | {os.environ['E2E_PUPPET']}"
        srun = self.slurm.start_command("srun", "-n1", RL, "-wn1", "bash", "-c", deaf, user=NOBODY)
        self.wait_phase("1.0", "holding")
        self.slurm.run("scancel", "1")
        srun.communicate(timeout=60)
        self.assert_free("1.0")

    def test_FF_G15_a_job_whose_node_an_administrator_sets_down_is_gone_and_the_node_returns(self):
        self.holder()
        self.assertEqual(self.slurm.run("scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=test").returncode, 0)
        until(lambda: "1.0" not in self.jobs(), lambda: f"it is gone: {self.jobs()}")
        self.assertEqual(self.slurm.job(1)["JobState"], "NODE_FAIL")
        self.slurm.run("scontrol", "update", "NodeName=n1", "State=RESUME")
        until(self.slurm.is_ready, "the node is back")
        self.assert_free("1.0")

    def test_a_node_that_slurm_has_lost_is_free_again_when_it_returns(self):
        """Its slurmd is away for longer than SlurmdTimeout: Slurm fails the job, and cannot end it there."""
        self.holder()
        self.slurm.kill_daemon("n1")
        until(lambda: self.slurm.job(1)["JobState"] == "NODE_FAIL", lambda: f"it has failed: {self.slurm.job(1)}", 120)
        self.slurm.start_slurmd("n1")
        until(self.slurm.is_ready, "the node is back")
        self.assert_free("1.0")

    def test_a_job_that_reaches_its_time_limit_is_gone_like_one_that_is_cancelled(self):
        self.holder("--time=1")
        # A minute is the least, and Slurm looks every half one.
        until(lambda: self.slurm.job(1)["JobState"] == "TIMEOUT", lambda: f"its time is over: {self.slurm.job(1)}", 180)
        self.assert_free("1.0")

    def test_a_requeued_job_runs_again_under_a_name_of_its_own(self):
        count = self.slurm.dir / "out" / "runs"
        script = f"echo run >> {count}; srun -n1 bash -c 'echo $TIMESLICE_JOB; [ $(wc -l < {count}) = 2 ] || exec sleep 1000'"
        job = self.slurm.sbatch(script, RL, "--requeue")
        self.wait_phase(f"{job}.0", "holding")
        self.assertEqual(self.slurm.run("scontrol", "requeue", job).returncode, 0)
        until(lambda: self.slurm.job(job)["JobState"] == "PENDING", lambda: f"it is requeued: {self.slurm.job(job)}")
        # Slurm's own pause is two minutes. In the second in which a job was ended its node takes no batch script of it.
        self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now+2seconds")
        self.assertEqual(self.slurm.wait(job)["JobState"], "COMPLETED", self.slurm.errors(job))
        self.assertEqual(count.read_text().count("run"), 2)
        self.assertEqual(self.slurm.output(job).split()[-1], f"{job}-1.0")
        self.assert_free(f"{job}.0", f"{job}-1.0")

    def test_one_task_that_is_killed_breaks_its_gang_which_is_shown_and_ended(self):
        job = self.slurm.start_command("srun", "-n2", RL, "-wn1", "bash", "-c", f"(echo join; echo acquire 0; sleep 1000) | "
                                       f"{os.environ['E2E_PUPPET']}", user=NOBODY)
        self.wait_phase("1.0", "holding")
        take = r"\btake-over job=rl/1\.0 pid=(\d+)"
        node = self.cluster.nodes[0].daemon
        until(lambda: len(node.said(take)) == 2, "both have joined")
        os.kill(int(node.wait_for(take)[1]), signal.SIGKILL)
        self.wait_phase("1.0", "broken")
        self.slurm.run("scancel", "1")
        job.wait(60)
        self.assert_free("1.0")

    def test_a_killed_slurmstepd_leaves_no_ghost(self):
        self.holder()
        node = self.cluster.nodes[0].daemon
        # With its slurmstepd its stdin ends, and this program with that, if it is quicker than the node.
        os.kill(int(node.wait_for(r"\btake-over job=rl/1\.0 pid=(\d+)")[1]), signal.SIGSTOP)
        (daemon,) = self.slurm.step_daemons(1)
        os.kill(daemon, signal.SIGKILL)
        node.wait_for(r"\bstep-survivors job=rl/1\.0 killed=1")
        until(lambda: "1.0" not in self.jobs(), lambda: f"it is gone: {self.jobs()}")
        self.slurm.run("scancel", "1")
        self.assert_free("1.0")

    def test_a_killed_slurmd_changes_nothing_for_a_job_that_runs(self):
        job = self.holder()
        self.slurm.kill_daemon("n1")
        job.ask("yield")
        job.ask("acquire 0")
        self.assertEqual(job.ask("check 1"), "same")
        self.slurm.start_slurmd("n1")
        until(self.slurm.is_ready, "the node is back")
        job.end()
        self.assert_free("1.0")

    def test_a_killed_slurmctld_changes_nothing_for_a_job_that_runs(self):
        job = self.holder()
        self.slurm.kill_daemon("slurmctld")
        job.ask("yield")
        job.ask("acquire 0")
        self.assertEqual(job.ask("check 1"), "same")
        self.slurm.start_slurmctld()
        until(self.slurm.is_ready, "the nodes are back")
        job.end()
        self.assert_free("1.0")

    def test_a_killed_tsnoded_keeps_steps_and_turns(self):
        job = self.holder()
        node = self.cluster.nodes[0]
        node.daemon.kill()
        node.start_connected()
        job.ask("yield")
        job.ask("acquire 0")
        self.assertEqual(job.ask("check 1"), "same")
        job.end()
        node.daemon.wait_for(r"\bstep-ended job=rl/1\.0")
        self.assert_free("1.0")

    def test_a_killed_tsmasterd_keeps_turns(self):
        job = self.holder()
        self.cluster.master.kill()
        self.cluster.start_master()
        self.cluster.nodes[0].daemon.wait_for(r"\bmaster-up\b.*generation=2")
        job.ask("yield")
        job.ask("acquire 0")
        self.assertEqual(job.ask("check 1"), "same")
        job.end()
        self.assert_free("1.0")

    def test_a_step_that_ends_while_tsnoded_is_away_is_noticed_when_it_is_back(self):
        self.holder()
        node = self.cluster.nodes[0]
        node.daemon.kill()
        self.slurm.run("scancel", "1")
        until(lambda: not self.slurm.step_daemons(1), "its slurmstepd has ended")
        self.assertEqual(self.slurm.drained(), [])
        node.start_connected()
        self.assert_free("1.0")

    def test_FF_G4_an_epilog_or_an_end_that_the_node_does_not_answer_drains_nothing(self):
        self.slurm.set_words("timeout_ms=500")
        job = self.holder()
        pid = self.cluster.nodes[0].daemon.pid
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        job.process.stdin.close()
        until(lambda: not self.slurm.run("squeue", "-h").stdout, "the job is gone from its node")
        self.assertEqual(self.slurm.drained(), [])
        os.kill(pid, signal.SIGCONT)
        self.assert_free("1.0")


if __name__ == "__main__":
    report.main()
