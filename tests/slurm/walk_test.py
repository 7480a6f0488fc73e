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


TORCHRUN = """#!/bin/bash
# torchrun, as far as turns are concerned: so many ranks, and it ends when all have.
for ((i = 1; i < $#; i++)); do [ "${!i}" != --nproc-per-node ] || { j=$((i + 1)); count=${!j}; }; done
for ((i = 0; i < count; i++)); do { said=$(python3 "${!#}") && echo "$said"; } & done
wait
"""


class Walk(unittest.TestCase):
    def setUp(self):
        self.cluster, self.slurm = self.enterContext(
            slurm_cluster(nodes=2, cards=None, node={"devices": 2}, partition="rl"))
        self.out = self.slurm.dir / "out"
        self.write("train.py", next(text for kind, text in blocks() if kind == "python"))

    def write(self, name, text):
        (self.out / name).write_text(text)
        (self.out / name).chmod(0o755)

    def type(self, line):
        done = self.slurm.run("bash", "-c", line, user=NOBODY)
        self.assertEqual(done.returncode, 0, f"{line}: {done.stderr}")
        return done.stdout

    def said_by(self, job):
        self.assertEqual(self.slurm.wait(job)["JobState"], "COMPLETED")
        return (self.out / f"slurm-{job}.out").read_text()

    def test_a_user_types_what_the_page_says(self):
        self.write("train.sh", next(text for kind, text in blocks() if kind == "bash"))
        lines = [line for kind, text in blocks() if kind == "sh" for line in text.splitlines()]
        self.assertEqual(len(lines), 5)
        for line in lines:
            self.type(line)
        jobs = re.findall(r"JobId=(\d+)", self.slurm.run("scontrol", "-o", "show", "job").stdout)
        self.assertEqual(len(jobs), len(lines))
        for job in jobs:
            self.assertEqual(self.slurm.wait(job)["JobState"], "COMPLETED")
        had = r"had 3 turns, waited [\d.]+ s, held [\d.]+ s, moved 0 MiB\n"
        for job in jobs[:2]:
            said = self.said_by(job)
            for step in range(3):
                self.assertEqual(said.count(f"step {step} of {job}.0\n"), 4, said)
            self.assertRegex(said, rf"(?s)timeslice: job rl/{job}\.0 {had}.*timeslice: job rl/{job}\.batch {had}$")

    def test_the_ranks_of_torchrun_have_their_turns_together(self):
        self.write("torchrun", TORCHRUN)
        scripts = [text for kind, text in blocks() if kind == "bash" and "torchrun" in text]
        for text, name, ranks in zip(scripts, ("batch", "0"), (8, 16), strict=True):
            self.write("ranks.sh", text)
            job = re.search(r"\d+", self.type(f"PATH={self.out}:$PATH sbatch ranks.sh"))[0]
            said = self.said_by(job)
            for step in range(3):
                self.assertEqual(said.count(f"step {step} of {job}.{name}\n"), ranks, said)
            self.assertRegex(said, rf"timeslice: job rl/{job}\.{name} had 3 turns, ")

    def test_every_option_word_and_variable_is_on_the_page(self):
        source = PAGE.parent.parent / "spank-plugin"
        page = PAGE.read_text()
        for name in re.findall(r'"(timeslice-\w+|TIMESLICE_\w+)"', (source / "options.c").read_text()):
            self.assertIn(name, page)
        for word in re.findall(r'behind\(word, "(\w+)="\)', (source / "plugstack.c").read_text()):
            self.assertIn(f"| `{word}=", page)


if __name__ == "__main__":
    report.main()
