"""For each hook of Slurm's: our work in it fails, hangs, is refused or answered with nonsense. A job that asked for turns fails with
a sentence where it cannot have them, no other job notices, and no node is drained."""
import pathlib
import re
import subprocess
import sys
import unittest

for folder in ("support", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import report  # noqa: E402
from cluster import NOBODY  # noqa: E402
from local_wire import ACQUIRE, HELLO, JOIN  # noqa: E402
from naysayer import ACCOUNT, NO, STEP_BEGIN, STEP_END, Naysayer  # noqa: E402
from slurm import PLUGIN, slurm_cluster, until  # noqa: E402

RL = "--timeslice-group=rl"
HOWS = ("fails", "hangs", "refuses", "babbles")
CRASHES = ("stammers", "shouts", "trips", "chatters")  # what could make a careless reader end with its process
VERB = {"fails": "fails", "hangs": "hangs", "refuses": "is refused", "babbles": "is answered with nonsense",
        "path": "reads a wrong path", "number": "reads a wrong number", "word": "reads an unknown word",
        "stammers": "gets half an answer", "shouts": "gets an answer without an end", "trips": "gets a folder for a text",
        "chatters": "gets what nobody asked for without an end"}
SAID = {"fails": "the connection was closed by the node daemon at DIR/says-no",
        "hangs": "the node daemon at DIR/says-no has not answered within 700 ms; see its log",
        "refuses": NO,
        "babbles": "there is something that does not speak the protocol at DIR/says-no"}
ROWS = []


def row(number, hook, hows=HOWS):
    """The function that follows is a row: body(test, how)."""
    def add(body):
        ROWS.append((number, hook, hows, body))
        return body
    return add


class Hooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster, cls.slurm = cls.enterClassContext(slurm_cluster(nodes=1, cards=None, node={"devices": 1}))
        cls.node = cls.enterClassContext(Naysayer(cls.cluster.dir / "says-no"))

    def setUp(self):
        self.load("optional")
        self.addCleanup(self.assert_sound)

    def load(self, loading, *words):
        """Everything with the daemon that says no; `words` on the nodes only."""
        self.slurm.loading = loading
        base = f"socket={self.node.path} timeout_ms=700 gather_ms=2000"
        self.slurm.set_words(base)
        if words:
            self.slurm.write_plugstack(self.slurm.plugin_line(" ".join((base, *words))), *self.slurm.names)

    def assert_sound(self):
        self.assertEqual(self.slurm.drained(), [])
        self.node.be_nice()
        self.load("optional")
        self.assert_ends()
        done = self.slurm.srun(RL, "true")
        self.assertEqual((done.returncode, done.stderr), (0, ""), "the next job runs")
        self.assert_ends()

    def said(self, text):
        """Without what differs from run to run, and without Slurm's own words."""
        text = re.sub(r"step \d+\.\w+ ", "step J ", text.replace(str(self.cluster.dir), "DIR"))
        return sorted({line for line in text.splitlines() if line.startswith("timeslice:")})

    def batch(self, *words):
        job = self.slurm.sbatch("echo it ran", *words)
        return self.slurm.wait(job)["JobState"], self.slurm.output(job), self.slurm.errors(job)

    def assert_refused(self, sentence, *words, env=None):
        """By srun and in a batch script: the sentence, a failed job."""
        wanted = [f"timeslice: node n1: step J cannot take turns in group rl: {sentence}"]
        done = self.slurm.srun("-n2", RL, *words, "echo", "it ran", env=env)
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertEqual((done.stdout, self.said(done.stderr)), ("", wanted))
        state, out, err = self.batch(RL, *words)
        self.assertEqual((state, out, self.said(err)), ("FAILED", "", wanted))

    def assert_runs(self, *words):
        """Whatever the node says: with srun, and as a batch script with a step in it."""
        done = self.slurm.srun("-n2", *words, "echo", "it ran")
        self.assertEqual((done.returncode, done.stdout, self.said(done.stderr)), (0, "it ran\n" * 2, []))
        state, out, err = self.batch(*words)
        said = [line for line in self.said(err) if "had no turn" not in line]  # nor does the script ask for one
        self.assertEqual((state, out, said), ("COMPLETED", "it ran\n", []))

    def assert_ends(self):
        """All of it is over and off its node, and Slurm found nothing wrong."""
        until(lambda: not self.slurm.run("squeue", "-h").stdout,
              lambda: "the queue is empty:\n" + self.slurm.run("squeue").stdout)
        self.assertEqual(self.slurm.drained(), [])

    def exported(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", PLUGIN], check=True, capture_output=True, text=True).stdout
        return set(re.findall(r"slurm_spank_(\w+)", symbols))

    def assert_submission_asks_nobody(self):
        """Where jobs are submitted there may be no node daemon at all."""
        self.node.connections = 0
        done = self.slurm.run("sbatch", "-H", RL, "--parsable", "-o", "/dev/null", "--wrap", "true", user=NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.slurm.run("scancel", done.stdout.strip())
        self.assertEqual(self.node.connections, 0)


# --- where jobs are submitted

@row(1, "an option's callback in sbatch srun and salloc", HOWS[:3])
def _(test, how):
    test.node.at(HELLO, how)
    test.assert_submission_asks_nobody()
    if how != "refuses":
        return
    for command in (["srun", RL + "!", "true"], ["salloc", RL + "!", "true"], ["sbatch", RL + "!", "--wrap", "true"]):
        done = test.slurm.run(*command, user=NOBODY)
        test.assertEqual(done.returncode, 255)
        test.assertEqual(test.said(done.stderr), ["timeslice: --timeslice-group=rl!: use 1 to 63 of A-Z a-z 0-9 . _ -"])


@row(2, "init and init_post_opt in sbatch srun and salloc", HOWS[:3])
def _(test, how):
    test.node.at(HELLO, how)
    test.assert_submission_asks_nobody()
    if how != "refuses":
        return
    test.slurm.write_plugstack(test.slurm.plugin_line("timeout_ms=soon"), None)
    for command in (["srun", RL, "true"], ["salloc", RL, "true"], ["sbatch", RL, "--wrap", "true"]):
        done = test.slurm.run(*command, user=NOBODY)
        test.assertEqual(done.returncode, 1)
        test.assertEqual(test.said(done.stderr), ["timeslice: plugstack.conf: 'timeout_ms=soon' is not a whole number of "
                                                  "milliseconds from 1 to 3600000"])


def unused(hook):
    """Not to be there is the best that work in a hook can do; who did not ask is not asked for."""
    def body(test, how):
        test.assertNotIn(hook, test.exported())
        test.node.at(HELLO, how)
        test.assert_runs()
        test.assertEqual(test.node.connections, 0)
    return body


row(3, "local_user_init", HOWS[:3])(unused("local_user_init"))


# --- in slurmstepd

@row(4, "init and init_post_opt in slurmstepd", ("path", "number", "word"))
def _(test, how):
    word, problem = {"path": ("socket=here", "is no absolute path"),
                     "number": ("timeout_ms=4000000", "is not a whole number of milliseconds from 1 to 3600000"),
                     "word": ("colour=red", "is unknown; there are socket= timeout_ms= gather_ms= "
                                            "on_error=fail|standalone client= preload=")}[how]
    test.load("optional", word)
    test.node.be_nice()
    test.assert_refused(f"plugstack.conf: '{word}' {problem}")
    test.assertNotIn(STEP_BEGIN, test.node.heard)
    test.assert_runs()


@row(5, "user_init", HOWS)
def _(test, how):
    test.assertNotIn("task_post_fork", test.exported())
    for kind in (HELLO, STEP_BEGIN):
        test.node.at(kind, how)
        test.assert_refused(SAID[how])
    test.assert_runs()


@row(6, "task_init_privileged and task_init", HOWS)
def _(test, how):
    for kind in (JOIN, ACQUIRE):
        test.node.at(kind, how)
        if kind == ACQUIRE and how in ("fails", "hangs"):
            assert_gate_waits(test, asks=3 if how == "fails" else 1)
            continue
        done = test.slurm.srun("-n2", RL, "echo", "it ran")
        test.assertNotEqual(done.returncode, 0)
        test.assertEqual((done.stdout, test.said(done.stderr)),
                         ("", ["timeslice: node n1: step J cannot take turns in group rl: " + GATE[kind][how]]))


GATE = {JOIN: {"fails": "the connection was closed (node daemon at DIR/says-no); see its log",
               "hangs": "join in group 'rl': the node daemon at DIR/says-no does not answer: it hangs, or the master that it "
                        "waits for does; see its log and tsctl nodes",
               "refuses": f"join in group 'rl': PERMISSION: {NO} (node daemon at DIR/says-no); ask the operator to add you to "
                          "the group's users",
               "babbles": "what came is no message of the protocol (node daemon at DIR/says-no); see its log"},
        ACQUIRE: {"refuses": f"acquire in group 'rl': PERMISSION: {NO} (node daemon at DIR/says-no); ask the operator to add you "
                             "to the group's users",
                  "babbles": "what came is no message of the protocol (node daemon at DIR/says-no); see its log"}}


def assert_gate_waits(test, asks):
    """For as long as the turn takes, through connections that break, and not a moment longer than the job."""
    srun = test.slurm.start_command("srun", "-n1", RL, "echo", "it ran", user=NOBODY)
    until(lambda: test.node.heard.count(ACQUIRE) >= asks, "it asks for its turn")
    test.assertIsNone(srun.poll())
    test.slurm.run("scancel", "-u", "nobody")
    out, _ = srun.communicate(timeout=60)
    test.assertNotEqual((srun.returncode, out), (0, "it ran\n"))


# --- and when it ends

@row(7, "task_exit and exit", HOWS)
def _(test, how):
    for kind in (ACCOUNT, STEP_END):
        test.node.at(kind, how)
        test.assert_runs(RL)
        test.assertIn(kind, test.node.heard)
        test.assert_ends()


row(8, "job_prolog", HOWS[:3])(unused("job_prolog"))


@row(9, "job_epilog", HOWS)
def _(test, how):
    test.node.at(STEP_END, how)
    test.assertIn("job_epilog", test.exported())
    state, *_ = test.batch(RL)
    test.assertEqual(state, "COMPLETED")
    test.assert_ends()
    test.assertGreaterEqual(test.node.heard.count(STEP_END), 2, "of the step, and of the job by its epilog")


@row(10, "an option's callback in slurmstepd", HOWS[:3])
def _(test, how):
    """Whoever forges an option has passed by the command that would have refused it."""
    forged = {"fails": "a b", "hangs": "a/b", "refuses": "../../etc"}[how]
    env = {"_SLURM_SPANK_OPTION_timeslice_timeslice_group": forged}
    test.node.connections = 0
    done = test.slurm.srun("-n1", "true", env=env)
    test.assertNotEqual(done.returncode, 0)
    test.assertEqual(test.said(done.stderr), ["timeslice: node n1: step J cannot take turns: --timeslice-group="
                                              f"{forged}: use 1 to 63 of A-Z a-z 0-9 . _ -"])
    test.assertEqual(test.node.connections, 0)


@row(11, "the epilog with its answer", CRASHES)
def _(test, how):
    test.node.at(STEP_END, how)
    state, *_ = test.batch(RL)
    test.assertEqual(state, "COMPLETED")
    test.assert_ends()
    test.assertGreaterEqual(test.node.heard.count(STEP_END), 2)


@row(12, "a step with its answers", CRASHES)
def _(test, how):
    problem = {"stammers": SAID["babbles"], "chatters": SAID["hangs"], "shouts": "?" * 175,
               "trips": "cannot read the answer of the node daemon at DIR/says-no (Is a directory)"}[how]
    test.node.at(STEP_BEGIN, how)
    test.assert_refused(problem)
    test.node.at(ACCOUNT, how)
    test.assertEqual(test.batch(RL)[0], "COMPLETED")
    test.assert_ends()


@row(13, "a required plugin", HOWS)
def _(test, how):
    """The word of plugstack.conf with which Slurm would listen to what hooks return."""
    test.load("required")
    test.node.at(STEP_BEGIN, how)
    test.assert_refused(SAID[how])
    test.assert_runs()
    for kind in (ACCOUNT, STEP_END):
        test.node.at(kind, how)
        test.assertEqual(test.batch(RL)[0], "COMPLETED")
        test.assert_ends()
    test.load("required", "colour=red")
    test.assertEqual(test.batch(RL)[0], "FAILED")


def sentences():
    """(name, body, how) of each case."""
    for number, hook, hows, body in ROWS:
        for how in hows:
            yield f"test_hook_{number:02}_{hook} {VERB[how]}".replace(" ", "_").replace("'", ""), body, how


def case(body, how):
    return lambda self: body(self, how)


for name, *what in sentences():
    setattr(Hooks, name, case(*what))


if __name__ == "__main__":
    report.main()
