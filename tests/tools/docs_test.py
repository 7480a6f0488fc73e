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

    def listed(self, section):
        """The names in the first column of a section's table in the operator's page."""
        page = (ROOT / "docs/operations.md").read_text()
        return set(re.findall(r"(?m)^\| `([\w-]+)` \|", page.split(f"\n## {section}\n")[1].split("\n## ")[0]))

    def spelled(self, signature):
        """The words that describe.cpp has for an enum."""
        body = (ROOT / "src/core/describe.cpp").read_text().split(f"const char* text({signature}) {{")[1]
        return set(re.findall(r'"([a-z-]+)"', body.split("}")[0]))

    def test_every_status_of_the_library_has_cause_and_remedy_and_no_other_is_told(self):
        self.assertEqual(words(r"(?m)^  (TS_\w+) = \d+", "include/timeslice/timeslice.h"),
                         self.listed("Errors of the library"))

    def test_every_cause_has_its_remedy_and_no_other_is_told(self):
        self.assertEqual(self.spelled("Cause c"), self.listed("Causes"))

    def test_every_log_event_has_cause_and_remedy_and_no_other_is_told(self):
        events = words(r'\bLine(?: \w+)?\("([a-z-]+)"\)', "src/master", "src/node", "src/log")
        events |= words(r'\bline\("([a-z-]+)"', "src/master")
        self.assertEqual(events | self.spelled("Notice::Kind k"), self.listed("Log events"))

    def test_every_kind_of_fault_has_its_way_out(self):
        page = (ROOT / "docs/operations.md").read_text()
        self.assertEqual(self.spelled("FaultKind f") - {"none"}, set(re.findall(r"`fault (\w+)`", page)))

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
