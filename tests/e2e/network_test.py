"""Cables that are pulled: machines in network namespaces of the test, packets lost without a word."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import Cluster  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from puppet import Refused  # noqa: E402


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)


class Machine:
    """A network of its own, while a process in it lives."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write(b"x\n")
        self.process.stdin.flush()
        self.process.stdout.readline()  # cat is in there now
        self.wrap = ("nsenter", "--net", f"--target={self.process.pid}", "--")
        self.ip("link", "set", "lo", "up")

    def ip(self, *words):
        return run(*self.wrap, "ip", *words)

    def close(self):
        self.process.kill()
        self.process.communicate()


class Network:
    """The master's machine, and cables from it to others. All know it as 10.99.0.1."""
    MASTER = "10.99.0.1"

    def __init__(self, count):
        self.machines = []
        try:
            self.master = self.machine()
            self.master.ip("addr", "add", f"{self.MASTER}/32", "dev", "lo")
            self.others = [self.plugged(i) for i in range(1, count + 1)]
        except BaseException:
            self.close()
            raise

    def machine(self):
        self.machines.append(Machine())
        return self.machines[-1]

    def plugged(self, i):
        machine = self.machine()
        self.master.ip("link", "add", f"to{i}", "type", "veth", "peer", "name", "port", "netns",
                       str(machine.process.pid))
        self.master.ip("addr", "add", f"10.99.{i}.1/24", "dev", f"to{i}")
        machine.ip("addr", "add", f"10.99.{i}.2/24", "dev", "port")
        machine.ip("link", "set", "dev", "port", "up")
        self.cable(i, "up")
        machine.ip("route", "add", self.MASTER, "via", f"10.99.{i}.1")
        return machine

    def cable(self, i, state):
        """Down: what is sent is lost, and no end is told."""
        self.master.ip("link", "set", "dev", f"to{i}", state)

    def close(self):
        for machine in self.machines:
            machine.close()


def refusal():
    """Why this kernel makes no networks, or nothing."""
    if os.getuid() != 0:
        return "needs root"
    if not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
        return "needs ip, unshare and nsenter"
    made = subprocess.run(["unshare", "--net", "ip", "link", "add", "one", "type", "veth", "peer",
                           "name", "other"],
                          capture_output=True, text=True, timeout=PATIENCE)
    return f"this kernel makes no network of its own: {made.stderr}" if made.returncode else None


WHY_NOT = refusal()


@unittest.skipIf(WHY_NOT, WHY_NOT)
class HalfOpen(unittest.TestCase):
    def setUp(self):
        self.net = Network(2)
        self.addCleanup(self.net.close)
        self.c = Cluster(nodes=0, cards=(), wrap=self.net.master.wrap, master={
            "auth_none_anywhere": True, "heartbeat": "100 ms", "suspect_after": "500 ms"})
        self.addCleanup(self.c.close)
        self.c.address = f"{Network.MASTER}:0"
        self.c.start_master()
        for i, machine in enumerate(self.net.others, 1):
            self.c.add_node(f"n{i}", wrap=machine.wrap, devices=2).start_connected()

    def state_of(self, node):
        told = json.loads(self.ctl("status", "--json").stdout)
        return next(n["state"] for n in told["nodes"] if n["name"] == node)

    def ctl(self, *words):
        return self.c.tsctl("--auth", "none", *words)

    def await_state(self, node, state):
        while (now := self.state_of(node)) != state:
            self.assertTrue(self.c.master.alive(), f"{node} is {now}")

    def cut_off_holder(self):
        """a holds on n1; gang c of both nodes waits for it; o, of another group on n2, minds its own business."""
        holder = self.c.job(node=0, job="a", devices="0")
        epoch = holder.acquire()
        gang = [self.c.job(node=n, job="c", gang=2, devices="0") for n in (0, 1)]
        for rank in gang:
            self.c.queue(rank)
        other = self.c.job(node=1, job="o", group="other", devices="1")
        self.net.cable(1, "down")
        self.await_state("n1", "suspect")
        return holder, epoch, gang, other

    def test_FF_E6_a_node_that_vanishes_with_its_holder_is_missed_and_nothing_is_granted_there(self):
        holder, _, gang, other = self.cut_off_holder()
        why = self.ctl("why", "c")
        self.assertIn("n1", why.stdout, why.stderr)
        other.acquire()
        other.ask("yield")
        self.assertTrue(all(rank.is_waiting() for rank in gang))
        self.assertIn("entered=1", holder.ask("state"))

    def test_FF_E6_a_node_that_returns_is_reconciled_and_its_holder_holds_on(self):
        holder, epoch, gang, _ = self.cut_off_holder()
        self.net.cable(1, "up")
        self.await_state("n1", "up")
        self.assertTrue(all(rank.is_waiting() for rank in gang))
        self.assertIn("entered=1", holder.ask("state"))
        holder.ask("yield")
        for rank in gang:
            self.assertNotEqual(rank.hear_grant(), epoch)

    def test_FF_E6_while_the_master_has_vanished_nodes_change_nothing_and_calls_end_at_their_deadline(self):
        holder = self.c.job(node=0, job="a", devices="0")
        holder.acquire()
        waiter = self.c.job(node=0, job="b", devices="0")
        for i in (1, 2):
            self.net.cable(i, "down")
        for node in self.c.nodes:
            node.daemon.wait_for(r"\bmaster-down\b")
        with self.assertRaises(Refused) as no:
            waiter.acquire(deadline_ms=300)
        self.assertIn(no.exception.name, ("TIMED_OUT", "MASTER_DOWN"))
        self.assertIn("entered=1", holder.ask("state"))
        mark = self.c.nodes[0].daemon.mark()
        for i in (1, 2):
            self.net.cable(i, "up")
        self.c.nodes[0].daemon.wait_for(r"\bmaster-up\b", mark)
        self.c.queue(waiter)
        holder.ask("yield")
        waiter.hear_grant()


class Disconnected(unittest.TestCase):
    """FF-E3: each cause has its own words."""

    def join_of(self, master):
        with Cluster(nodes=0, cards=(), master={"http": "127.0.0.1:0"}) as c:
            http = c.master.wait_for(r"\blistening what=http address=(\S+)")[1]
            c.address = {"http": http}.get(master, master)
            node = c.add_node("n1").start()
            node.daemon.wait_for(r"\bmaster-down\b")
            job = c.process()
            with self.assertRaises(Refused) as no:
                job.join(group="g", job="a", deadline=100)
            self.assertEqual(no.exception.name, "MASTER_DOWN")
            return str(no.exception)

    def test_FF_E3_a_master_that_is_down_wrong_or_nameless_is_told_apart(self):
        self.assertIn("127.0.0.1:1", self.join_of("127.0.0.1:1"))
        self.assertIn("6830, not 6831", self.join_of("http"))
        self.assertIn("\"no-such-host.invalid\" has no address", self.join_of("no-such-host.invalid:6830"))

    def test_FF_E3_a_program_that_ends_with_a_call_open_ends_as_it_says(self):
        with Cluster(nodes=1, cards=()) as c:
            holder, waiter = c.job(job="a"), c.job(job="b")
            holder.acquire()
            c.queue(waiter)
            waiter.process.terminate()
            self.assertEqual(waiter.process.wait(PATIENCE), -15)
            holder.ask("yield")
            holder.end()
            self.assertEqual(holder.process.wait(PATIENCE), 0)


if __name__ == "__main__":
    report.main()
