"""What the fault scenarios share: a card as it is from outside, conditions, and how an acquire ended."""
import json
import os
import subprocess
import time

from cluster import MIB, Programs
from daemon import PATIENCE
from puppet import Refused

BIG = 48 * MIB  # two of them do not fit a card of 64 MiB


def processes(node):
    """{pid: its state} of all that use the node's cards, as the driver has it: "running", "locked"…"""
    shown = subprocess.run([Programs.card, "show", str(node.cards), "--json"], check=True, capture_output=True,
                           text=True, timeout=PATIENCE)
    cards = json.loads(shown.stdout)
    return {p["pid"]: p["state"] for where in (*(c["processes"] for c in cards["cards"]), cards["on_no_card"])
            for p in where}


def used_bytes(node, pid, card=0):
    shown = subprocess.run([Programs.card, "show", str(node.cards), "--json"], check=True, capture_output=True,
                           text=True, timeout=PATIENCE)
    return sum(p["bytes"] for p in json.loads(shown.stdout)["cards"][card]["processes"] if p["pid"] == pid)


def until(condition, what):
    """Returns as soon as the condition holds; for what no daemon tells of."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never came true: {what}")
        os.sched_yield()


def of(lines, pid):
    """The trace lines about one process."""
    return [line for line in lines if f" pid={pid} " in line]


def at(line):
    return float(line.split()[0])


def knob(call, *jobs):
    """The name of a knob of single processes, for set_card: knob("hang.lock", a)."""
    return {f"{call}@{job if isinstance(job, int) else job.pid}": "" for job in jobs}


def turn(node, value, call, *jobs):
    """Turns one knob for each of these processes; "" turns it back."""
    node.set_card(**dict.fromkeys(knob(call, *jobs), value))


def acquire_all(c, ranks):
    for rank in ranks:
        c.queue(rank)
    return [rank.hear_grant() for rank in ranks]


def pass_turn(c, ranks, follower):
    """The holder's ranks yield to one that waits already; returns its grant."""
    c.queue(follower)
    for rank in ranks:
        rank.ask("yield")
    return follower.hear_grant()


def refused(test, job):
    with test.assertRaises(Refused) as no:
        job.hear()
    return no.exception


def saved_beside(c, **options):
    """Job a is saved, job b holds a card on which nothing of it lies."""
    a, b = c.job(job="a", **options), c.job(job="b", **options)
    a.acquire()
    a.take_memory(BIG, 1)
    pass_turn(c, [a], b)
    return a, b
