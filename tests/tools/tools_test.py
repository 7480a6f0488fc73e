#!/usr/bin/env python3
"""tools/test and the scripts that it counts: nothing that went wrong may pass for tested.

usage: tools_test.py SOURCE_ROOT TWO_CASES
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402

TWO_CASES = os.path.abspath(sys.argv.pop(2))
TOOLS = pathlib.Path(sys.argv.pop(1)).resolve() / "tools"


def run(*words, env=None):
    return subprocess.run([*map(str, words)], env={**os.environ, **(env or {})}, text=True,
                          capture_output=True, timeout=60, stdin=subprocess.DEVNULL)


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="timeslice-tools-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def script(self, path, *lines):
        file = self.dir / path
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(["#!/bin/bash", *lines, ""]))
        file.chmod(0o755)
        return file


class CountTests(InAFolder):
    def count(self, **files):
        for name, lines in files.items():
            (self.dir / name.replace("_", ".")).write_text("".join(f"{line}\n" for line in lines))
        counted = run(TOOLS / "count-tests", self.dir)
        return counted.returncode, counted.stdout.splitlines()

    def test_the_counts_of_scripts_are_added_up(self):
        code, said = self.count(scripts_txt=["3 passed, 0 failed, 1 skipped", "1 passed, 0 failed, 0 skipped"])
        self.assertEqual((code, said), (0, ["4 passed, 0 failed, 1 skipped"]))

    def test_a_last_line_that_counts_nothing_is_a_failure(self):
        for line in ("coverage printed nothing", "", "99.1 % 1200 src/core in all", "many passed, 0 failed, 0 skipped"):
            with self.subTest(line):
                code, said = self.count(scripts_txt=["1 passed, 0 failed, 0 skipped", line])
                self.assertEqual((code, said[-1]), (1, "1 passed, 1 failed, 0 skipped"))
                self.assertIn(repr(line), said[0])

    def test_what_did_not_come_to_run_is_a_failure_in_its_own_words(self):
        code, said = self.count(broken_txt=["the build in build did not finish"],
                                scripts_txt=["1 passed, 0 failed, 0 skipped"])
        self.assertEqual((code, said), (1, ["FAILED the build in build did not finish",
                                            "1 passed, 1 failed, 0 skipped"]))

    def test_a_test_that_crashed_after_its_cases_passed_is_a_failure(self):
        exe = self.script("some_tests")
        (self.dir / "cases").mkdir()
        (self.dir / "cases/some").write_text(f"exe\t{exe}\npassed\ta case\nskipped\tanother\n")
        code, said = self.count(testlog_json=[json.dumps({"name": "some", "result": "FAIL", "command": [str(exe)]})])
        self.assertEqual((code, said), (1, ["FAILED some", "1 passed, 1 failed, 1 skipped"]))

    def test_nothing_at_all_is_a_failure(self):
        self.assertEqual(self.count(), (1, ["0 passed, 0 failed, 0 skipped"]))


class Test(InAFolder):
    """tools/test in a tree of its own, where everything that it calls is ours."""

    def setUp(self):
        super().setUp()
        self.script("tools/install-packages")
        self.script("bin/ninja")
        self.script("bin/meson")
        for name in ("test", "count-tests"):
            shutil.copy(TOOLS / name, self.dir / "tools")

    def test(self, *words):
        ours = {"PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}", "ASAN_OPTIONS": "", "TSAN_OPTIONS": "", "UBSAN_OPTIONS": ""}
        return run(self.dir / "tools/test", *words, env=ours)

    def last_line(self, *words):
        done = self.test(*words)
        return done.returncode, done.stdout.splitlines()[-1]

    def test_a_script_gets_its_options_and_its_counts_are_taken(self):
        self.script("tools/coverage", 'echo "options: $*"', 'echo "1 passed, 0 failed, 0 skipped"')
        done = self.test("coverage")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("options: --least 95", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 0 failed, 0 skipped")

    def test_a_script_that_dies_without_a_word_is_a_failure(self):
        self.script("tools/mutants", "exit 1")
        self.script("tools/fault-mutants", 'echo "2 passed, 0 failed, 0 skipped"')
        self.assertEqual(self.last_line("mutants"), (1, "2 passed, 1 failed, 0 skipped"))

    def test_a_script_that_prints_nothing_is_a_failure(self):
        self.script("tools/mutants")
        self.script("tools/fault-mutants")
        self.assertEqual(self.last_line("mutants"), (1, "0 passed, 2 failed, 0 skipped"))

    def test_a_script_that_fails_although_it_counts_no_failure_is_one(self):
        self.script("tools/tidy", 'echo "5 passed, 0 failed, 0 skipped"', "exit 1")
        self.assertEqual(self.last_line("tidy"), (1, "0 passed, 1 failed, 0 skipped"))

    def test_a_meson_that_writes_no_log_is_a_failure(self):
        code, last = self.last_line("unit")
        self.assertEqual((code, last), (1, "0 passed, 1 failed, 0 skipped"))

    def test_a_build_that_does_not_finish_is_a_failure(self):
        self.script("bin/ninja", "exit 1")
        done = self.test("unit")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED the build in build did not finish", done.stdout)

    def under_sanitizer(self, suite, run_tests="", run_chaos="true"):
        """meson and the bench are ours; each can write a report as a sanitizer does, whatever its exit status."""
        report = ('report() { for o in $TSAN_OPTIONS $ASAN_OPTIONS; do case $o in log_path=*) '
                  'echo "SUMMARY: $1" > "${o#log_path=}.4711" ;; esac; done; }')
        self.script("bin/meson", report, 'case $1 in setup) mkdir -p $2/src/master; touch $2/src/master/tsmasterd; '
                    'chmod +x $2/src/master/tsmasterd ;; test) mkdir -p $3/meson-logs; '
                    """echo '{"name": "one", "result": "OK", "command": []}' > $3/meson-logs/testlog.json;""",
                    run_tests, ';; esac')
        self.script("tools/bench", report, 'echo "bench $* of $BUILD"', run_chaos)
        done = self.test(suite)
        return done.returncode, done.stdout

    def test_a_sanitizer_looks_at_a_chaos_run_of_its_own_programs_too(self):
        for suite, folder in (("thread", "build-tsan"), ("sanitize", "build-asan")):
            with self.subTest(suite):
                code, said = self.under_sanitizer(suite)
                self.assertIn(f"bench chaos --minutes 0.5 of {folder}\n", said)
                self.assertEqual((code, said.splitlines()[-1]), (0, "2 passed, 0 failed, 0 skipped"))
                self.assertEqual(self.under_sanitizer(suite, run_chaos="exit 1")[0], 1)

    def test_a_report_of_a_sanitizer_is_a_failure_although_all_tests_have_passed(self):
        for suite in ("thread", "sanitize"):
            with self.subTest(suite):
                code, said = self.under_sanitizer(suite, run_tests="report in-a-test")
                self.assertEqual((code, said.splitlines()[-1]), (1, "2 passed, 1 failed, 0 skipped"))
                self.assertIn("SUMMARY: in-a-test", said)
                code, said = self.under_sanitizer(suite, run_chaos="report in-chaos")
                self.assertEqual((code, said.splitlines()[-1]), (1, "2 passed, 1 failed, 0 skipped"))
                self.assertIn("SUMMARY: in-chaos", said)

    def slurm_24(self, user, debian="true"):
        """A Debian 13 in which nothing runs but the tests: they are meson's, and ours."""
        self.script("bin/id", f"echo {user}")
        self.script("tools/in-debian-13", f'echo "in there: $*" >> "{self.dir}/in-there"', debian)
        self.script("bin/meson", 'case $1 in test) mkdir -p $3/meson-logs; echo "meson $*"; '
                    """echo '{"name": "one", "result": "OK", "command": []}' > $3/meson-logs/testlog-in-debian-13.json; esac""")
        (self.dir / "build").mkdir(exist_ok=True)
        done = self.test("slurm-24")
        return done.returncode, done.stdout

    def test_another_slurm_is_tested_where_it_is_with_the_user_side_part_that_was_built_there(self):
        code, said = self.slurm_24(user=0)
        self.assertEqual((code, said.splitlines()[-1]), (0, "1 passed, 0 failed, 0 skipped"))
        inside = (self.dir / "in-there").read_text()
        user = self.dir / "build-debian-13"
        self.assertIn(f"meson setup {user} -Ddaemons=disabled -Dslurm=enabled\n", inside)
        self.assertIn(f"ninja -C {user}\n", inside)
        (run_tests,) = [line for line in said.splitlines() if line.startswith("meson test")]
        for room in "src/client", "src/preload", "spank-plugin":
            self.assertIn(f" --bind {user}/{room}:{self.dir}/build/{room}", run_tests)

    def test_another_slurm_that_cannot_be_had_is_a_failure_and_without_root_a_skip(self):
        code, said = self.slurm_24(user=0, debian="exit 1")
        self.assertEqual((code, said.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"))
        self.assertIn("FAILED there is no Debian 13", said)
        self.assertEqual(self.slurm_24(user=1000)[1].splitlines()[-1], "0 passed, 0 failed, 1 skipped")

    def test_an_unknown_suite_is_refused_by_name(self):
        done = self.test("units")
        self.assertEqual(done.returncode, 2)
        self.assertIn("units", done.stderr)

    def test_a_list_of_what_has_no_cases_of_its_own_is_refused(self):
        for suite in "sanitize", "thread", "clang", "mutants", "coverage", "readme", "tidy", "full":
            with self.subTest(suite):
                done = self.test("--list", suite)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("--list", done.stderr)


class Report(InAFolder):
    def test_a_case_that_has_asserted_nothing_is_skipped_and_not_passed(self):
        done = run(TWO_CASES, env={"TIMESLICE_TEST_REPORT": str(self.dir)})
        self.assertEqual(done.returncode, 0, done.stdout)
        (said,) = self.dir.iterdir()
        self.assertEqual(said.read_text().splitlines()[1:], ["skipped\tcannot run here", "passed\truns here"])

    def test_a_test_that_is_told_to_end_cleans_up_and_starts_no_other(self):
        script = self.dir / "endless_test.py"
        script.write_text(f"""
import sys, tempfile, threading, unittest
sys.path.insert(0, {str(TOOLS.parent / "tests/support")!r})
import report

class Endless(unittest.TestCase):
    def test_1(self):
        self.addCleanup(print, "cleaned up", flush=True)
        with tempfile.TemporaryDirectory(dir={str(self.dir)!r}) as folder:
            print(folder, flush=True)
            threading.Event().wait()

    def test_2(self):
        print("another")

report.main()
""")
        test = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        folder = pathlib.Path(test.stdout.readline().strip())
        self.assertTrue(folder.is_dir())
        test.terminate()
        said, _ = test.communicate()
        self.assertEqual((test.returncode, said), (128 + 15, "cleaned up\n"))
        self.assertFalse(folder.exists())


class Usage(unittest.TestCase):
    SCRIPTS = ["test", "coverage", "mutants", "fault-mutants", "test-readme", "tidy", "bench", "quickstart", "gpu-check",
               "trace-handoff", "fuzz", "in-debian-13", "demo/run_main_job.py"]

    def test_every_script_explains_itself_with_examples(self):
        for script in self.SCRIPTS:
            with self.subTest(script):
                done = run(TOOLS / script, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("usage: ", done.stdout)
                self.assertIn("xamples:", done.stdout)

    def test_every_script_refuses_an_option_that_it_does_not_know(self):
        for script in self.SCRIPTS:
            with self.subTest(script):
                done = run(TOOLS / script, "--nosuch")
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn("--nosuch", done.stderr)


class Mutants(unittest.TestCase):
    def test_every_seeded_mutant_still_applies(self):
        for patch in sorted((TOOLS.parent / "tests").glob("*/mutants/*.patch")):
            with self.subTest(patch.name):
                tried = run("patch", "--dry-run", "--batch", "--force", "--fuzz=0", "-p1", "-d", TOOLS.parent,
                            "-i", patch)
                self.assertEqual(tried.returncode, 0, tried.stdout)


class TestReadme(InAFolder):
    """tools/test-readme where the chroot is a folder: everything that needs root is ours."""

    def setUp(self):
        super().setUp()
        (self.dir / "tools").mkdir()
        shutil.copy(TOOLS / "test-readme", self.dir / "tools")
        self.script("bin/id", "echo 0")
        self.script("bin/debootstrap", 'mkdir -p "${@: -1}/etc" "${@: -1}/proc" "${@: -1}/dev"')
        self.script("bin/git", 'mkdir "${@: -1}"')
        for name in ("mount", "umount"):
            self.script(f"bin/{name}")
        self.script("bin/chroot", 'sed -e "s#/blocks/#$1/blocks/#; s#/typed#$1/typed#; s#cd /timeslice#cd $1/timeslice#" '
                                  '"$1$3" | "$2"')

    def typed(self, *blocks):
        text = "".join(f"```{language}\n{code}\n```\n" for language, code in blocks)
        (self.dir / "README.md").write_text(text)
        done = run(self.dir / "tools/test-readme",
                   env={"PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(self.dir)})
        return done.returncode, done.stdout.splitlines()[-1]

    def test_a_block_finds_what_the_one_before_left_in_the_shell(self):
        self.assertEqual(self.typed(("sh", "export WORD=x; one=$!"), ("text", "exit 1"), ("sh", '[ "$WORD" = x ]'),
                                    ("python", "import os; assert os.environ['WORD'] == 'x'")),
                         (0, "3 passed, 0 failed, 0 skipped"))

    def test_what_comes_after_a_failure_is_not_passed(self):
        self.assertEqual(self.typed(("sh", "true"), ("sh", "false\ntrue"), ("python", "pass")),
                         (1, "1 passed, 2 failed, 0 skipped"))


if __name__ == "__main__":
    report.main()
