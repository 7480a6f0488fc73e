"""Daemons that prove to each other who they are, with a real munged."""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import munge  # noqa: E402
import report  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from cluster import MIB, NOBODY, Cluster, Programs, as_user, toml  # noqa: E402


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

    def test_FF_F1_jobs_take_turns_over_two_nodes_that_have_proven_themselves(self):
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

    def test_FF_F1_a_node_that_is_not_root_is_not_let_in_and_nobody_else_notices(self):
        with self.cluster() as c:
            good = c.job(job="a")
            good.acquire()
            mark = c.master.mark()
            intruder = c.add_node("n9", user=NOBODY).start()
            c.master.wait_for(rf"\brefused\b.*role=node.*{NOBODY}", mark)
            intruder.daemon.wait_for(r"\bmaster-down\b")
            good.ask("yield")
            self.assertNotIn("n9", [node["name"] for node in c.status()["nodes"]])

    def test_FF_F1_a_node_does_not_follow_a_master_of_another_realm(self):
        with self.cluster() as c, tempfile.TemporaryDirectory() as folder, \
                munge.Munge(pathlib.Path(folder)) as elsewhere:
            node = c.add_node("n9", wrap=elsewhere.wrap).start()
            node.daemon.wait_for(r"\bmaster-down\b.*cannot prove itself")

    def test_FF_F1_a_node_does_not_follow_a_master_that_runs_as_another_user(self):
        with self.cluster(nodes=0, master_user=NOBODY) as c:
            node = c.add_node("n1").start()
            node.daemon.wait_for(rf"\bmaster-down\b.*uid {NOBODY}")
            c.add_node("n2", master_user="nobody").start_connected()

    def test_FF_F1_an_operator_without_a_credential_is_told_why(self):
        with self.cluster() as c:
            run = c.tsctl("status", wrap=())  # sees another munged, or none
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("munge", run.stderr.lower())

    def test_FF_F1_what_a_node_has_said_lets_nobody_else_in(self):
        with self.cluster() as c, Tap(c.address) as tap:
            c.add_node("n2", master=tap.address).start_connected()
            mark = c.master.mark()
            with socket.create_connection(tap.master, timeout=PATIENCE) as again:
                tap.replay(again)
                c.master.wait_for(r"\brefused\b.*role=node", mark)
            self.assertEqual(sorted(n["name"] for n in c.status()["nodes"]), ["n1", "n2"])
            c.job(job="a").acquire()


class Tap:
    """Stands between a daemon and the master at `address`, and keeps what both say."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.master = (host, int(port))
        self._passed = []  # (whether the daemon said it, bytes), in order
        self._lock = threading.Lock()

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def replay(self, to):
        """Says all that the daemon said up to its entrance, each time after as much of an answer."""
        with self._lock:
            passed = list(self._passed)
        last = next(i for i, (by_daemon, data) in enumerate(passed) if by_daemon and b"MUNGE:" in data)
        for by_daemon, data in passed[:last + 1]:
            if by_daemon:
                to.sendall(data)
            else:
                self._hear(to, len(data))

    @staticmethod
    def _hear(socket_, count):
        while count > 0:
            piece = socket_.recv(count)
            if not piece:
                raise AssertionError("the master has hung up before anything was proven")
            count -= len(piece)

    def _serve(self):
        near, _ = self._listener.accept()
        far = socket.create_connection(self.master)
        threading.Thread(target=self._pass, args=(far, near, False), daemon=True).start()
        self._pass(near, far, True)

    def _pass(self, from_, to, by_daemon):
        with contextlib.suppress(OSError):
            while data := from_.recv(65536):
                with self._lock:
                    self._passed.append((by_daemon, data))
                to.sendall(data)


@unittest.skipUnless(os.getuid() == 0, "needs root to be somebody else")
class OfOthers(unittest.TestCase):
    """One user's job, another user's hands."""

    def ctl_as_nobody(self, c, *words):
        return c.tsctl("--master", f"unix:{c.master_config['socket']}", *words, wrap=as_user((), NOBODY))

    def test_FF_F1_nobody_ends_moves_or_clears_the_job_of_another(self):
        with Cluster(cards=()) as c:
            job = c.job(job="a")
            job.acquire()
            for words in (("evict", "a"), ("evict", "--kill", "a"), ("clear-fault", "a"), ("why", "a"), ("pause", "g"),
                          ("drain", "n1")):
                done = self.ctl_as_nobody(c, *words)
                self.assertNotEqual(done.returncode, 0, words)
                self.assertIn(str(NOBODY), done.stderr, words)
            self.assertNotIn(str(job.pid), self.ctl_as_nobody(c, "status", "--json").stdout)
            self.assertIn("entered=1", job.ask("state"))
            job.ask("yield")

    def test_FF_F1_nobody_saves_or_restores_the_process_of_another(self):
        with Cluster(node={"master": ""}, nodes=0) as c:
            node = c.add_node("n1").start()
            job = c.process()
            job.take_memory(8 * MIB, 1)
            for verb in ("snapshot", "restore"):
                done = c.tsctl(verb, "--pid", job.pid, wrap=as_user((), NOBODY))
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("PERMISSION", done.stderr)
            self.assertEqual(node.trace("lock", "checkpoint", when="begin"), [])
            self.assertEqual(job.ask("check 1"), "same")

    def test_FF_F1_root_of_a_user_namespace_is_not_root(self):
        own = ("unshare", "--user", "--map-root-user", "--")
        if subprocess.run([*as_user((), NOBODY), *own, "true"], capture_output=True).returncode:
            self.skipTest("this kernel gives users no namespaces of their own")
        with Cluster(cards=(), groups={"g": {"users": ["root"]}}) as c:
            wrap = [*as_user((), NOBODY), *own]
            done = c.tsctl("slice", "--group", "g", "--", "true", wrap=wrap)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(str(NOBODY), done.stderr)
            done = c.tsctl("--master", f"unix:{c.master_config['socket']}", "pause", "g", wrap=wrap)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(str(NOBODY), done.stderr)

    def test_FF_F4_what_is_saved_lies_in_its_process_and_nowhere_else(self):
        with Cluster() as c:
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            a.take_memory(48 * MIB, 1)
            c.queue(b)
            a.ask("yield")
            b.hear_grant()
            node = c.nodes[0]
            for file in (node.dir / "state").iterdir():
                self.assertEqual(file.stat().st_mode & 0o077, 0, file)
                self.assertLess(file.stat().st_size, 48 * MIB)
            fds = [os.readlink(f"/proc/{node.daemon.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{node.daemon.pid}/fd")]
            self.assertEqual([fd for fd in fds if "memfd" in fd], [])


if __name__ == "__main__":
    report.main()
