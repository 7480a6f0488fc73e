"""The gate: a task waits for its first turn before it starts, and its program has that turn."""
import os
import pathlib
import re
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import MIB, NOBODY  # noqa: E402
from slurm import as_user, slurm_cluster, until  # noqa: E402

RL = "--timeslice-group=rl"
BIG = 48 * MIB


class Gate(unittest.TestCase):
    def setUp(self):
        self.cluster, self.slurm = self.enterContext(slurm_cluster(nodes=1, kill_wait=300))

    def jobs(self):
        return {job["name"]: job for job in self.cluster.status()["jobs"]}

    def phase(self, name):
        return self.jobs().get(name, {}).get("phase")

    def wait_phase(self, name, *phases):
        until(lambda: self.phase(name) in phases, lambda: f"{name} is {phases}: {self.jobs()}")

    def holder(self):
        """A job of Slurm's that has the turn, and state on the device. Its number in its group is 1.0."""
        holder = self.slurm.puppet(RL)
        holder.ask("join")
        holder.ask("acquire 0")
        holder.take_memory(BIG, 1)
        return holder

    def at_gate(self, *command, words=()):
        waiting = self.slurm.start_command("srun", "-n1", RL, *words, *command, user=NOBODY)
        name = until(lambda: next((n for n, j in self.jobs().items() if j["phase"] == "waiting"), None), "one waits")
        return waiting, name

    def test_the_program_of_a_task_is_the_holder_and_acquires_without_another_turn(self):
        job = self.slurm.puppet(RL)
        job.ask("join")
        self.wait_phase("1.0", "holding")
        job.ask("acquire 0")
        self.assertEqual(self.jobs()["1.0"]["epoch"]["counter"], 1)
        job.ask("yield")
        self.wait_phase("1.0", "idle", "parked")
        job.ask("acquire 0")
        self.assertEqual(self.jobs()["1.0"]["epoch"]["counter"], 2)

    def test_a_task_that_waits_says_why_and_for_how_long_and_starts_when_its_turn_comes(self):
        holder = self.holder()
        waiting, _ = self.at_gate("echo", "it runs")
        said = waiting.stderr.readline()
        job = re.search(r"rl/\d+\.0", said)[0]
        why = self.cluster.tsctl("why", job, wrap=as_user(NOBODY))
        self.assertIn("rl/1.0", why.stdout, why.stderr)
        holder.ask("yield")
        out, err = waiting.communicate(timeout=60)
        err = said + err
        self.assertEqual((waiting.returncode, out), (0, "it runs\n"), err)
        self.assertRegex(err, r"timeslice: job rl/\d+\.0 waits for its first turn before it starts: before it is job "
                              r"rl/1\.0, holding for \d+ s.*\. Slurm's time limit runs meanwhile\.")
        self.assertRegex(err, r"timeslice: job rl/\d+\.0 starts after \d+\.\d s")
        self.assertRegex(err, r"timeslice: job rl/\d+\.0 had 1 turn, waited \d+\.\d s, held \d+\.\d s, moved 48 MiB")
        holder.ask("acquire 0")
        self.assertEqual(holder.ask("check 1"), "same")

    def test_a_program_that_knows_nothing_of_turns_has_one_for_all_of_its_life(self):
        job = self.slurm.start_command("srun", "-n1", RL, "sleep", "1000", user=NOBODY)
        self.wait_phase("1.0", "holding")
        other = self.slurm.puppet(RL)
        until(lambda: "2.0" in self.jobs() and self.phase("2.0") == "waiting", "the next waits")
        self.slurm.run("scancel", "1")
        self.assertEqual(other.ask("join"), "")
        self.assertEqual(job.wait(60) != 0, True)

    def test_a_child_of_the_task_takes_the_turn_over_and_its_own_children_do_not(self):
        script = (f"printf 'join\\nacquire 0\\nyield\\nacquire 0\\nstate\\n' | {os.environ['E2E_PUPPET']}; "
                  f"echo $?; tsctl() {{ :; }}")
        done = self.slurm.srun("-n1", RL, "bash", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split()[-1], "0")
        self.assertNotIn("error", done.stdout)
        self.cluster.nodes[0].daemon.wait_for(r"\btake-over job=rl/1\.0")
        until(lambda: not self.jobs(), lambda: f"nothing is left: {self.jobs()}")

    def test_a_batch_script_is_never_gated_and_its_python_joins_by_itself(self):
        holder = self.holder()
        job = self.slurm.sbatch(f"printf 'join backend=none\\n' | {os.environ['E2E_PUPPET']}; echo started", RL)
        self.assertEqual(self.slurm.wait(job)["JobState"], "COMPLETED", self.slurm.errors(job))
        self.assertIn("started", self.slurm.output(job))
        holder.ask("yield")

    def test_an_open_task_starts_at_once(self):
        holder = self.holder()
        done = self.slurm.srun("-n1", RL, "--timeslice-launch=open", "echo", "it runs")
        self.assertEqual((done.returncode, done.stdout), (0, "it runs\n"), done.stderr)
        self.assertRegex(done.stderr, r"timeslice: job rl/\d+\.0 had no turn on this node\n")
        holder.ask("yield")

    def test_FF_G9_scancel_ends_a_task_at_the_gate_at_once(self):
        holder = self.holder()
        for words in ((), ("-s", "TERM")):
            waiting, name = self.at_gate("echo", "it runs")
            # KillWait is far away: nothing but the first signal can end it.
            step = name if words else name.split(".")[0]
            self.assertEqual(self.slurm.run("scancel", *words, step).returncode, 0)
            out, err = waiting.communicate(timeout=60)
            self.assertNotEqual((waiting.returncode, out), (0, "it runs\n"), err)
            until(lambda: name not in self.jobs(), lambda: f"{name} has no place any more: {self.jobs()}")
        self.assertEqual(self.slurm.drained(), [])
        holder.ask("yield")

    def test_a_task_at_the_gate_keeps_its_place_when_daemons_restart(self):
        holder = self.holder()
        waiting, name = self.at_gate("echo", "it runs")
        node = self.cluster.nodes[0]
        node.daemon.kill()
        node.start_connected()
        self.cluster.master.kill()
        self.cluster.start_master()
        node.daemon.wait_for(r"\bmaster-up\b.*generation=2")
        holder.ask("yield")
        out, err = waiting.communicate(timeout=60)
        self.assertEqual((waiting.returncode, out), (0, "it runs\n"), err)

    def test_FF_G9_a_task_at_the_gate_dies_with_its_slurmstepd(self):
        holder = self.holder()
        waiting, name = self.at_gate("echo", "it runs")
        number = name.split(".")[0]
        (daemon,) = self.slurm.step_daemons(number)
        os.kill(daemon, signal.SIGKILL)
        until(lambda: name not in self.jobs(), lambda: f"{name} has no place any more: {self.jobs()}")
        self.slurm.run("scancel", number)
        waiting.kill()
        self.assertNotIn("it runs", waiting.communicate()[0])
        holder.ask("yield")


if __name__ == "__main__":
    report.main()
