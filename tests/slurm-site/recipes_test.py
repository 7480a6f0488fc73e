#!/usr/bin/env python3
"""The recipes of conf/slurm in a real Slurm: it takes them, and two jobs share what they shall share.

usage: recipes_test.py SOURCE_ROOT PATH_OF_TSCTL
"""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
import slurm_site  # noqa: E402
from slurm_site import Recipe, Site  # noqa: E402

TSCTL = sys.argv.pop(2) if len(sys.argv) > 2 else ""
RECIPES = pathlib.Path(sys.argv.pop(1)) / "conf/slurm"
WHY_NOT = slurm_site.missing()
WAITS = ("Resources", "Priority")


@unittest.skipIf(WHY_NOT, WHY_NOT)
class OfSlurm(unittest.TestCase):
    def recipe(self, name):
        return Recipe(RECIPES / name)

    def submit(self, site, *words):
        """A job that runs until it is cancelled."""
        done = site.command("sbatch", "--parsable", "-p", "rl", "--output=/dev/null", *words, "--wrap",
                            "exec sleep infinity")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def wait_for_state(self, site, job, state):
        site.wait_until(lambda: site.job_state(job)[0] == state, f"job {job} is {state}")

    def wait_until_it_waits(self, site, job):
        site.wait_until(lambda: site.job_state(job)[1] in WAITS, f"job {job} waits for its turn to start")
        self.assertEqual(site.job_state(job)[0], "PENDING")


class Recipes(OfSlurm):
    def check_two_run_and_a_third_waits(self, site, *words):
        a, b, third = (self.submit(site, *words) for _ in range(3))
        self.wait_for_state(site, a, "RUNNING")
        self.wait_for_state(site, b, "RUNNING")
        self.wait_until_it_waits(site, third)
        site.command("scancel", a)
        self.wait_for_state(site, third, "RUNNING")
        self.assertEqual(site.job_state(b)[0], "RUNNING")

    def test_with_tslot_two_jobs_share_whole_nodes_and_a_third_waits(self):
        with Site(self.recipe("tslot")) as site:
            self.check_two_run_and_a_third_waits(site, "-N2", "--gres=tslot:1")

    def test_memory_is_not_shared(self):
        with Site(self.recipe("tslot"), nodes=1) as site:
            self.wait_for_state(site, self.submit(site, "--gres=tslot:1", "--mem=1200"), "RUNNING")
            self.wait_until_it_waits(site, self.submit(site, "--gres=tslot:1", "--mem=1200"))

    def test_with_shards_the_ranks_of_two_jobs_share_the_same_gpus_one_each_and_a_third_waits(self):
        """Before Slurm 23.11 a job gets shards of one GPU only, and the recipe is of no use."""
        if slurm_site.version() < (23, 11):
            return self.check_shards_of_one_gpu()
        with Site(self.recipe("shard")) as site:
            ask = ("-N2", "-n4", "--ntasks-per-node=2", "--tres-per-task=gres/shard:1",
                   "--gres-flags=one-task-per-sharing")
            self.check_two_run_and_a_third_waits(site, *ask)

    def check_shards_of_one_gpu(self):
        with Site(self.recipe("shard").change(",MULTIPLE_SHARING_GRES_PJ", ""), nodes=1) as site:
            for _ in range(2):
                self.wait_for_state(site, self.submit(site, "-n1", "--gres=shard:1"), "RUNNING")
            self.wait_until_it_waits(site, self.submit(site, "-n1", "--gres=shard:3"))

    def test_nodes_that_get_their_configuration_from_slurmctld_have_the_recipe_and_the_line_of_the_plugin(self):
        line = "optional /nowhere/spank_timeslice.so\n"
        with Site(self.recipe("tslot"), configless=True, plugstack=line) as site:
            self.check_two_run_and_a_third_waits(site, "-N2", "--gres=tslot:1")
            for name in site.names:
                sent = site.dir / "run" / name / "slurm/conf"
                self.assertEqual((sent / "plugstack.conf").read_text(), line)
                self.assertIn("Name=tslot Count=2", (sent / "gres.conf").read_text())

    def test_FF_G3_when_the_package_of_the_plugin_is_gone_every_job_starts_and_no_node_is_drained(self):
        with Site(self.recipe("tslot"), nodes=1) as site:
            folder = site.dir / "plugstack.conf.d"
            folder.mkdir()
            (folder / "timeslice.conf").symlink_to("/nowhere/timeslice.conf")
            for line in ("include /nowhere/timeslice.conf", f"include {folder}/*.conf", "optional /nowhere/spank_timeslice.so"):
                (site.dir / "plugstack.conf").write_text(line + "\n")
                done = site.command("srun", "-p", "rl", "-n1", "--gres=tslot:1", "echo", "started")
                self.assertEqual((done.returncode, done.stdout), (0, "started\n"), line + done.stderr)
            site.wait_until(lambda: site.idle() == 1, "the node is idle")


