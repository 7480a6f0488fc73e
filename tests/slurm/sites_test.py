"""Sites whose Slurm gives jobs folders of their own."""
import os
import pathlib
import sys
import tempfile

for folder in ("support", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import report  # noqa: E402
from slurm import until  # noqa: E402
from turns import RL, Turns  # noqa: E402


class Folders(Turns):
    """/tmp of each job is its own: a namespace in which the socket has to be reachable all the same."""

    def setUp(self):
        base = self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp"))  # /dev/shm is the job's own, too
        os.chmod(base, 0o755)
        self.settings = {"nodes": 1, "base": base, "extra": "JobContainerType=job_container/tmpfs\nPrologFlags=Alloc,Contain", "files": {
            "job_container.conf": f"AutoBasePath=true\nBasePath={base}/containers\n"}}
        super().setUp()

    def test_FF_G8_jobs_take_turns_where_each_has_a_tmp_of_its_own(self):
        done = self.slurm.srun("-n1", "-wn1", RL, "bash", "-c", "touch /tmp/of-this-job; readlink /proc/self/ns/mnt")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(done.stdout.strip(), os.readlink("/proc/self/ns/mnt"))
        self.assertFalse(pathlib.Path("/tmp/of-this-job").exists())
        until(lambda: not self.jobs(), "nothing is left of it")
        first = self.holder()
        first.ask("yield")
        second = self.holder()
        second.ask("yield")
        first.ask("acquire 0")
        self.assertEqual(first.ask("check 1"), "same")
        first.end()
        second.end()
        self.assert_free("2.0", "3.0")


if __name__ == "__main__":
    report.main()
