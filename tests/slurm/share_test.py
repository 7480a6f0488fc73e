"""The main row: two sbatch jobs share GPUs that hold only one of them, and lose nothing."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from slurm import DEMO, free_ports, slurm_cluster  # noqa: E402

CARD = 32 << 20
PATIENCE = 300
BALLAST = 20 << 20  # of each rank; the memory of two does not fit a card


def training(job, port, steps=3, device="$SLURM_LOCALID"):
    """Four ranks on two nodes, each with a card of its own; as a user writes it."""
    return f"""
srun bash -c '{DEMO} --rank $SLURM_PROCID --world 4 --peer 127.0.0.1:{port} --device {device} \\
  --name {job} --task {"add" if job == "a" else "subtract"} --seed 7 --steps {steps} --time-scale 0.001 \\
  --ballast-bytes {BALLAST} --json --quiet'
"""


def digests(text):
    ranks = [json.loads(line) for line in text.splitlines()]
    return sorted(rank["digest"] for rank in ranks)


class Share(unittest.TestCase):
    def test_two_sbatch_jobs_of_4_ranks_on_2_nodes_share_cards_that_hold_one_of_them(self):
        size = ("--cards", "2", "--bytes", str(CARD))
        with slurm_cluster(nodes=4, cards=size) as (c, s):
            # Slurm would give the second job the other two nodes.
            shape = ("-wn[2-3]", "-N2", "-n4", "--ntasks-per-node=2", "--gres=tslot:1")
            alone = {}
            for name in "ab":
                job = s.sbatch(training(name, free_ports(1)[0]), *shape)
                self.assertEqual(s.wait(job, PATIENCE)["JobState"], "COMPLETED", s.errors(job))
                alone[name] = digests(s.output(job))
                self.assertEqual(len(alone[name]), 4)
            together = {name: s.sbatch(training(name, port), *shape, "--timeslice-group=rl")
                        for name, port in zip("ab", free_ports(2))}
            for name, job in together.items():
                self.assertEqual(s.wait(job, PATIENCE)["JobState"], "COMPLETED", s.errors(job))
                self.assertEqual(digests(s.output(job)), alone[name], s.errors(job))
                self.assertIn("moved", s.errors(job))
            moved = [node.name for node in c.nodes if node.trace("checkpoint")]
            self.assertEqual(moved, ["n2", "n3"], "state moved on both nodes, and on no other")
            self.assertEqual(s.drained(), [])
            self.assertEqual(c.status()["jobs"], [])


if __name__ == "__main__":
    report.main()
