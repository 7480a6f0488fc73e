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


if __name__ == "__main__":
    report.main()
