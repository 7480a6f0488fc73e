"""What Slurm says to tsmasterd: jobs that are over, nodes that are down, jobs that are suspended; a ghost is left by none."""
import os
import pathlib
import signal
import sys

for folder in ("support", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import report  # noqa: E402
from slurm import until  # noqa: E402
from turns import RL, Turns  # noqa: E402

AWAY = {"heartbeat": "200 ms", "suspect_after": "1 s"}


class Away(Turns):
    """Cuts the node daemon off, as a cable does."""

    def cut(self):
        pid = self.cluster.nodes[0].daemon.pid
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(self.mend)
        until(lambda: self.node_state() == "suspect", "its node is suspect")

    def mend(self):
        os.kill(self.cluster.nodes[0].daemon.pid, signal.SIGCONT)

    def node_state(self):
        return next(node["state"] for node in self.cluster.status()["nodes"] if node["name"] == "n1")


class Elsewhere(Away):
    settings = {"master": AWAY, "words": "timeout_ms=500"}

    def test_FF_G15_a_job_that_is_requeued_elsewhere_has_its_turn_while_its_first_node_is_away(self):
        count = self.slurm.dir / "out" / "runs"
        script = f"echo run >> {count}; srun -n1 bash -c 'echo $TIMESLICE_JOB; [ $(wc -l < {count}) = 2 ] || exec sleep 1000'"
        job = self.slurm.sbatch(script, RL, "--requeue", "-wn1")
        self.wait_phase(f"{job}.0", "holding")
        self.cut()
        self.slurm.run("scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=test")
        until(lambda: self.slurm.job(job)["JobState"] == "PENDING", lambda: f"it is requeued: {self.slurm.job(job)}")
        self.slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=n2", "StartTime=now+2seconds")
        self.assertEqual(self.slurm.wait(job)["JobState"], "COMPLETED", self.slurm.errors(job))
        self.assertEqual(self.slurm.output(job).split()[-1], f"{job}-1.0")
        self.mend()
        self.slurm.run("scontrol", "update", "NodeName=n1", "State=RESUME")
        until(self.slurm.is_ready, "the node is back")
        until(lambda: self.node_state() == "up", "and its daemon")
        self.assert_free(f"{job}.0", f"{job}-1.0")


class Heard(Away):
    settings = {"hears": True, "master": AWAY, "words": "timeout_ms=500"}

    def test_FF_G15_a_node_that_slurm_has_lost_too_is_dead_and_its_job_no_ghost(self):
        self.holder()
        self.cut()
        self.slurm.kill_daemon("n1")
        self.cluster.master.wait_for(r"\bslurm-node-down node=n1")
        until(lambda: not self.jobs(), lambda: f"the job has gone with it: {self.jobs()}")
        self.assertEqual(self.node_state(), "dead")
        self.mend()
        self.slurm.start_slurmd("n1")
        until(self.slurm.is_ready, "the node is back")
        until(lambda: self.node_state() == "up", "and its daemon")
        self.assert_free("1.0")

    def test_a_job_that_ends_while_its_node_is_cut_off_is_over_for_the_master_and_ends_there_later(self):
        self.holder()
        self.cut()
        self.slurm.run("scancel", "1")
        self.cluster.master.wait_for(r"\bslurm-ended job=rl/1\.0 slurm_job=1\b")
        self.mend()
        self.assert_free("1.0")

    def test_a_job_that_runs_is_left_alone_however_often_slurm_is_asked(self):
        job = self.holder()
        self.cut()
        self.mend()
        until(lambda: self.node_state() == "up", "its node is back")
        self.slurm.kill_daemon("slurmctld")
        self.cluster.master.wait_for(r"\bslurm-unheard\b")
        before = self.cluster.master.mark()
        self.slurm.start_slurmctld()
        self.cluster.master.wait_for(r"\bslurm-heard\b", since=before)
        until(self.slurm.is_ready, "Slurm is back")
        self.assertEqual(self.cluster.master.said(r"\bslurm-ended\b"), [])
        self.assertEqual(job.ask("check 1"), "same")
        job.end()
        self.assert_free("1.0")

    def test_FF_G11_the_state_of_a_suspended_job_stays_where_it_is_and_who_waits_is_told_until_it_is_resumed(self):
        first = self.holder()
        first.ask("yield")
        self.assertEqual(self.slurm.run("scontrol", "suspend", "1").returncode, 0)
        self.cluster.master.wait_for(r"\bslurm-suspended job=rl/1\.0 slurm_job=1\b")
        other = self.slurm.puppet(RL, "-wn1")
        until(lambda: "stopped by a signal" in self.jobs().get("2.0", {}).get("detail", ""),
              lambda: f"it is told why it waits: {self.jobs()}")
        self.assertIn("scontrol resume 1", self.jobs()["1.0"]["detail"])
        self.assertEqual(self.slurm.run("scontrol", "resume", "1").returncode, 0)
        other.ask("join")
        other.ask("acquire 0")
        other.take_memory(48 << 20, 2)
        other.ask("yield")
        first.ask("acquire 0")
        self.assertEqual(first.ask("check 1"), "same")
        self.cluster.master.wait_for(r"\bslurm-resumed job=rl/1\.0")
        first.end()
        other.end()
        self.assert_free("1.0", "2.0")


    def test_FF_G11_a_holder_that_is_suspended_keeps_its_turn_and_goes_on_with_it(self):
        first = self.holder()
        self.assertEqual(self.slurm.run("scontrol", "suspend", "1").returncode, 0)
        self.cluster.master.wait_for(r"\bslurm-suspended job=rl/1\.0 slurm_job=1\b")
        other = self.slurm.puppet(RL, "-wn1")
        self.wait_phase("2.0", "waiting")
        self.assertIn("scontrol resume 1", self.jobs()["1.0"]["detail"])
        self.assertEqual(self.slurm.run("scontrol", "resume", "1").returncode, 0)
        self.assertEqual(first.ask("check 1"), "same")
        first.ask("yield")
        other.ask("join")
        other.ask("acquire 0")
        other.take_memory(48 << 20, 2)
        first.end()
        other.end()
        self.assert_free("1.0", "2.0")


class Preempted(Turns):
    """A partition whose jobs drive others out. Who has been driven out leaves nothing to whoever comes."""
    MODE = "PreemptType=preempt/partition_prio\nPreemptMode={}\nPartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF"

    def preempt(self):
        high = self.slurm.puppet(RL, "-phigh", "--exclusive", "-wn1")
        high.ask("join")
        high.ask("acquire 0")
        high.take_memory(48 << 20, 2)
        self.assertEqual(high.ask("check 2"), "same")
        return high


class Cancelled(Preempted):
    settings = {"hears": True, "extra": Preempted.MODE.format("CANCEL")}

    def test_FF_G11_jobs_that_slurm_cancels_for_another_leave_turn_and_snapshot_behind(self):
        saved = self.holder()
        saved.ask("yield")
        self.holder()
        self.wait_phase("1.0", "idle")
        self.preempt().end()
        self.assertEqual([self.slurm.job(number)["JobState"] for number in (1, 2)], ["PREEMPTED"] * 2)
        self.assert_free("1.0", "2.0", "3.0")


class Requeued(Preempted):
    settings = {"hears": True, "extra": Preempted.MODE.format("REQUEUE")}

    def test_FF_G11_a_job_that_slurm_requeues_for_another_comes_back_for_its_turn(self):
        job = self.slurm.sbatch("srun -n1 sleep 1000", RL, "--requeue", "-wn1")
        self.wait_phase(f"{job}.0", "holding")
        high = self.preempt()
        self.assertEqual(self.slurm.job(job)["JobState"], "PENDING")
        self.assertNotIn(f"{job}.0", self.jobs())
        high.end()
        self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now+2seconds")
        self.wait_phase(f"{job}-1.0", "holding")
        self.slurm.run("scancel", job)
        self.assert_free(f"{job}.0", f"{job}-1.0")


class Gang(Turns):
    settings = {"hears": True, "extra": "PreemptMode=SUSPEND,GANG\nPreemptType=preempt/partition_prio"}

    def test_FF_G11_a_step_is_refused_where_slurm_stops_jobs_in_turn(self):
        self.cluster.master.wait_for(r"\bslurm-rules\b")
        done = self.slurm.srun("-n1", "-wn1", RL, "echo", "it ran")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertIn("timeslice: node n1: step 1.0 cannot take turns in group rl: PreemptMode=GANG,SUSPEND of slurm.conf stops "
                      "jobs in turn, also the one whose turn it is: the site sets PreemptMode=OFF and restarts slurmctld",
                      done.stderr)
        self.assertEqual(self.slurm.srun("-n1", "true").returncode, 0)
        self.assertEqual(self.slurm.drained(), [])


class Epilog(Away):
    settings = {"master": {**AWAY, "slurm_grace": "300 ms"}, "words": "timeout_ms=500",
                "epilog": os.environ.get("SLURM_EPILOG")}

    def test_a_job_is_over_by_the_epilog_of_slurmctld_also_where_its_node_does_not_say_so(self):
        self.holder()
        self.cut()
        self.slurm.run("scancel", "1")
        self.cluster.master.wait_for(r"\bslurm-ended job=rl/1\.0 slurm_job=1 why=\"its epilog was long ago\"")
        self.mend()
        self.assert_free("1.0")

    def test_of_a_job_that_has_ended_everywhere_its_epilog_finds_nothing(self):
        self.holder().end()
        self.assert_free("1.0")
        self.assertEqual(self.cluster.master.said(r"\bslurm-ended\b"), [])


if __name__ == "__main__":
    report.main()
