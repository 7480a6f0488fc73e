"""How a user asks for turns, in every way there is, and what their job gets."""
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import NOBODY  # noqa: E402
from slurm import LIBRARY, PRELOAD, slurm_cluster, until  # noqa: E402

RL = "--timeslice-group=rl"
SHOW = "env | grep -E '^(TIMESLICE|LD_PRELOAD|NCCL)' | sort"
ECHO = ["bash", "-c", "echo ${TIMESLICE_GROUP:-none} $TIMESLICE_JOB"]


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster, cls.slurm = cls.enterClassContext(slurm_cluster(
            nodes=2, groups={"rl": {"environment": {"NCCL_DEBUG": "WARN", "NCCL_TIMEOUT": "7200 s"}}}))

    def assert_group(self, done, group, kind=r"\d+"):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, rf"^{group} \d+\.{kind}\n", done.stderr)

    def batch(self, script, *words, env=None):
        job = self.slurm.sbatch(script, *words, env=env)
        self.assertEqual(self.slurm.wait(job)["JobState"], "COMPLETED", self.slurm.errors(job))
        return self.slurm.output(job)

    def test_FF_G1_srun_sbatch_and_salloc_take_the_option_the_directive_and_the_variable(self):
        variable = {"TIMESLICE_GROUP": "rl"}
        self.assert_group(self.slurm.srun("-n1", RL, *ECHO), "rl")
        self.assert_group(self.slurm.srun("-n1", *ECHO, env=variable), "rl")
        echo = "echo ${TIMESLICE_GROUP:-none} $TIMESLICE_JOB"
        for words, directive, env in (([RL], "", {}), ([], f"#SBATCH {RL}\n", {}), ([], "", variable)):
            self.assertRegex(self.batch(f"{directive}{echo}; srun -n1 bash -c '{echo}'", *words, env=env),
                             r"^rl \d+\.batch\nrl \d+\.0\n$")
        for words, env in (([RL], {}), ([], variable)):
            done = self.slurm.run("salloc", "-n1", *words, "srun", *ECHO, user=NOBODY, env=env)
            self.assert_group(done, "rl")

    def test_FF_G1_the_help_of_each_command_shows_the_options(self):
        for command in ("srun", "sbatch", "salloc"):
            said = self.slurm.run(command, "--help").stdout
            for option in ("group=NAME", "priority=N", "backend=NAME", "mode=cooperative", "launch=gated", "gang=N"):
                self.assertIn(f"--timeslice-{option}", said, command)
            words = " ".join(said.split())
            self.assertIn("how device state moves: cuda, none or turns; default: the node's", words, command)
            self.assertIn("transparent is not available yet", words, command)

    def test_FF_G5_a_job_whose_submission_knew_no_plugin_asks_by_its_environment(self):
        """As slurmrestd submits: the options of plugins cannot be told there."""
        self.slurm.write_plugstack("", None)
        self.addCleanup(self.slurm.set_words, self.slurm.words)
        out = self.batch(f"{SHOW}; echo; srun -n1 bash -c \"{SHOW}\"", env={"TIMESLICE_GROUP": "rl"})
        self.assertRegex(out, r"(?s)TIMESLICE_JOB=\d+\.batch\n.*\n\n.*TIMESLICE_JOB=\d+\.0\n")
        self.slurm.set_words(self.slurm.words)

    def test_who_does_not_ask_gets_nothing(self):
        done = self.slurm.srun("-n1", "bash", "-c", SHOW)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_command_line_beats_the_environment_and_an_inner_srun_the_job(self):
        out = self.batch("\n".join([
            f"srun -n1 {' '.join(map(repr, ECHO))}",
            f"srun -n1 --timeslice-group=blue {' '.join(map(repr, ECHO))}",
            f"TIMESLICE_GROUP=green srun -n1 {' '.join(map(repr, ECHO))}",
            f"TIMESLICE_GROUP=green srun -n1 {RL} {' '.join(map(repr, ECHO))}"]), RL, env={"TIMESLICE_GROUP": "black"})
        self.assertEqual([line.split()[0] for line in out.splitlines()], ["rl", "blue", "green", "rl"])

    def test_a_step_within_a_step_counts_its_own_tasks(self):
        inner = "srun --overlap -n1 bash -c 'echo inner $TIMESLICE_GANG'"
        done = self.slurm.srun("-wn1", "-n2", RL, "--timeslice-launch=open", "bash", "-c",
                               f"test $SLURM_PROCID = 0 || {inner}; echo outer $TIMESLICE_GANG")
        self.assertEqual(sorted(done.stdout.splitlines()), ["inner 1", "outer 2", "outer 2"], done.stderr)

    def test_FF_G14_a_job_whose_user_exports_nothing_is_asked_for_all_the_same(self):
        out = self.batch(f"/bin/bash -c \"{SHOW}\"; srun -n1 /bin/bash -c \"{SHOW}\"", RL, "--export=NONE")
        self.assertRegex(out, r"(?s)TIMESLICE_GROUP=rl\n.*TIMESLICE_JOB=\d+\.batch\n.*TIMESLICE_GROUP=rl\n.*"
                              r"TIMESLICE_JOB=\d+\.0\n")

    def test_FF_G14_the_plugin_is_loaded_in_every_context_without_a_line_of_error(self):
        for words in ([RL], []):
            self.assertEqual(self.slurm.srun("-n1", *words, "true").returncode, 0)
            self.assertEqual(self.slurm.run("salloc", "-n1", *words, "true", user=NOBODY).returncode, 0)
            self.batch("srun -n1 true", *words)
        for path in (self.slurm.dir / "log").iterdir():
            lines = re.findall(r"(?im)^.*error.*$", path.read_text(errors="replace"))
            self.assertEqual([line for line in lines if re.search(r"spank|plugstack|timeslice(?!-e2e)", line)], [], path.name)

    def test_a_task_gets_the_names_the_devices_the_groups_variables_and_the_library_once(self):
        done = self.slurm.srun("-N2", "--ntasks-per-node=2", RL, "--timeslice-priority=-3", "bash", "-c", f"echo $SLURM_PROCID; {SHOW}",
                               env={"LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libutil.so.1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        uuids = {}
        for node in self.cluster.nodes:
            shown = self.cluster.tsctl("nodes", "--json").stdout
            uuids = set(re.findall(r'"uuid": *"(GPU-[^"]+)"', shown))
        for name, value in (("TIMESLICE_GROUP", "rl"), ("TIMESLICE_GROUP_ACTIVE", "1"), ("TIMESLICE_REQUIRED", "1"),
                            ("TIMESLICE_GANG", "4"), ("TIMESLICE_PRIORITY", "-3"), ("TIMESLICE_LIBRARY", LIBRARY),
                            ("NCCL_DEBUG", "WARN"), ("NCCL_TIMEOUT", "7200 s")):
            self.assertEqual(done.stdout.count(f"\n{name}={value}\n"), 4, name)
        self.assertEqual(done.stdout.count(f"\nLD_PRELOAD={PRELOAD}:/usr/lib/x86_64-linux-gnu/libutil.so.1\n"), 4)
        for node in self.cluster.nodes:
            self.assertEqual(done.stdout.count(f"\nTIMESLICE_SOCKET={node.socket}\n"), 2)
        for devices in re.findall(r"TIMESLICE_DEVICES=(\S+)", done.stdout):
            self.assertEqual(len(devices.split(",")), 2)
            if uuids:
                self.assertLessEqual(set(devices.split(",")), uuids)
        nested = self.batch("srun -n1 bash -c 'echo $LD_PRELOAD'", RL, env={"LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libutil.so.1"})
        self.assertEqual(nested.count(PRELOAD), 1)

    def test_a_preload_list_that_is_too_long_to_read_stays_as_it_is(self):
        long = ":".join(["/usr/lib/x86_64-linux-gnu/libutil.so.1"] * 130)
        done = self.slurm.srun("-n1", RL, "bash", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": long})
        self.assertEqual((done.returncode, done.stdout), (0, long + "\n"), done.stderr)
        self.assertIn(f"timeslice: LD_PRELOAD is longer than 4095 bytes: {PRELOAD} is not put before it", done.stderr)

    def test_a_step_with_gpus_claims_those_and_one_without_all_of_the_node(self):
        both = self.slurm.srun("-n1", "-wn1", RL, "bash", "-c", "echo $TIMESLICE_DEVICES").stdout.strip().split(",")
        self.assertEqual(len(both), 2)
        second = self.batch("srun --exact -n1 --gres=gpu:1 sleep 0.2 & srun --exact -n1 --gres=gpu:1 bash -c "
                            "'echo $SLURM_STEP_GPUS $TIMESLICE_DEVICES' & wait", RL, "-pgpu", "-n2", "--gres=gpu:2",
                            "--timeslice-launch=open", "-wn1")
        index, device = second.split()
        self.assertEqual(device, both[int(index)])

    def test_the_tasks_of_a_heterogeneous_job_are_one_gang(self):
        out = self.batch("#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\nsrun --het-group=0,1 bash -c 'echo $TIMESLICE_JOB "
                         "$TIMESLICE_GANG'", RL)
        self.assertEqual(len(set(out.splitlines())), 1, out)
        self.assertRegex(out, r"^(\d+\.0 3\n){3}$")

    def test_a_job_that_a_requeued_one_submits_is_in_its_first_run(self):
        out = self.batch("echo $TIMESLICE_JOB; srun -n1 bash -c 'echo $TIMESLICE_JOB'", RL, env={"SLURM_RESTART_COUNT": "3"})
        self.assertRegex(out, r"^\d+\.batch\n\d+\.0\n$")

    def test_a_job_without_a_group_that_a_requeued_one_submits_has_steps_in_their_first_run(self):
        out = self.batch(f"srun -n1 {RL} bash -c 'echo $TIMESLICE_JOB'", env={"SLURM_RESTART_COUNT": "3"})
        self.assertRegex(out, r"^\d+\.0\n$")

    def test_each_task_of_an_array_is_a_job_of_its_own(self):
        job = self.slurm.sbatch("echo $TIMESLICE_JOB", RL, "--array=1-3")
        until(lambda: not self.slurm.run("squeue", "-h", "-j", job).stdout, "the array is over")
        names = [(self.slurm.dir / "out" / f"{job}_{i}.out").read_text() for i in (1, 2, 3)]
        self.assertEqual(len(set(names)), 3, names)

    def test_FF_G8_the_plugin_leaves_no_descriptor_in_the_task(self):
        done = self.slurm.srun("-n1", RL, "bash", "-c", "ls -l /proc/self/fd; ls /proc/self/fd | wc -l")
        asks_not = self.slurm.srun("-n1", "bash", "-c", "ls -l /proc/self/fd; ls /proc/self/fd | wc -l")
        self.assertNotIn("socket", done.stdout)
        self.assertEqual(done.stdout.split()[-1], asks_not.stdout.split()[-1])

    def test_FF_G8_the_plugin_leaves_no_thread_and_no_descriptor_in_slurmstepd(self):
        def kept(*words):
            srun = self.slurm.start_command("srun", "-n1", "-wn1", "--unbuffered", *words, "bash", "-c",
                                            "echo $SLURM_JOB_ID; exec sleep 1000", user=NOBODY)
            job = int(srun.stdout.readline())
            (daemon,) = self.slurm.step_daemons(job)
            self.addCleanup(srun.communicate, timeout=60)
            self.addCleanup(self.slurm.run, "scancel", job)
            return pathlib.Path(f"/proc/{daemon}")

        def has(proc):
            files = sorted(re.sub(r"[0-9]+", "N", os.readlink(fd)) for fd in (proc / "fd").iterdir())
            return len(list((proc / "task").iterdir())), files

        ours, plain = kept(RL), kept()
        until(lambda: has(ours) == has(plain), lambda: f"they have the same: {has(ours)}, {has(plain)}")


if __name__ == "__main__":
    report.main()