@unittest.skipUnless(TSCTL, "no tsctl given")
class Doctor(OfSlurm):
    def examine(self, site, *words):
        """{verdict: [what]} and the exit code."""
        done = site.command(TSCTL, "--json", "doctor", "--slurm", *words)
        told = json.loads(done.stdout)
        self.assertEqual(told["ok"], done.returncode == 0, done.stderr)
        for check in told["checks"]:
            self.assertEqual(check["cure"] == "", check["verdict"] == "ok", check)
        return {verdict: [c["what"] for c in told["checks"] if c["verdict"] == verdict]
                for verdict in ("ok", "warn", "fail")}

    def plugin_of(self, site):
        plugin = site.dir / "spank_timeslice.so"
        plugin.write_text("")
        return f"optional {plugin}\n"

    def test_a_site_that_follows_the_recipe_has_only_to_mend_what_a_cluster_in_a_folder_lacks(self):
        with Site(self.recipe("tslot")) as site:
            found = self.examine(site)
            self.assertEqual([w.split()[0] for w in found["fail"]], [str(site.dir / "plugstack.conf")])
            self.assertEqual([w.split()[0] for w in found["warn"]], ["ProctrackType"])
            self.assertIn("partition rl: up to 2 jobs share its 2 nodes", found["ok"])

    def test_the_line_of_the_plugin_is_found_where_slurm_looks_for_it(self):
        with Site(self.recipe("tslot"), nodes=1) as site:
            (site.dir / "conf.d").mkdir()
            (site.dir / "plugstack.conf").write_text("include conf.d/*.conf\n")
            (site.dir / "conf.d/timeslice.conf").write_text(self.plugin_of(site))
            self.assertIn(f"{site.dir}/spank_timeslice.so is loaded: {site.dir}/conf.d/timeslice.conf",
                          self.examine(site)["ok"])

    def test_FF_G11_gang_scheduling_is_told_and_jobs_do_what_was_told(self):
        gang = "\nPreemptMode=SUSPEND,GANG\nPreemptType=preempt/partition_prio\n"
        with Site(self.recipe("tslot").change("\nPreemptMode=OFF\n", gang), nodes=1) as site:
            told = [w for w in self.examine(site)["fail"] if w.startswith("partition")]
            self.assertEqual(len(told), 1)
            self.assertIn("PreemptMode=GANG,SUSPEND of the site keeps its jobs apart", told[0])
            self.wait_for_state(site, self.submit(site, "-n8", "--gres=tslot:1"), "RUNNING")
            second = self.submit(site, "-n8", "--gres=tslot:1")
            if slurm_site.version() < (23, 11):
                self.wait_until_it_waits(site, second)
            else:
                self.wait_for_state(site, second, "SUSPENDED")

    def test_a_job_that_takes_all_memory_is_told_and_jobs_do_what_was_told(self):
        with Site(self.recipe("tslot").change(" DefMemPerNode=512000", ""), nodes=1) as site:
            self.assertIn("no DefMemPerNode", self.examine(site)["fail"][0])
            self.wait_for_state(site, self.submit(site, "--gres=tslot:1"), "RUNNING")
            self.wait_until_it_waits(site, self.submit(site, "--gres=tslot:1"))

    def test_nodes_of_two_partitions_and_a_partition_that_does_not_share_are_told(self):
        other = "PartitionName=all Nodes=n[1-2] State=UP\n"
        with Site(self.recipe("tslot"), extra=other) as site:
            told = self.examine(site)["fail"]
            self.assertTrue([w for w in told if w.startswith("partition rl: nodes in other partitions, too (n1, n2)")])
            self.assertEqual([w for w in self.examine(site, "--partition", "rl")["fail"] if " all: " in w], [])
            self.assertTrue([w for w in self.examine(site, "--partition", "all")["fail"]
                             if w.startswith("partition all: OverSubscribe=NO")])
            self.assertIn("no partition is called nix", self.examine(site, "--partition", "nix")["fail"])

    def test_shards_on_a_slurm_that_gives_a_job_one_gpu_only_are_told(self):
        with Site(self.recipe("shard").change(",MULTIPLE_SHARING_GRES_PJ", ""), nodes=1) as site:
            self.assertTrue([w for w in self.examine(site)["fail"] if "a job gets shards of one GPU only" in w])

    def test_a_controller_that_is_away_is_a_finding(self):
        with Site(self.recipe("tslot"), nodes=1) as site:
            site.stop_controller()
            found = self.examine(site, "--timeout", "1s")
            self.assertEqual(len(found["fail"]), 1)
            self.assertTrue(found["fail"][0].startswith("scontrol"), found)


if __name__ == "__main__":
    report.main()
