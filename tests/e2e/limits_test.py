"""What a machine runs out of, and what hostile or unlucky programs do to it: nobody else notices."""
import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import local_wire  # noqa: E402
import report  # noqa: E402
from cluster import MIB, NOBODY, Cluster, Programs  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from local_wire import Wire  # noqa: E402
from puppet import Refused  # noqa: E402

NO_GPU = {"cards": ()}
FEW = ("prlimit", "--nofile=64", "--")
ROOT = unittest.skipUnless(os.getuid() == 0, "needs root to be somebody else")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident(pid):
    """Bytes of memory."""
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]) * 1024


def sanitized(pid):
    return "libasan" in pathlib.Path(f"/proc/{pid}/maps").read_text()


def take_turns(job, times):
    for _ in range(times):
        job.acquire()
        job.ask("yield")


def as_uid(uid):
    """A decorator's worth of being somebody else: the credentials that the kernel shows are those of a connect."""
    class Other:
        def __enter__(self):
            os.seteuid(uid)

        def __exit__(self, *_):
            os.seteuid(0)
    return Other()


class Crowd:
    """Connections of one user that say nothing."""

    def __init__(self, path, count, uid):
        with as_uid(uid):
            self.wires = [Wire(path) for _ in range(count)]

    def close(self):
        for wire in self.wires:
            wire.__exit__()


@ROOT
@unittest.skipUnless(shutil.which("prlimit"), "needs prlimit")
class Descriptors(unittest.TestCase):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def cluster(self, **options):
        c = Cluster(**NO_GPU, nodes=0, **options)
        c.add_node("n1", wrap=FEW)
        return c

    def test_FF_E1_one_user_takes_no_more_than_a_share_and_others_still_come_in(self):
        with self.cluster() as c:
            old = c.job(job="old")
            crowd = Crowd(c.nodes[0].socket, 200, NOBODY)
            self.addCleanup(crowd.close)
            new = c.job(job="new")
            for job in (old, new):
                job.acquire()
                job.ask("yield")
            c.nodes[0].daemon.wait_for(rf"\blocal-connection-refused\b.*uid={NOBODY}")
            self.assertLess(descriptors(c.nodes[0].daemon.pid), 64)

    def test_FF_E1_many_users_make_newcomers_wait_and_nobody_else(self):
        with self.cluster() as c:
            if sanitized(c.nodes[0].daemon.pid):
                self.skipTest("UBSan asks the kernel through a pipe what memory is, and here no descriptor is left")
            old = c.job(job="old")
            mark = c.nodes[0].daemon.mark()
            crowds = [Crowd(c.nodes[0].socket, 40, 5000 + i) for i in range(5)]
            c.nodes[0].daemon.wait_for(r"\blocal-accept-paused\b")
            old.acquire()
            old.ask("yield")
            for crowd in crowds:
                crowd.close()
            new = c.job(job="new")
            new.acquire()
            new.ask("yield")
            # One line for each look at a full table would be thousands.
            self.assertLess(len(c.nodes[0].daemon.said(r"\blocal-accept-paused\b", mark)), 60)

    def come_and_go(self, path, times):
        for i in range(times):
            with Wire(path) as wire:
                if i % 2:
                    with contextlib.suppress(OSError):  # closed already: one too many
                        wire.send(local_wire.message(local_wire.HELLO, 1, local_wire.hello()))

    def test_FF_E1_connections_that_come_and_go_leave_no_descriptor_behind(self):
        with self.cluster() as c:
            old = c.job(job="old")
            with Wire(c.nodes[0].socket) as wire:
                wire.ask(local_wire.HELLO, local_wire.hello())
                before = descriptors(c.nodes[0].daemon.pid)
            with as_uid(NOBODY):
                self.come_and_go(c.nodes[0].socket, 2000)
            with Wire(c.nodes[0].socket) as wire:  # who came before has been let in, and goes at its end
                self.assertEqual(wire.ask(local_wire.HELLO, local_wire.hello()).status, local_wire.OK)
                late = time.monotonic() + PATIENCE
                while descriptors(c.nodes[0].daemon.pid) > before:
                    self.assertLess(time.monotonic(), late)
                    self.assertEqual(wire.ask(local_wire.ACQUIRE, local_wire.acquire()).status, local_wire.NOT_JOINED)
            old.acquire()


class Signals(unittest.TestCase):
    def test_FF_E5_daemons_under_load_end_in_order(self):
        with Cluster(**NO_GPU) as c:
            jobs = [c.job(job=name) for name in "abcd"]
            jobs[0].acquire()
            for job in jobs[1:]:
                c.queue(job)
            self.assertEqual(c.nodes[0].daemon.stop(), 0)
            self.assertEqual(c.master.stop(), 0)

    def test_FF_E5_the_library_changes_no_signal_of_its_program(self):
        def signals(pid):
            text = pathlib.Path(f"/proc/{pid}/status").read_text()
            return re.findall(r"^Sig(?:Blk|Ign|Cgt):\t(\w+)$", text, re.MULTILINE)
        with Cluster(**NO_GPU) as c:
            job = c.process()
            with self.assertRaises(Refused):  # its main() runs, so what comes before that is done
                job.ask("nothing that it knows")
            before = signals(job.pid)
            self.assertEqual(len(before), 3)
            job.join(group="g", job="a")
            job.acquire()
            self.assertEqual(signals(job.pid), before)
            job.ask("yield")
            self.assertEqual(signals(job.pid), before)

    def test_FF_E5_who_goes_while_it_is_answered_kills_nobody(self):
        with Cluster(**NO_GPU) as c:
            good = c.job(job="a")
            for _ in range(200):
                with Wire(c.nodes[0].socket) as wire:
                    wire.send(local_wire.message(local_wire.HELLO, 1, local_wire.hello()))
                    for request in range(2, 20):
                        wire.send(local_wire.message(local_wire.STATUS, request))
            os.kill(c.nodes[0].daemon.pid, signal.SIGPIPE)
            os.kill(c.master.pid, signal.SIGPIPE)
            good.acquire()
            good.ask("yield")


