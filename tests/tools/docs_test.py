#!/usr/bin/env python3
"""What the pages list is what the sources have.

usage: docs_test.py SOURCE_ROOT
"""
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402

ROOT = pathlib.Path(sys.argv.pop(1))


def words(pattern, *paths):
    """The first group of each match, in files and in the C++, C and Python files of folders."""
    files = [f for path in paths for f in ([ROOT / path] if (ROOT / path).is_file() else (ROOT / path).rglob("*"))
             if f.suffix in (".cpp", ".h", ".c", ".py", ".md")]
    return {word for f in files for word in re.findall(pattern, f.read_text())}


class Pages(unittest.TestCase):
    def test_every_series_is_listed_and_no_other(self):
        self.assertEqual(words(r'"(timeslice_[a-z_]+)"', "src/master", "src/node"),
                         words(r"`(timeslice_[a-z_]+)", "docs/metrics.md"))

    def test_every_variable_is_listed_and_no_other(self):
        self.assertEqual(words(r'"(TIMESLICE_[A-Z_]+)"', "src/client", "src/cli", "python/timeslice"),
                         words(r"\| `(TIMESLICE_[A-Z_]+)`", "docs/for-rl-jobs.md"))

    def test_the_page_of_faults_is_what_the_tests_say(self):
        made = subprocess.run([ROOT / "tools/list-faults", "--page"], check=True, capture_output=True, text=True)
        self.assertEqual((ROOT / "docs/faults.md").read_text(), made.stdout,
                         "out of date: tools/list-faults --page > docs/faults.md")

    def test_links_between_pages_lead_somewhere(self):
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
            for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text()):
                self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")

    def test_FF_I5_who_reads_the_first_page_knows_what_it_does_not_do(self):
        text = " ".join((ROOT / "README.md").read_text().split()).lower()
        for promise in ("does not isolate", "does not pre-empt a kernel", "does not defend against root", "cooperative",
                        "whole gpus"):
            self.assertIn(promise, text)


if __name__ == "__main__":
    report.main()
