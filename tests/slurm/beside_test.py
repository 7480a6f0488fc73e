"""Jobs beside those that slice, in containers, and at their time limit."""
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import MIB, NOBODY  # noqa: E402
from slurm import slurm_cluster, until  # noqa: E402

RL = "--timeslice-group=rl"
BIG = 48 * MIB
JOIN = "import timeslice; timeslice.join(); print(timeslice.client() and 'joined')"


class Beside(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster, cls.slurm = cls.enterClassContext(slurm_cluster(nodes=1, words="gather_ms=20000"))

    def jobs(self):
        return {job["name"]: job for job in self.cluster.status()["jobs"]}

    def assert_nothing_left(self):
        until(lambda: not self.jobs(), lambda: f"nothing is left: {self.jobs()}")
        self.assertEqual(self.slurm.drained(), [])

    def test_a_job_outside_any_group_on_a_device_of_the_claim_is_named_with_the_refused_job(self):
        stranger = self.slurm.start_command("srun", "-n1", os.environ["E2E_PUPPET"], MIB, user=NOBODY)
        holds = until(lambda: self.slurm.run("squeue", "-h", "-o", "%i", "-t", "running").stdout.strip(), "it runs")
        shown = [os.environ["SIMGPU_CARD"], "show", self.cluster.nodes[0].cards, "--json"]
        until(lambda: json.loads(self.slurm.run(*shown).stdout)["cards"][0]["processes"], "it has device memory")
        done = self.slurm.srun("-n1", RL, "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, rf"step \d+\.0 cannot take turns in group rl: Slurm job {holds} uses a device of its claim "
                                      r"outside any group \(process \d+ on node n1\)")
        self.assertIsNone(stranger.poll(), "it is no business of ours")
        self.slurm.run("scancel", holds)
        self.assertNotEqual(stranger.wait(60), 0)
        until(lambda: self.slurm.srun("-n1", RL, "true").returncode == 0, "the next may")
        self.assert_nothing_left()

    def test_steps_beside_each_other_in_one_allocation_take_turns(self):
        feed = "printf 'join\\nacquire 0\\nstart 0\\nalloc {0}\\nfill {1}\\nyield\\nacquire 0\\ncheck {1}\\nyield\\n' | {2}"
        step = "srun --overlap -n1 bash -c \"" + feed + "\""
        script = "\n".join(step.format(BIG, seed, os.environ["E2E_PUPPET"]) + f" > {self.slurm.dir}/out/step{seed} &"
                           for seed in (1, 2)) + "\nwait\n"
        job = self.slurm.sbatch(script, RL)
        self.assertEqual(self.slurm.wait(job)["JobState"], "COMPLETED", self.slurm.errors(job))
        for seed in (1, 2):
            said = (self.slurm.dir / f"out/step{seed}").read_text()
            self.assertIn("ok same", said, self.slurm.errors(job))
            self.assertNotIn("error", said)
        self.assertRegex(self.slurm.errors(job), rf"job rl/{job}\.batch had \d turns, .* moved [1-9]\d* MiB")
        self.assert_nothing_left()

    def in_a_container(self, *mounts):
        """A root of its own in which the folder of the socket is hidden unless it is mounted."""
        root = self.slurm.dir / "root"
        root.mkdir(exist_ok=True)
        hide = f"mount --rbind / {root}; mount -t tmpfs none {root}/dev/shm"
        more = "".join(f"; mkdir -p {root}{path}; mount --bind {path} {root}{path}" for path in mounts)
        return self.slurm.srun("-n1", RL, "unshare", "--mount", "--propagation", "private", "bash", "-c",
                               f"set -e; {hide}{more}; exec chroot {root} /usr/bin/python3 -c \"{JOIN}\"", user=None)

    def test_FF_G7_a_program_in_a_container_takes_turns_where_the_folder_is_mounted_and_is_told_where_not(self):
        done = self.in_a_container(str(pathlib.Path(self.cluster.nodes[0].socket).parent))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.in_a_container()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("mount its folder into the container", done.stderr)
        self.assert_nothing_left()

    def test_a_job_that_reaches_its_time_limit_at_the_gate_is_ended_by_slurm(self):
        """Slurm looks at time limits every half minute, so this takes as long."""
        holder = self.slurm.puppet(RL)
        holder.ask("join")
        job = self.slurm.sbatch("srun -n1 echo it ran", RL, "--time=1")
        until(lambda: self.jobs().get(f"{job}.0", {}).get("phase") == "waiting", "it waits")
        self.assertEqual(self.slurm.wait(job, 300)["JobState"], "TIMEOUT")
        self.assertNotIn("it ran", self.slurm.output(job))
        self.assertIn("Slurm's time limit runs meanwhile.", self.slurm.errors(job))
        holder.end()
        self.assert_nothing_left()


if __name__ == "__main__":
    report.main()
