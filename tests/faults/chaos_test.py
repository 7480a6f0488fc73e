"""A few seconds of tools/bench chaos: what it finds in hours must not be there in seconds."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests/support"))
import report  # noqa: E402

BENCH = TOP / "tools/bench_chaos/bench_chaos.py"
BUILD = pathlib.Path(os.environ["TSMASTERD"]).parent.parent.parent


def run(*words):
    return subprocess.run([sys.executable, BENCH, "--programs", BUILD, *words], text=True, capture_output=True)


def told_of_the_lost(told, logs):
    """The last lines of daemons and cards that name a lost job, or a process that it waits for."""
    try:
        lost = json.loads(told)["lost_jobs"]
    except (ValueError, KeyError):
        return told
    words = {one["job"] for one in lost} | {pid for one in lost for pid in re.findall(r"process (\d+)", one["why"])}
    wanted = re.compile(r"\b(%s)\b" % "|".join(map(re.escape, words))) if words else re.compile("$^")
    parts = []
    for file in sorted(pathlib.Path(logs).iterdir()):
        lines = [line for line in file.read_text(errors="replace").splitlines() if wanted.search(line)]
        parts += [f"{file.name}: {line}" for line in lines[-60:]]
    return "\n".join([told, *parts])


class Chaos(unittest.TestCase):
    def test_faults_at_random_lose_no_job_and_let_nobody_in(self):
        with tempfile.TemporaryDirectory(prefix="timeslice-chaos-") as logs:
            done = run("--minutes", "0.1", "--seed", "1", "--json", "--logs", logs)
            if done.returncode != 0:
                self.fail(done.stderr + told_of_the_lost(done.stdout, logs))
        figures = json.loads(done.stdout)
        self.assertEqual((figures["violations"], figures["lost"]), (0, 0))
        self.assertGreater(figures["finished"], 0)
        self.assertGreater(figures["device_calls_checked"], 0)
        self.assertGreater(figures["faults_bit"], 0)

    def test_a_plan_is_shown_without_striking(self):
        plans = [run("--plan", "--seed", seed).stdout for seed in ("3", "3", "4")]
        self.assertIn("master-killed ()", plans[0])
        self.assertEqual(plans[0], plans[1])
        self.assertNotEqual(plans[0], plans[2])

    def test_a_wrong_option_is_usage_and_help_has_examples(self):
        self.assertEqual(run("--nosuch").returncode, 2)
        self.assertIn("Examples:\n  tools/bench chaos", run("--help").stdout)


if __name__ == "__main__":
    report.main()