class SlowReaders(unittest.TestCase):
    """They are stopped, or never read: their sockets are full, and nobody waits or grows for them."""
    BOUND = 24 * MIB  # less than what these would leave if it were kept

    def assert_has_not_grown(self, pid, before):
        if not sanitized(pid):  # keeps what is freed, on purpose
            self.assertLess(resident(pid) - before, self.BOUND)

    def test_FF_E9_a_stopped_reader_of_events_is_dropped_with_a_reason(self):
        with Cluster(**NO_GPU) as c:
            job = c.job(job="a")
            reader = c.follow_events()
            reader.wait_for(r"\bjoin\b")
            reader.process.send_signal(signal.SIGSTOP)
            before, kept = resident(c.master.pid), 10_000
            mark = c.master.mark()
            while c.master.mark() < mark + 3 * kept:
                take_turns(job, 100)
            self.assert_has_not_grown(c.master.pid, before)
            reader.process.send_signal(signal.SIGCONT)
            reader.wait_for(r"\bdropped\b.*too far behind")

    def test_FF_E9_a_stopped_node_delays_and_costs_no_other(self):
        with Cluster(**NO_GPU, nodes=2, master={"heartbeat": "100 ms", "suspect_after": "1 s"}) as c:
            far, near = c.job(1, job="far", group="far"), c.job(0, job="near", group="near")
            far.acquire()
            os.kill(c.nodes[1].daemon.pid, signal.SIGSTOP)
            take_turns(near, 500)
            c.master.wait_for(r"\bsuspect\b.*node=n2\b")
            take_turns(near, 500)
            mark = c.nodes[1].daemon.mark()
            os.kill(c.nodes[1].daemon.pid, signal.SIGCONT)
            c.nodes[1].daemon.wait_for(r"\bmaster-up\b", mark)
            far.ask("yield")
            far.acquire()

    def test_FF_E9_a_program_that_asks_and_never_reads_loses_its_connection_only(self):
        with Cluster(**NO_GPU) as c:
            good = c.job(job="a")
            pid = c.nodes[0].daemon.pid
            before = resident(pid)
            with Wire(c.nodes[0].socket) as wire:
                wire.send(local_wire.message(local_wire.HELLO, 1, local_wire.hello()))
                with self.assertRaises((BrokenPipeError, ConnectionResetError)):
                    for request in range(2, 1_000_000):
                        wire.send(local_wire.message(local_wire.STATUS, request))
                take_turns(good, 10)
            self.assert_has_not_grown(pid, before)

    def test_FF_E9_a_stopped_waiter_is_in_nobodys_way_once_it_is_gone(self):
        with Cluster(**NO_GPU) as c:
            a, b, d = (c.job(job=name) for name in "abd")
            a.acquire()
            c.queue(b)
            c.queue(d)
            os.kill(b.pid, signal.SIGSTOP)
            a.ask("yield")
            c.nodes[0].daemon.wait_for(r"\bgrant\b.*job=g/b\b")
            b.kill()
            d.hear_grant()


class NotReady(unittest.TestCase):
    def test_FF_E11_a_node_that_had_no_devices_is_used_when_it_has(self):
        with Cluster(**NO_GPU, node={"devices": 0}) as c:
            node = c.nodes[0]
            self.assertEqual([n["state"] for n in c.status()["nodes"]], ["up"])
            node.daemon.stop()
            node.config["devices"] = 1
            node.start_connected()
            job = c.job(job="a")
            job.acquire()
            job.ask("yield")

    def test_FF_E14_a_node_without_a_driver_starts_serves_and_says_so(self):
        with Cluster(**NO_GPU, nodes=0) as c:
            node = c.add_node("n1")
            node.config.update({"backend": "cuda", "devices": 0})
            node.env["LD_LIBRARY_PATH"] = Programs.simgpu  # a driver that does not start, whatever this machine has
            node.start_connected()
            why = node.daemon.wait_for(r"\bno-backend\b.*backend=cuda.* why=\"([^\"]+)\"")[1]
            self.assertIn(why, c.tsctl("doctor").stdout)
            self.assertEqual([n["state"] for n in c.status()["nodes"]], ["up"])


class CapabilitiesOfTheDaemon(unittest.TestCase):
    @ROOT
    def test_FF_A18_a_running_node_daemon_has_the_listed_capabilities_only(self):
        with Cluster(**NO_GPU) as c:
            status = pathlib.Path(f"/proc/{c.nodes[0].daemon.pid}/status").read_text()
            sets = dict(re.findall(r"^(Cap\w+):\t(\w+)$", status, re.MULTILINE))
            for which in ("CapPrm", "CapEff", "CapBnd"):
                self.assertEqual(int(sets[which], 16), 1 << 5 | 1 << 19, which)  # CAP_KILL, CAP_SYS_PTRACE

    @ROOT
    def test_FF_A18_without_its_capabilities_it_runs_and_says_so_once(self):
        with Cluster(**NO_GPU, nodes=0) as c:
            node = c.add_node("n1", wrap=("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-all", "--"))
            node.start_connected()
            self.assertEqual(len(node.daemon.said(r"\bno-capability\b.*CAP_SYS_PTRACE")), 1)
            self.assertIn("CAP_SYS_PTRACE", c.tsctl("doctor").stdout)
            job = c.job(job="a")
            job.acquire()


if __name__ == "__main__":
    report.main()
