"""The daemons as services: what they tell the service manager, and the socket that it keeps for them."""
import os
import pathlib
import select
import signal
import socket
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import Cluster, Programs  # noqa: E402
from daemon import PATIENCE, Daemon  # noqa: E402

WATCHDOG = {"WATCHDOG_USEC": "20000"}


class Manager:
    """systemd's end of NOTIFY_SOCKET."""

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(PATIENCE)

    def hear(self, but=""):
        while (said := self.socket.recv(4096).decode()) == but:
            pass
        return said

    def forget(self):
        """What was said until now."""
        self.socket.setblocking(False)
        try:
            while True:
                self.socket.recv(4096)
        except BlockingIOError:
            pass
        self.socket.settimeout(PATIENCE)


class Services(unittest.TestCase):
    def start(self, c, command, env):
        """A daemon that a manager has started."""
        manager = Manager(c.dir / "notify")
        self.addCleanup(manager.socket.close)
        return c.keep(Daemon("service", command, {**env, **WATCHDOG, "NOTIFY_SOCKET": manager.path})), manager

    def start_master(self, c):
        return self.start(c, [Programs.master, "--config", str(c.master_dir / "master.toml")], {})

    def start_node(self, c):
        node = c.nodes[0]
        return self.start(c, [Programs.node, "--config", str(node.dir / "node.toml")], node.env)

    def check_life(self, daemon, manager):
        self.assertEqual(manager.hear(), "READY=1")
        daemon.wait_for(r"\bready\b")
        for _ in range(3):
            self.assertEqual(manager.hear(), "WATCHDOG=1")
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(manager.hear(but="WATCHDOG=1"), "STOPPING=1")
        self.assertEqual(daemon.wait(), 0)

    def test_a_master_says_when_it_serves_that_it_lives_and_that_it_stops(self):
        with Cluster() as c:
            c.master.stop()
            self.check_life(*self.start_master(c))

    def test_a_node_daemon_says_when_it_serves_that_it_lives_and_that_it_stops(self):
        with Cluster() as c:
            c.nodes[0].daemon.stop()
            self.check_life(*self.start_node(c))

    def test_a_node_daemon_is_ready_without_a_master(self):
        with Cluster() as c:
            c.nodes[0].daemon.stop()
            c.master.stop()
            daemon, manager = self.start_node(c)
            self.assertEqual(manager.hear(), "READY=1")
            daemon.wait_for(r"\bmaster-down\b")

    def test_a_daemon_that_stands_still_is_found_out_ended_and_started_anew_and_its_holder_keeps_the_slice(self):
        with Cluster() as c:
            c.nodes[0].daemon.stop()
            daemon, manager = self.start_node(c)
            daemon.wait_for(r"\bmaster-up\b")
            a, b = c.job(job="a"), c.job(job="b")
            a.acquire()
            c.queue(b)
            daemon.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, daemon.pid, os.WSTOPPED | os.WNOWAIT)
            manager.forget()
            manager.socket.settimeout(1)  # fifty times what the manager waits
            with self.assertRaises(TimeoutError):
                manager.hear()
            daemon.kill()  # as the manager does then
            c.nodes[0].start_connected()
            a.ask("yield")  # of the slice that it still has
            b.hear_grant()

    def test_a_manager_that_is_not_there_is_told_in_the_log_and_harms_nothing(self):
        with Cluster() as c:
            c.nodes[0].daemon.stop()
            node = c.nodes[0]
            daemon = c.keep(Daemon("service", [Programs.node, "--config", str(node.dir / "node.toml")],
                                   {**node.env, "NOTIFY_SOCKET": str(c.dir / "nobody")}))
            daemon.wait_for(r"\bno-service-manager\b.*nobody: No such file")
            daemon.wait_for(r"\bmaster-up\b")
            c.job(job="a").acquire()


class InheritedSocket(unittest.TestCase):
    """The manager listens, and hands its socket to each life of the daemon as descriptor 3."""
    HAND_OVER = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.set_inheritable(3, True); "
                 "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); os.execv(sys.argv[2], sys.argv[2:])")

    def listen(self, c):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        pathlib.Path(c.nodes[0].socket).unlink(missing_ok=True)
        listener.bind(c.nodes[0].socket)
        listener.listen(64)
        return listener

    def start(self, c, listener):
        node, fd = c.nodes[0], listener.fileno()
        daemon = c.keep(Daemon("service", [Programs.node, "--config", str(node.dir / "node.toml")], node.env,
                               [sys.executable, "-c", self.HAND_OVER, str(fd)], [fd]))
        daemon.wait_for(r"\bmaster-up\b")
        return daemon

    def test_FF_F1_who_comes_while_the_daemon_restarts_waits_in_the_socket(self):
        with Cluster() as c:
            c.nodes[0].daemon.stop()
            listener = self.listen(c)
            daemon = self.start(c, listener)
            a = c.job(job="a")
            a.acquire()
            self.assertEqual(daemon.stop(), 0)
            b = c.process()
            b.say("join group=g job=b deadline=60000")
            self.assertTrue(select.select([listener], [], [], PATIENCE)[0], "b never came")
            self.start(c, listener)
            b.hear()
            c.queue(b)
            a.ask("yield")  # of the slice that it still has
            b.hear_grant()


if __name__ == "__main__":
    report.main()
