"""A few seconds of tools/bench chaos: what it finds in hours must not be there in seconds."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests/support"))
import report  # noqa: E402

BENCH = TOP / "tools/bench_chaos/bench_chaos.py"
BUILD = pathlib.Path(os.environ["TSMASTERD"]).parent.parent.parent


def run(*words):
    return subprocess.run([sys.executable, BENCH, "--programs", BUILD, *words], text=True, capture_output=True)


class Chaos(unittest.TestCase):
    def test_faults_at_random_lose_no_job_and_let_nobody_in(self):
        done = run("--minutes", "0.1", "--seed", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
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
