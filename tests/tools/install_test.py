#!/usr/bin/env python3
"""What `meson install` puts where, as the build folder tells it.

usage: install_test.py SOURCE_ROOT BUILD_ROOT
"""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(2))
SOURCE = pathlib.Path(sys.argv.pop(1))


class Installed(unittest.TestCase):
    def setUp(self):
        told = subprocess.run(["meson", "introspect", "--installed", str(BUILD)], text=True, capture_output=True,
                              check=True)
        self.places = list(json.loads(told.stdout).values())

    def check_installed(self, end):
        self.assertTrue([place for place in self.places if place.endswith(end)], f"nothing ends with {end}")

    def test_programs_library_and_headers(self):
        for end in ("/bin/tsctl", "/sbin/tsmasterd", "/sbin/tsnoded", "/libtimeslice.so.0.1.0",
                    "/include/timeslice/timeslice.h", "/include/timeslice/timeslice.hpp"):
            self.check_installed(end)

    def test_every_file_of_the_python_package(self):
        for file in (SOURCE / "python/timeslice").iterdir():
            if file.is_file():
                self.check_installed(f"-packages/timeslice/{file.name}")

    def test_the_examples_of_configuration(self):
        for file in (SOURCE / "conf").iterdir():
            self.check_installed(f"/share/doc/timeslice/examples/{file.name}")

    @unittest.skipUnless(shutil.which("go-md2man"), "no go-md2man here")
    def test_a_manual_page_for_each_that_is_written(self):
        for page in (SOURCE / "docs/man").glob("*.md"):
            self.check_installed(f"/man{page.stem[-1]}/{page.stem}")

    def test_the_units(self):
        for unit in ("tsmasterd.service", "tsnoded.service", "tsnoded.socket"):
            self.check_installed(f"/systemd/system/{unit}")


@unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here: apt-get install systemd")
class Units(unittest.TestCase):
    """What the units leave to whoever takes one of the daemons over: 0 is nothing, 10 all of a machine."""
    UNITS = BUILD / "systemd"

    def exposure(self, unit, most):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={int(most * 10)}",
                               "--no-pager", str(self.UNITS / unit)], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_master_that_is_taken_over_can_do_little(self):
        self.exposure("tsmasterd.service", 2.0)

    def test_a_node_daemon_that_is_taken_over_can_do_what_its_work_needs(self):
        self.exposure("tsnoded.service", 5.0)

    def test_FF_F1_the_socket_is_open_to_all_from_its_start_and_says_who_speaks(self):
        text = (self.UNITS / "tsnoded.socket").read_text()
        for line in ("ListenSequentialPacket=/run/timeslice/node.sock", "SocketMode=0666", "PassCredentials=yes"):
            self.assertIn(line, text.splitlines())

    def test_FF_E1_each_daemon_has_descriptors_enough(self):
        for unit in ("tsmasterd.service", "tsnoded.service"):
            self.assertRegex((self.UNITS / unit).read_text(), r"(?m)^LimitNOFILE=\d{5,}$")


if __name__ == "__main__":
    report.main()
