#!/usr/bin/env python3
"""A master that is killed under a fleet, as tools/bench restart does it, with fewer nodes.

usage: bench_restart_test.py BUILD_ROOT
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()


class Restart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = [BUILD / "tools/bench_restart/bench_restart", "--programs", BUILD, "--json",
                   "--nodes", "20", "--jobs", "80", "--groups", "4"]
        bench = subprocess.run(command, text=True, capture_output=True)
        if not bench.stdout:
            raise AssertionError(bench.stderr)
        cls.figures = json.loads(bench.stdout)

    def test_FF_D5_all_nodes_and_waiters_are_back_and_the_order_is_kept(self):
        self.assertTrue(self.figures["same_order"])
        self.assertTrue(self.figures["same_holders"])
        self.assertGreaterEqual(self.figures["waiters_back_ms"], self.figures["master_up_ms"])

    def test_FF_D5_after_a_restart_waiters_are_granted_in_the_order_they_had(self):
        self.assertTrue(self.figures["granted_in_order"])

    def test_FF_E1_of_nodes_that_come_back_together_none_is_turned_away(self):
        self.assertEqual(self.figures["turned_away"], 0)


if __name__ == "__main__":
    report.main()
