"""The injected library in programs with and without a driver."""
import os
import shutil
import subprocess
import tempfile
import unittest

import report

SHIM, DRIVER, LINKED, OPENED = (os.environ[name] for name in ("SHIM", "DRIVER", "LINKED", "OPENED"))


def run(command, shim=True, **variables):
    environment = {"PATH": os.environ["PATH"], **variables}
    if shim:
        environment["LD_PRELOAD"] = SHIM
    return subprocess.run(command, env=environment, text=True, capture_output=True)


class Preload(unittest.TestCase):
    def same(self, command):
        with_shim, without = run(command), run(command, shim=False)
        self.assertEqual((with_shim.returncode, with_shim.stdout, with_shim.stderr),
                         (without.returncode, without.stdout, without.stderr))

    def test_programs_without_a_driver_do_not_feel_it(self):
        self.same(["/bin/echo", "hello"])
        self.same(["/bin/sh", "-c", "exit 7"])
        self.same(["/usr/bin/python3", "-c", "print(sorted(map(str, range(9))))"])

    def test_a_linked_driver_answers_for_itself(self):
        self.assertEqual(run([LINKED]).stdout,
                         "touched=0 cuInit(0)=0 cuInit(7)=1 touched=1\n")

    def test_without_the_shim_nothing_is_noticed(self):
        self.assertEqual(run([LINKED], shim=False).stdout,
                         "touched=-1 cuInit(0)=0 cuInit(7)=1 touched=-1\n")

    def test_a_program_that_makes_no_call_is_not_noticed(self):
        self.assertEqual(run([LINKED, "idle"]).stdout, "touched=0\n")

    def test_where_there_is_no_driver_there_is_no_device(self):
        self.assertEqual(run([OPENED]).stdout, "none=100\n")

    def test_a_driver_that_was_opened_privately_is_found(self):
        self.assertEqual(run([OPENED, DRIVER]).stdout, "none=100 default=0 own=0\n")

    @unittest.skipIf(os.geteuid() != 0, "needs root to make a set-uid program")
    def test_FF_F7_a_set_uid_program_is_left_alone(self):
        with tempfile.TemporaryDirectory(prefix="timeslice-", dir="/var/tmp") as folder:
            os.chmod(folder, 0o755)
            program = shutil.copy(OPENED, folder)
            os.chmod(program, 0o4755)
            done = run(["setpriv", "--reuid=65534", "--clear-groups", program, DRIVER, SHIM])
        # Not injected, and where it comes in by another way it notes nothing.
        self.assertEqual(done.stdout, "none=-1 default=-1 own=0 shim=0 touched=0\n")
        self.assertIn(" shim=0 touched=1\n", run([OPENED, DRIVER, SHIM], shim=False).stdout)

    @unittest.skipUnless(shutil.which("readelf"), "needs readelf")
    def test_FF_F7_the_shim_looks_for_nothing_by_a_path_or_a_variable_of_the_user(self):
        def told(option):
            return subprocess.run(["readelf", "--wide", option, SHIM], text=True, capture_output=True, check=True).stdout
        self.assertNotRegex(told("--dynamic"), "RPATH|RUNPATH")
        self.assertNotRegex(told("--dyn-syms"), r"UND \w*getenv")


if __name__ == "__main__":
    report.main()
