#!/usr/bin/env python3
"""The demo job as a program, on simulated cards.

usage: tsdemo_test.py BUILD_ROOT
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(1))
TSDEMO = os.path.join(BUILD, "tools/demo/tsdemo")
CHANCE = 0.1
NO_ROOM = 3
USAGE = 2


class OnSimulatedCards(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tsdemo-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, self.folder)
        # What the machine runs this test with is not the demo's business.
        self.clean = {k: v for k, v in os.environ.items() if not k.startswith("TIMESLICE_")}
        self.env = self.card("64MiB")

    def card(self, size):
        cards = tempfile.mkdtemp(dir=self.folder) + "/cards"
        subprocess.run([BUILD + "/src/simgpu/simgpu-card", "create", cards, "--bytes", size], check=True)
        return {**self.clean, "SIMGPU_CARDS": cards, "LD_LIBRARY_PATH": BUILD + "/src/simgpu/lib"}

    def start(self, *words, env=None, **more):
        return subprocess.Popen([TSDEMO, *map(str, words)], env=env or self.env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def result(self, process):
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out.splitlines()[-1])

    def train(self, *words):
        """Two ranks, each on a card of its own; their results."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            common = ["--json", "--quiet", "--world", 2, "--peer", "127.0.0.1:%d" % listener.getsockname()[1],
                      *words]
            first = self.start("--rank", 0, "--listen-fd", listener.fileno(), *common,
                               pass_fds=[listener.fileno()])
        second = self.start("--rank", 1, *common, env=self.card("64MiB"))
        return self.result(first), self.result(second)

    def test_two_ranks_learn_what_only_the_verifier_knows(self):
        for task in "add", "subtract":
            first, second = self.train("--task", task, "--steps", 20)
            self.assertGreater(first["reward_last"], 3 * CHANCE)
            self.assertLess(first["reward_first"], 1.5 * CHANCE)
            self.assertEqual(first["digest"], second["digest"])

    def test_without_updates_the_score_stays_at_chance(self):
        curve = self.folder + "/curve.jsonl"
        words = ["--json", "--no-update", "--steps", 10, "--out", curve]
        flat = self.result(self.start(*words))
        self.assertLess(abs(flat["reward_last"] - CHANCE), 0.05)
        with open(curve) as f:
            scores = [json.loads(line)["held_out"] for line in f]
        self.assertEqual(len(scores), 10)
        self.assertLess(abs(sum(scores) / 10 - CHANCE), 0.02)

    def test_neither_time_nor_a_busy_card_changes_the_digest(self):
        words = ["--json", "--steps", 2, "--ballast-bytes", "8MiB"]
        fast = self.result(self.start(*words))
        slow = self.result(self.start(*words, "--time-scale", 0.001))
        self.assertEqual(fast["digest"], slow["digest"])
        self.assertNotEqual(fast["digest"], self.result(self.start(*words, "--seed", 2))["digest"])

    def test_a_phase_keeps_the_card_busy_as_long_as_the_workload_says(self):
        words = ["--json", "--steps", 2, "--ballast-bytes", "8MiB", "--time-scale", 0.005]
        run = self.result(self.start(*words))
        self.assertGreaterEqual(run["busy_s"], 2 * 66.3 * 0.005)
        self.assertGreaterEqual(run["wall_s"], 2 * (66.3 + 0.95 * 77) * 0.005)

    def test_a_job_that_finds_no_room_says_so(self):
        holder = self.start("--hold", "--ballast-bytes", "40MiB", stdin=subprocess.PIPE)
        self.assertIn("holds", holder.stdout.readline())
        late = self.start("--name", "late", "--ballast-bytes", "40MiB")
        _, err = late.communicate()
        self.assertEqual(late.returncode, NO_ROOM)
        self.assertIn("late rank 0: no room for 40 MiB", err)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", err)
        holder.communicate()
        self.assertEqual(holder.returncode, 0)

    def test_a_holder_can_leave_a_part_of_the_card(self):
        holder = self.start("--hold-all-but", "16MiB", stdin=subprocess.PIPE)
        self.assertIn("holds", holder.stdout.readline())
        self.assertEqual(self.start("--steps", 1, "--ballast-bytes", "20MiB").wait(), NO_ROOM)
        self.result(self.start("--json", "--steps", 1, "--ballast-bytes", "8MiB"))
        holder.communicate()

    def test_without_a_driver_it_says_what_to_do(self):
        env = {k: v for k, v in self.clean.items() if k != "LD_LIBRARY_PATH"}
        alone = self.start("--steps", 1, env={**env, "LD_LIBRARY_PATH": "/nowhere"})
        _, err = alone.communicate()
        if alone.returncode == 0:
            self.skipTest("this machine has a driver")
        self.assertEqual(alone.returncode, 1)
        self.assertIn("simgpu", err)

    def test_a_wrong_option_is_named(self):
        for words, part in ((["--steps", "none"], "--steps"), (["--world", "2"], "--peer"),
                            (["--task", "divide"], "divide"), (["--rank", "1"], "rank 1 of a world of 1")):
            wrong = self.start(*words)
            _, err = wrong.communicate()
            self.assertEqual(wrong.returncode, USAGE, words)
            self.assertIn(part, err)


if __name__ == "__main__":
    report.main()
