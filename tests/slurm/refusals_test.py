"""What goes wrong is a sentence on the user's stderr and a failed job; no node is drained, and the next job runs."""
import os
import pathlib
import re
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import NOBODY  # noqa: E402
from slurm import PLUGIN, slurm_cluster, until  # noqa: E402

RL = "--timeslice-group=rl"
NAMES = "use 1 to 63 of A-Z a-z 0-9 . _ -"


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Nothing here has device state: without a driver the whole file takes half of its time.
        cls.cluster, cls.slurm = cls.enterClassContext(slurm_cluster(
            nodes=2, cards=None, words="timeout_ms=1500 gather_ms=2000", node={"devices": 2},
            groups={"closed": {"users": ["root"]}, "rl": {"environment": {"NCCL_DEBUG": "WARN"}}}))

    def setUp(self):
        self.addCleanup(self.assert_sound)

    def assert_sound(self):
        """Whatever the test has broken and mended: nothing is left of it."""
        self.assertEqual(self.slurm.drained(), [])
        until(lambda: not self.slurm.run("squeue", "-h").stdout, "the queue is empty")
        until(lambda: not self.cluster.status()["jobs"], lambda: f"no ghost: {self.cluster.status()['jobs']}")
        self.assertEqual(self.slurm.srun(RL, "true").returncode, 0)

    def said(self, text):
        """Without what differs from run to run, and without Slurm's own words."""
        text = re.sub(r"step \d+\.", "step J.", text.replace(str(self.cluster.dir), "DIR"))
        return sorted({line for line in text.splitlines() if line.startswith("timeslice:")})

    def refused(self, sentence, *words, tasks=("-wn1", "-n2"), env=None):
        """By srun and by sbatch: the same sentence, a failed job."""
        done = self.slurm.srun(*tasks, *words, "true", env=env)
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.said(done.stderr), [f"timeslice: node n1: step J.0 cannot take turns in group {sentence}"])
        job = self.slurm.sbatch("echo it ran", "-wn1", *words, env=env)
        self.assertEqual(self.slurm.wait(job)["JobState"], "FAILED")
        self.assertEqual(self.slurm.output(job), "")
        self.assertEqual(self.said(self.slurm.errors(job)),
                         [f"timeslice: node n1: step J.batch cannot take turns in group {sentence}"])

    # --- by the local commands

    def test_FF_F2_FF_G4_a_wrong_value_is_refused_before_anything_is_submitted(self):
        for option, problem in ((f"{RL} x", NAMES), ("--timeslice-group=$(id)", NAMES), ("--timeslice-group=", NAMES),
                                ("--timeslice-priority=high", "use a whole number from -10000 to 10000"),
                                ("--timeslice-mode=transparent", "it is not available yet; use cooperative"),
                                ("--timeslice-launch=shut", "use gated or open"),
                                ("--timeslice-gang=-2", "use a whole number up to 1000000, tasks or no")):
            for command in (["srun", "-n1", option, "true"], ["salloc", "-n1", option, "true"],
                            ["sbatch", option, "--wrap", "true"]):
                with self.subTest(option=option, command=command[0]):
                    done = self.slurm.run(*command, user=NOBODY)
                    self.assertEqual(done.returncode, 255, done.stderr)
                    self.assertEqual(done.stderr.splitlines()[0], f"timeslice: {option}: {problem}")
        self.assertEqual(self.slurm.run("squeue", "-h", "-t", "all", "-n", "wrap").stdout, "")

    def test_FF_G4_a_wrong_variable_is_refused_like_the_option_but_only_with_a_group(self):
        for command in (["srun", "-n1", "true"], ["sbatch", "--wrap", "true"]):
            done = self.slurm.run(*command, env={"TIMESLICE_GROUP": "a b"}, user=NOBODY)
            self.assertEqual((done.returncode, self.said(done.stderr)), (1, [f"timeslice: TIMESLICE_GROUP=a b: {NAMES}"]))
        done = self.slurm.srun("true", env={"TIMESLICE_PRIORITY": "high"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_an_option_without_a_group_is_refused(self):
        done = self.slurm.srun("--timeslice-priority=4", "true")
        self.assertEqual((done.returncode, self.said(done.stderr)),
                         (1, ["timeslice: --timeslice-priority=4: of which group? add --timeslice-group=NAME"]))

    # --- by the node

    def test_FF_G4_a_node_daemon_that_is_down_is_named_with_the_command_that_starts_it(self):
        node = self.cluster.nodes[0]
        node.daemon.stop()
        self.addCleanup(lambda: node.daemon.alive() or node.start_connected())
        self.refused("rl: there is no node daemon at DIR/n1/node.sock (Connection refused); it is started with: "
                     "systemctl start tsnoded.socket tsnoded", RL)
        self.assertEqual(self.slurm.srun("-n1", "-wn1", "true").returncode, 0, "who does not ask does not notice")
        node.start_connected()

    def test_FF_G4_a_node_daemon_that_hangs_is_waited_for_as_long_as_plugstack_says(self):
        pid = self.cluster.nodes[0].daemon.pid
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        self.refused("rl: the node daemon at DIR/n1/node.sock has not answered within 1500 ms; see its log", RL)
        os.kill(pid, signal.SIGCONT)

    def test_FF_G4_a_master_that_is_down_is_named_with_its_address(self):
        self.cluster.master.stop()
        self.addCleanup(lambda: self.cluster.master.alive() or self.cluster.start_master())
        for node in self.cluster.nodes:
            node.daemon.wait_for(r"\bmaster-down\b")
        done = self.slurm.srun("-wn1", "-n1", RL, "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(self.said(done.stderr)[0], rf"^timeslice: node n1: step J\.0 cannot take turns in group rl: "
                                                    rf".*{re.escape(self.cluster.address)}")
        self.cluster.start_master()
        for node in self.cluster.nodes:
            node.daemon.wait_for(r"\bmaster-up\b.*generation=[^1]")

    def test_FF_G4_a_master_that_hangs_costs_no_more_than_one_that_is_down(self):
        pid = self.cluster.master.pid
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        self.refused("rl: neither the devices of node n1 nor the master have answered in time", RL)
        os.kill(pid, signal.SIGCONT)

    def test_a_group_that_is_closed_to_the_user_says_so(self):
        self.refused('closed: uid 65534 may not use group "closed"; see its `users` in master.toml',
                     "--timeslice-group=closed")

    def test_a_gang_that_is_not_the_tasks_of_its_step_is_refused_at_once(self):
        for gang, what in ((16, "16 is more than its 4 tasks: leave --timeslice-gang out, or add --timeslice-launch=open where "
                                "the tasks start the others"),
                           (2, "2 is less than its 4 tasks: leave --timeslice-gang out, or add --timeslice-launch=open where "
                               "not all of them take turns")):
            wish = (RL, f"--timeslice-gang={gang}")
            done = self.slurm.srun("-N2", "-n4", *wish, "true")
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(self.said(done.stderr), [
                f"timeslice: node {node}: step J.0 cannot take turns in group rl: a gang of {what}" for node in ("n1", "n2")])
            self.assertEqual(self.slurm.srun("-N2", "-n4", *wish, "--timeslice-launch=open", "true").returncode, 0)
        self.assertEqual(self.slurm.srun("-N2", "-n4", RL, "--timeslice-gang=no", "true").returncode, 0)

    def test_a_backend_that_the_node_does_not_have_is_named_with_those_it_has(self):
        self.refused('rl: no backend "cuda" here; there are none, turns', RL, "--timeslice-backend=cuda")

    def test_FF_F2_a_forged_option_is_refused_by_the_node(self):
        env = {"_SLURM_SPANK_OPTION_timeslice_timeslice_group": "a b"}
        done = self.slurm.srun("-n1", "-wn1", "true", env=env)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.said(done.stderr),
                         [f"timeslice: node n1: step J.0 cannot take turns: --timeslice-group=a b: {NAMES}"])
        done = self.slurm.srun("-n1", RL, f"--export=PATH,TIMESLICE_GROUP=../../{'x' * 3000}", "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(self.said(done.stderr)[0], r"TIMESLICE_GROUP=\.\./\.\./x+: use 1 to 63 of")

    def test_FF_G4_an_unknown_word_in_plugstack_is_named_to_whoever_asks_for_turns_and_to_nobody_else(self):
        self.slurm.set_words("colour=red")
        self.addCleanup(self.slurm.set_words, self.slurm.words)
        problem = "plugstack.conf: 'colour=red' is unknown; there are socket= timeout_ms= gather_ms= " \
                  "on_error=fail|standalone client= preload="
        done = self.slurm.srun("-n1", RL, "true")
        self.assertEqual((done.returncode, self.said(done.stderr)), (1, [f"timeslice: {problem}"]))
        done = self.slurm.srun("-n1", "true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.slurm.write_plugstack(self.slurm.plugin_line(), None)  # where it is submitted all is well
        self.refused(f"rl: {problem}", RL)
        self.slurm.set_words(self.slurm.words)

    def test_a_site_may_let_jobs_run_without_turns_and_they_are_told(self):
        self.slurm.set_words("timeout_ms=1500 on_error=standalone")
        self.addCleanup(self.slurm.set_words, self.slurm.words)
        node = self.cluster.nodes[0]
        node.daemon.stop()
        done = self.slurm.srun("-n2", "-wn1", RL, "bash", "-c", "echo ${TIMESLICE_GROUP:-none} ${TIMESLICE_REQUIRED:-no}")
        self.assertEqual((done.returncode, done.stdout), (0, "none no\nnone no\n"))
        self.assertRegex(self.said(done.stderr)[0], "; it runs without time slicing$")
        node.start_connected()
        done = self.slurm.srun("-n1", "--timeslice-group=closed", "true")
        self.assertNotEqual(done.returncode, 0, "a no is a no")
        self.slurm.set_words(self.slurm.words)

    # --- plugins

    def test_FF_G2_where_the_plugin_is_missing_a_join_fails_and_names_the_node(self):
        self.slurm.write_plugstack("", "n2")
        self.addCleanup(self.slurm.set_words, self.slurm.words)
        done = self.slurm.srun("-n1", "-wn2", RL, "bash", "-c", "echo ${TIMESLICE_GROUP_ACTIVE:-no}; exec python3 -c '"
                               "import timeslice; timeslice.join()'")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "no\n")
        self.assertIn("n2", done.stderr)
        # Where it is there tasks do not wait for those of the other node for ever.
        done = self.slurm.srun("-N2", "-n2", RL, "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.said(done.stderr), [
            "timeslice: node n1: step J.0 cannot take turns in group rl: 1 of its 2 tasks are ready after 2000 ms, and none "
            "starts without the others; their own messages say why"])
        self.slurm.set_words(self.slurm.words)

    def test_FF_G3_a_plugin_for_another_slurm_is_not_loaded_and_breaks_nobody(self):
        version = re.search(r"(\d+)\.(\d+)\.(\d+)", self.slurm.run("srun", "--version").stdout)
        major, minor, micro = map(int, version.groups())
        ours = (major << 16 | minor << 8 | micro).to_bytes(4, "little")
        other = self.slurm.dir / "etc" / "spank_timeslice.so"
        image = pathlib.Path(PLUGIN).read_bytes()
        self.assertEqual(image.count(ours), 1)
        other.write_bytes(image.replace(ours, ((major + 1) << 16 | minor << 8).to_bytes(4, "little")))
        self.slurm.write_plugstack(self.slurm.plugin_line(plugin=other))
        self.addCleanup(self.slurm.set_words, self.slurm.words)
        self.assertEqual(self.slurm.srun("-n1", "true").returncode, 0)
        job = self.slurm.sbatch("echo it ran")
        self.assertEqual(self.slurm.wait(job)["JobState"], "COMPLETED")
        done = self.slurm.srun("-n1", RL, "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unrecognized option '--timeslice-group=rl'", done.stderr)
        self.slurm.set_words(self.slurm.words)


class Required(unittest.TestCase):
    """A site that writes `required` is not punished for it, as long as the plugin is there."""

    def test_FF_G4_a_required_plugin_refuses_as_an_optional_one_does(self):
        with slurm_cluster(nodes=1, cards=None, node={"devices": 1}, loading="required", words="timeout_ms=500") as (c, s):
            node = c.nodes[0]
            node.daemon.stop()
            done = s.srun("-n1", RL, "true")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("there is no node daemon", done.stderr)
            job = s.sbatch("echo it ran", RL)
            self.assertEqual((s.wait(job)["JobState"], s.output(job)), ("FAILED", ""))
            self.assertIn("there is no node daemon", s.errors(job))
            self.assertEqual(s.srun("-n1", "true").returncode, 0)
            node.start_connected()
            self.assertEqual(s.srun("-n1", RL, "true").returncode, 0)
            self.assertEqual(s.drained(), [])


if __name__ == "__main__":
    report.main()
