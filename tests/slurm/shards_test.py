"""The recipe of single GPUs: jobs ask Slurm for shards, and their ranks take turns on the GPUs that these are of."""
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from share_test import CARD, PATIENCE, digests, training  # noqa: E402
from slurm import free_ports, slurm_cluster, version  # noqa: E402

RL = "--timeslice-group=rl"
ONE_EACH = ("-N2", "-n4", "--ntasks-per-node=2", "--tres-per-task=gres/shard:1", "--gres-flags=one-task-per-sharing")


class Shards(unittest.TestCase):
    def setUp(self):
        self.cluster, self.slurm = self.enterContext(slurm_cluster(
            nodes=2, shards=2, cards=("--cards", "2", "--bytes", str(CARD))))

    def run_training(self, ports, *words):
        """Two jobs at once: [(GPUs that their ranks see, digests)]. With one visible GPU its number is 0."""
        say_where = "srun bash -c 'echo rank on $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES >&2; exec "
        scripts = [training(name, port, device=0).replace("srun bash -c '", say_where) for name, port in ports.items()]
        jobs = [self.slurm.sbatch(script, *ONE_EACH, *words) for script in scripts]
        for job in jobs:
            self.assertEqual(self.slurm.wait(job, PATIENCE)["JobState"], "COMPLETED", self.slurm.errors(job))
        return [(sorted(re.findall(r"rank on (n\d \d)", self.slurm.errors(job))), digests(self.slurm.output(job)))
                for job in jobs]

    def test_each_rank_of_two_jobs_has_a_gpu_of_its_own_and_takes_turns_on_it_with_a_rank_of_the_other(self):
        """Before Slurm 23.11 nobody can ask for that."""
        if version() < (23, 11):
            done = self.slurm.try_sbatch("true", *ONE_EACH, RL)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("unrecognized option '--tres-per-task", done.stderr)
            return
        alone = [self.run_training({name: port})[0] for name, port in zip("ab", free_ports(2))]
        together = self.run_training(dict(zip("ab", free_ports(2))), RL)
        self.assertEqual(together, alone)
        for gpus, _ in together:
            self.assertEqual(gpus, ["n1 0", "n1 1", "n2 0", "n2 1"])
        self.assertTrue(all(node.trace("checkpoint") for node in self.cluster.nodes), "state moved on both nodes")
        self.assertEqual(self.cluster.status()["jobs"], [])
        self.assertEqual(self.slurm.drained(), [])

    def test_a_step_with_a_shard_claims_the_gpu_that_it_is_of_and_no_other(self):
        nodes = json.loads(self.cluster.tsctl("nodes", "--json").stdout)
        (uuids,) = [[device["uuid"] for device in node["devices"]] for node in nodes if node["name"] == "n1"]
        done = self.slurm.srun("-n1", "-wn1", "--gres=shard:1", RL, "bash", "-c", "echo $SLURM_STEP_GPUS $TIMESLICE_DEVICES")
        self.assertEqual(done.returncode, 0, done.stderr)
        index, devices = done.stdout.split()
        self.assertEqual(devices, uuids[int(index)])


if __name__ == "__main__":
    report.main()
