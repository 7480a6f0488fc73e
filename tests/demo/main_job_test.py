#!/usr/bin/env python3
"""The main job's runner, with a short training: what it prints, and what it leaves behind.

usage: main_job_test.py SOURCE_ROOT BUILD_ROOT
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(2))
SOURCES = os.path.abspath(sys.argv.pop(1))
RUNNER = os.path.join(SOURCES, "tools/demo/run_main_job.py")
sys.path.insert(0, os.path.join(SOURCES, "tools/demo"))
from main_job import report as figures  # noqa: E402

OF_THE_RUN = {"device", "card_bytes", "jobs", "identical", "fits_together", "utilization_alone",
              "utilization_shared", "speedup", "switches"}
OF_A_JOB = {"name", "bytes", "steps", "solo_s", "shared_s", "reward_first", "reward_last", "digest_solo",
            "digest_shared", "busy_solo_s", "busy_shared_s"}


class MainJob(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="main-job-")
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, *words):
        # Its own place for cards, so that what it leaves there can be seen.
        env = {**os.environ, "TMPDIR": self.folder}
        return subprocess.Popen([sys.executable, RUNNER, "--build", BUILD, "--device", "simgpu",
                                 "--cards-in", self.folder, *map(str, words)], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_two_jobs_share_the_cards_of_two_nodes_with_identical_results(self):
        keep = os.path.join(self.folder, "kept")
        run = self.start("--json", "--steps", 3, "--scale", 0.004, "--keep", keep)
        out, err = run.communicate()
        self.assertEqual(run.returncode, 0, err)
        result = json.loads(out.splitlines()[-1])
        self.assertEqual(set(result), OF_THE_RUN)
        for job in result["jobs"]:
            self.assertEqual(set(job), OF_A_JOB)
            self.assertEqual(job["digest_solo"], job["digest_shared"])
            self.assertEqual(job["steps"], 3)
        self.assertIs(result["identical"], True)
        self.assertIs(result["fits_together"], False)
        self.assertGreater(sum(job["bytes"] for job in result["jobs"]), result["card_bytes"])
        # Each of the two has to come back at least once.
        self.assertGreaterEqual(result["switches"], 2)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", err)
        self.assertEqual(os.listdir(self.folder), ["kept"])
        self.assertEqual(sorted(os.listdir(keep)), ["curves", "logs", "result.json"])

    def test_a_run_in_which_nothing_had_to_take_turns_fails_and_says_why(self):
        run = self.start("--json", "--steps", 1, "--scale", 0.001, "--card-mib", 64, "--job-mib", 8)
        out, err = run.communicate()
        self.assertEqual(run.returncode, 1, err)
        self.assertIs(json.loads(out.splitlines()[-1])["fits_together"], True)
        self.assertRegex(err.splitlines()[-1], r"both jobs fit on a card at once .*of 64 MiB.*--job-mib")

    def test_an_interrupted_run_leaves_nothing_behind(self):
        run = self.start("--steps", 1000, "--scale", 0.01)
        for line in run.stderr:
            if " step " in line:
                break
        run.send_signal(signal.SIGINT)
        run.communicate()
        self.assertEqual(run.returncode, 130)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_tree_that_is_not_built_is_named(self):
        run = subprocess.run([sys.executable, RUNNER, "--build", self.folder], text=True, capture_output=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"no {self.folder}/tools/demo/tsdemo: build it with", run.stderr)


class Verdict(unittest.TestCase):
    def verdict(self, *digests, fits=False):
        jobs = [{"name": name, "bytes": 60 << 20, "digest_solo": solo, "digest_shared": shared}
                for name, (solo, shared) in zip("ab", digests)]
        return list(figures.verdict({"jobs": jobs, "fits_together": fits, "card_bytes": 96 << 20}))

    def test_a_digest_that_a_switch_has_changed_is_named_with_the_other(self):
        said = self.verdict(("aaaa", "aaaa"), ("bbbb", "cccc"))
        self.assertEqual(len(said), 1)
        for part in ("job b", "bbbb", "cccc"):
            self.assertIn(part, said[0])

    def test_jobs_that_fit_at_once_have_shown_nothing(self):
        self.assertIn("60 MiB and 60 MiB of 96 MiB", self.verdict(("a", "a"), ("b", "b"), fits=True)[0])

    def test_the_expected_outcome_is_no_reproach(self):
        self.assertEqual(self.verdict(("a", "a"), ("b", "b")), [])


if __name__ == "__main__":
    report.main()
