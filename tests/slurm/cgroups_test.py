"""Sites whose Slurm tracks processes by cgroups and opens to a job the devices that it was given, and no other."""
import json
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import Programs  # noqa: E402
from slurm import CGROUPS, is_running, until  # noqa: E402
from turns import BIG, RL, Turns  # noqa: E402

# Which of the node's device files a task may open: an open one has no driver, the others are forbidden.
OPENS = """for gpu in 0 1; do
  case "$(LC_ALL=C; : 2>&1 <$DEVICES/nvidia$gpu)" in *"No such device"*) opens="$opens$gpu" ;; esac
done
echo "$TIMESLICE_DEVICES sees:$CUDA_VISIBLE_DEVICES opens:$opens"
"""


@unittest.skipUnless((CGROUPS / "devices/release_agent").exists(), "no cgroups of version 1 here")
class ByCgroup(Turns):
    def setUp(self):
        self.settings = {"nodes": 1, "cgroups": True, **self.settings}
        super().setUp()

    def what_it_opens(self, *words):
        """[(devices of the claim, what CUDA_VISIBLE_DEVICES says, what can be opened)], by task."""
        done = self.slurm.srun("-wn1", *words, RL, "bash", "-c", OPENS, env={"DEVICES": str(self.slurm.dir / "dev")})
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(claim.split(","), sees, opens) for claim, sees, opens in
                re.findall(r"(\S*) sees:(\S*) opens:(\S*)", done.stdout)]

    def uuids(self):
        nodes = json.loads(self.cluster.tsctl("nodes", "--json").stdout)
        return [device["uuid"] for device in nodes[0]["devices"]]


class Places(ByCgroup):
    """The recipe tslot: Slurm knows no GPUs, so every job of a node opens all of them."""
    settings = {"gpus": False}

    def test_jobs_with_a_place_open_all_gpus_of_the_node_and_take_turns_on_them(self):
        self.assertEqual(self.what_it_opens("-n1", "--gres=tslot:1"), [(self.uuids(), "", "01")])
        first = self.holder("--gres=tslot:1")
        first.ask("yield")
        second = self.holder("--gres=tslot:1")
        second.ask("yield")
        first.ask("acquire 0")
        self.assertEqual(first.ask("check 1"), "same")
        first.end()
        second.end()
        self.assert_free("2.0", "3.0")

    def test_a_program_that_left_its_session_and_its_parent_is_of_the_job_in_whose_cgroup_it_is(self):
        first = self.slurm.puppet(RL, "-wn1", "--gres=tslot:1", before=f"setsid -f {Programs.puppet} {BIG}")
        first.ask("join")
        first.ask("acquire 0")
        stray = int(self.cluster.nodes[0].daemon.wait_for(r"\bmember-seen\b.* pid=(\d+) because=cgroup")[1])
        self.assertEqual(os.getsid(stray), stray)
        first.ask("yield")
        second = self.holder("--gres=tslot:1")  # there is no room for both
        self.assertTrue(self.cluster.nodes[0].trace("checkpoint"))
        second.end()
        first.end()
        until(lambda: not is_running(stray), "it ends with its job")
        self.assert_free("1.0", "2.0")


class Gpus(ByCgroup):
    """Jobs that ask Slurm for GPUs: with devices constrained, each task counts those that it may open from 0."""

    def test_a_step_claims_the_gpu_that_it_may_open_though_it_sees_it_as_number_0(self):
        first = self.slurm.puppet(RL, "-wn1", "-pgpu", "--gres=gpu:1")
        first.ask("join")
        self.assertEqual(self.what_it_opens("-n1", "-pgpu", "--gres=gpu:1"), [([self.uuids()[1]], "0", "1")])
        first.end()


if __name__ == "__main__":
    report.main()
