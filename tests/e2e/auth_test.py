"""Daemons that prove to each other who they are, with a real munged."""
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import munge  # noqa: E402
import report  # noqa: E402
from cluster import NOBODY, Cluster, Programs, toml  # noqa: E402


class Unprovable(unittest.TestCase):
    """Where no master could be told from anybody else nobody is asked: exit 78, with the way out."""
    SAYS = "master_user is \"no-such-user\", and this machine knows no such user"

    def run_with(self, *command, **config):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(toml({"auth": "munge", "master_user": "no-such-user", **config}))
            file.flush()
            words = [file.name if word == "CONFIG" else word for word in command]
            return subprocess.run(words, text=True, capture_output=True, timeout=60)

    def test_a_node_daemon_does_not_start(self):
        ended = self.run_with(Programs.node, "--config", "CONFIG")
        self.assertEqual(ended.returncode, 78, ended.stderr)
        self.assertIn(self.SAYS, ended.stderr)
        self.assertIn("create it or name a uid", ended.stderr)

    def test_tsctl_does_not_believe_a_master_elsewhere(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            master = f"127.0.0.1:{listener.getsockname()[1]}"
            ended = self.run_with(Programs.ctl, "--master", master, "--node-config", "CONFIG", "status")
        self.assertEqual(ended.returncode, 78, ended.stderr)
        self.assertIn(self.SAYS, ended.stderr)


@unittest.skipUnless(munge.available(), "needs root, munged, unshare and nsenter")
class Proven(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="timeslice-munge-")
        self.addCleanup(folder.cleanup)
        self.munge = munge.Munge(pathlib.Path(folder.name))
        self.munge.__enter__()
        self.addCleanup(self.munge.__exit__)

    def cluster(self, nodes=1, **options):
        return Cluster(nodes=nodes, cards=(), wrap=self.munge.wrap, master={"auth": "munge"},
                       node={"auth": "munge", "master_user": "root"}, **options)

    def test_jobs_take_turns_over_two_nodes_that_have_proven_themselves(self):
        with self.cluster(nodes=2) as c:
            a = [c.job(node=n, job="a", gang=2) for n in (0, 1)]
            b = c.job(node=1, job="b")
            for rank in a:
                c.queue(rank)
            for rank in a:
                rank.hear_grant()
            c.queue(b)
            for rank in a:
                rank.ask("yield")
            b.hear_grant()
            self.assertEqual(c.tsctl("status").returncode, 0)

    def test_a_node_that_is_not_root_is_not_let_in_and_nobody_else_notices(self):
        with self.cluster() as c:
            good = c.job(job="a")
            good.acquire()
            mark = c.master.mark()
            intruder = c.add_node("n9", user=NOBODY).start()
            c.master.wait_for(rf"\brefused\b.*role=node.*{NOBODY}", mark)
            intruder.daemon.wait_for(r"\bmaster-down\b")
            good.ask("yield")
            self.assertNotIn("n9", [node["name"] for node in c.status()["nodes"]])

    def test_a_node_does_not_follow_a_master_of_another_realm(self):
        with self.cluster() as c, tempfile.TemporaryDirectory() as folder, \
                munge.Munge(pathlib.Path(folder)) as elsewhere:
            node = c.add_node("n9", wrap=elsewhere.wrap).start()
            node.daemon.wait_for(r"\bmaster-down\b.*cannot prove itself")

    def test_a_node_does_not_follow_a_master_that_runs_as_another_user(self):
        with self.cluster(nodes=0, master_user=NOBODY) as c:
            node = c.add_node("n1").start()
            node.daemon.wait_for(rf"\bmaster-down\b.*uid {NOBODY}")
            c.add_node("n2", master_user="nobody").start_connected()

    def test_an_operator_without_a_credential_is_told_why(self):
        with self.cluster() as c:
            run = c.tsctl("status", wrap=())  # sees another munged, or none
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("munge", run.stderr.lower())


if __name__ == "__main__":
    report.main()
