"""docs/slurm.md, typed as it is printed."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import NOBODY  # noqa: E402
from slurm import slurm_cluster  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/slurm.md"


def blocks():
    """(language, text) in their order."""
    return re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", PAGE.read_text())


class Walk(unittest.TestCase):
    def test_a_user_types_what_the_page_says(self):
        with slurm_cluster(nodes=2, cards=None, node={"devices": 2}) as (c, s):
            out = s.dir / "out"
            (out / "train.py").write_text(next(text for kind, text in blocks() if kind == "python"))
            (out / "train.sh").write_text(next(text for kind, text in blocks() if kind == "bash"))
            lines = [line for kind, text in blocks() if kind == "sh" for line in text.splitlines()]
            self.assertEqual(len(lines), 5)
            for line in lines:
                done = s.run("bash", "-c", line, user=NOBODY)
                self.assertEqual(done.returncode, 0, f"{line}: {done.stderr}")
            jobs = re.findall(r"JobId=(\d+)", s.run("scontrol", "-o", "show", "job").stdout)
            self.assertEqual(len(jobs), len(lines))
            for job in jobs:
                self.assertEqual(s.wait(job)["JobState"], "COMPLETED")
            for job in jobs[:2]:
                said = (out / f"slurm-{job}.out").read_text()
                for step in range(3):
                    self.assertEqual(said.count(f"step {step} of {job}.0\n"), 4, said)
                self.assertRegex(said, rf"timeslice: job rl/{job}\.0 had 3 turns, waited [\d.]+ s, held [\d.]+ s, moved 0 MiB")

    def test_every_option_word_and_variable_is_on_the_page(self):
        source = PAGE.parent.parent / "spank-plugin"
        page = PAGE.read_text()
        for name in re.findall(r'"(timeslice-\w+|TIMESLICE_\w+)"', (source / "options.c").read_text()):
            self.assertIn(name, page)
        for word in re.findall(r'behind\(word, "(\w+)="\)', (source / "plugstack.c").read_text()):
            self.assertIn(f"| `{word}=", page)


if __name__ == "__main__":
    report.main()
