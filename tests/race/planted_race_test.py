"""ThreadSanitizer finds the race that is planted for it; else a clean run of the suite `thread` proves nothing.

usage: planted_race_test.py PROGRAM SUPPRESSIONS
"""
import os
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAM, SUPPRESSIONS = sys.argv[1:3]


class PlantedRace(unittest.TestCase):
    def test_a_race_between_a_worker_and_the_loop_is_reported_by_name(self):
        options = f"suppressions={SUPPRESSIONS} halt_on_error=1 exitcode=66"
        ran = subprocess.run([PROGRAM], env={**os.environ, "TSAN_OPTIONS": options}, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 66, ran.stdout + ran.stderr)
        self.assertIn("ThreadSanitizer: data race", ran.stderr)
        self.assertIn("writePlanted", ran.stderr)

    def test_suppressions_name_nothing_but_kj_and_capnp(self):
        lines = [line for line in Path(SUPPRESSIONS).read_text().splitlines() if line and not line.startswith("#")]
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, r"^(called_from_lib:lib(kj|capnp)|race:kj::_::\w+$|race_top:(/usr/include/)?(kj|capnp)(::|/)$)", line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
