"""Jobs of Slurm's whose state does not fit beside each other, and what is true when all is well again."""
import unittest

from cluster import MIB
from slurm import slurm_cluster, until

RL = "--timeslice-group=rl"
BIG = 48 * MIB


class Turns(unittest.TestCase):
    settings = {}  # of slurm_cluster

    def setUp(self):
        self.cluster, self.slurm = self.enterContext(slurm_cluster(**{"nodes": 2, **self.settings}))

    def jobs(self):
        return {job["name"]: job for job in self.cluster.status()["jobs"]}

    def wait_phase(self, name, *phases):
        until(lambda: self.jobs().get(name, {}).get("phase") in phases, lambda: f"{name} is {phases}: {self.jobs()}")

    def holder(self, *words):
        """In its first turn, on node n1, with state on the device."""
        job = self.slurm.puppet(RL, "-wn1", *words)
        job.ask("join")
        job.ask("acquire 0")
        job.take_memory(BIG, 1)
        return job

    def assert_free(self, *names):
        """The next job has its turn and the whole device."""
        until(lambda: not set(names) & set(self.jobs()), lambda: f"{names} are gone: {self.jobs()}")
        after = self.slurm.puppet(RL, "-wn1")
        after.ask("join")
        after.ask("acquire 0")
        after.take_memory(BIG, 3)
        self.assertEqual(after.ask("check 3"), "same")
        after.end()
        until(lambda: not self.jobs(), lambda: f"nothing is left: {self.jobs()}")
        self.assertEqual(self.slurm.drained(), [])
