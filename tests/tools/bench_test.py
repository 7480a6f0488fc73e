#!/usr/bin/env python3
"""How the benches end: with the exit code that they promise, and with nothing left behind.

usage: bench_test.py BUILD_ROOT
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
BENCHES = ["handoff", "switch", "scale", "restart", "rtt"]


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="timeslice-bench-", dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.files = self.dir / "files"
        self.files.mkdir()

    def start(self, name, *words):
        return subprocess.Popen([BUILD / f"tools/bench_{name}/bench_{name}", *map(str, words)], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "TMPDIR": str(self.files)})

    def run_to_end(self, name, *words):
        bench = self.start(name, *words)
        out, err = bench.communicate()
        return bench.returncode, out, err

    def test_a_wrong_option_is_usage_and_named(self):
        for name in BENCHES:
            with self.subTest(name):
                code, _, err = self.run_to_end(name, "--nosuch")
                self.assertEqual(code, 2, err)

    def test_help_has_examples(self):
        for name in BENCHES:
            with self.subTest(name):
                code, out, _ = self.run_to_end(name, "--help")
                self.assertEqual(code, 0)
                self.assertIn(f"Examples:\n  tools/bench {name}", out)

    def test_a_daemon_that_does_not_start_is_named_and_nothing_stays(self):
        program = self.dir / "src/master/tsmasterd"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
        program.chmod(0o755)
        code, _, err = self.run_to_end("handoff", "--programs", self.dir)
        self.assertEqual((code, err), (1, "bench handoff: master did not start: no such luck\n"))
        self.assertEqual(list(self.files.iterdir()), [])

    def test_a_bench_that_is_told_to_end_ends_its_daemons_and_leaves_no_files(self):
        bench = self.start("handoff", "--programs", BUILD, "--traced")
        daemons = bench.stdout.readline().split()
        self.assertEqual(len(daemons), 2)
        bench.terminate()
        out, err = bench.communicate()
        self.assertEqual(bench.returncode, 128 + 15, out + err)
        self.assertIn("Terminated", err)
        self.assertEqual(list(self.files.iterdir()), [])
        for pid in daemons:
            self.assertFalse(os.path.exists(f"/proc/{pid}"), f"process {pid} is left")


if __name__ == "__main__":
    report.main()
