"""A whole cluster in a folder of its own: a master, nodes with simulated cards, jobs; on free ports."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from daemon import PATIENCE, Daemon, now
from puppet import Puppet

MIB = 1 << 20
NOBODY = 65534


class Programs:
    """What the build made; meson says where, in the environment."""
    master = os.environ.get("TSMASTERD", "")
    node = os.environ.get("TSNODED", "")
    ctl = os.environ.get("TSCTL", "")
    puppet = os.environ.get("E2E_PUPPET", "")
    card = os.environ.get("SIMGPU_CARD", "")
    simgpu = os.environ.get("SIMGPU_LIBS", "")


def toml(pairs):
    def text(value):
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {json.dumps(entry)}" for key, entry in value.items()) + " }"
        return json.dumps(value)
    return "".join(f"{key} = {text(value)}\n" for key, value in pairs.items())


def as_user(wrap, user):
    return wrap if user is None else [*wrap, "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]


class Node:
    """One tsnoded with its own cards; `n.socket` is where local programs find it."""

    def __init__(self, cluster, name, cards, settings, wrap, user):
        self.name = name
        self.wrap = as_user(wrap, user)
        self.cluster = cluster
        self.dir = cluster.folder(name, user)
        self.socket = str(self.dir / "node.sock")
        self.cards = self.dir / "cards" if cards else None
        self.env = {"TIMESLICE_SOCKET": self.socket}
        if cards:
            subprocess.run([Programs.card, "create", self.cards, *cards], check=True, timeout=PATIENCE)
            self.env |= {"SIMGPU_CARDS": str(self.cards), "LD_LIBRARY_PATH": Programs.simgpu}
        self.config = {
            "name": name, "socket": self.socket, "state_dir": str(self.dir / "state"),
            "auth": "none", "log_level": "debug", "backend": "cuda" if cards else "none",
            **({} if cards else {"devices": 1}), **settings}
        self.daemon = None

    def run(self):
        path = self.dir / "node.toml"
        path.write_text(toml({"master": self.cluster.address, **self.config}))
        self.daemon = self.cluster.keep(Daemon(self.name, [Programs.node, "--config", str(path)], self.env,
                                               self.wrap))
        return self.daemon

    def start(self):
        self.run().wait_for(r"\bready\b")
        return self

    def start_connected(self):
        self.start()
        self.daemon.wait_for(r"\bmaster-up\b")
        return self

    def trace(self, *calls, when="end"):
        """The checkpoint calls on this node's cards, in order: "SECONDS end checkpoint pid=… code=0"."""
        file = self.cards / "trace"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if any(f" {when} {call} " in line for call in calls)]

    def set_card(self, **keys):
        """Turns knobs of card 0, also while things run."""
        pairs = [f"{key.replace('__', '.')}={value}" for key, value in keys.items()]
        subprocess.run([Programs.card, "set", self.cards / "0", *pairs], check=True, timeout=PATIENCE)


class Cluster:
    """with Cluster(nodes=2) as c: … Everything that it started is gone afterwards."""

    def __init__(self, nodes=1, cards=("--bytes", "64MiB"), master=None, node=None, groups=None, wrap=(),
                 master_user=None, base=None):
        base = base or ("/dev/shm" if os.path.isdir("/dev/shm") else None)
        self._ends = contextlib.ExitStack()  # in reverse, and each whatever became of the one before
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="timeslice-e2e-", dir=base))
        self._ends.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.dir.chmod(0o755)  # jobs of other users reach the sockets
        self.wrap = wrap
        self.address = "127.0.0.1:0"  # the first start says which port it has; a restart takes the same
        self.master_dir = self.folder("master", master_user)
        self.master_user = master_user
        self.master_config = {
            "socket": str(self.master_dir / "master.sock"), "http": "",
            "database": str(self.master_dir / "master.db"), "auth": "none", "log_level": "debug",
            "recovery_grace": "300 ms", **(master or {})}
        self.groups = groups or {}
        self.master = None
        self._kept = []
        self._node_defaults = (cards, node or {})
        self.nodes = []
        for i in range(nodes):
            self.add_node(f"n{i + 1}")

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind:
            for thing in self._kept:
                if isinstance(thing, Daemon):
                    print(thing.tail(200))
        self.close()

    def start(self):
        self.start_master()
        for node in self.nodes:
            node.start_connected()

    def folder(self, name, user=None):
        path = self.dir / name
        path.mkdir()
        if user is not None:
            os.chown(path, user, user)
        return path

    def add_node(self, name, wrap=None, user=None, **settings):
        """One more, not started."""
        cards, defaults = self._node_defaults
        node = Node(self, name, cards, {**defaults, **settings}, self.wrap if wrap is None else wrap, user)
        self.nodes.append(node)
        return node

    def start_master(self):
        path = self.master_dir / "master.toml"
        text = toml({"listen": [self.address], **self.master_config})
        for name, settings in self.groups.items():
            text += f"\n[group.{name}]\n" + toml(settings)
        path.write_text(text)
        self.master = self.keep(Daemon("master", [Programs.master, "--config", str(path)],
                                       wrap=as_user(self.wrap, self.master_user)))
        self.master.wait_for(r"\bready\b")
        self.address = self.master.wait_for(r"\blistening what=rpc address=(\S+)")[1]
        return self.master

    def job(self, node=0, user=None, **options):
        """A job that has joined; `options` as in ts_join_options."""
        job = self.process(node, user)
        job.join(**{"group": "g", **options})
        return job

    def process(self, node=0, user=None, env=None):
        puppet = Puppet(Programs.puppet, {**self.nodes[node].env, **(env or {})}, user)
        puppet.node = self.nodes[node]
        return self.keep(puppet)

    def queue(self, job, deadline_ms=0):
        """The job asks for its turn; returns when the master knows. job.hear_grant() has the answer."""
        before = now()
        job.say(f"acquire {deadline_ms}")
        self.master.wait_for(r"\bacquire\b", after=before)

    def take_place(self, job):
        """As queue(), and its node has recorded its place: it is kept also when the node's daemon is killed."""
        before = now()
        self.queue(job)
        job.node.daemon.wait_for(rf"\bplaced\b.*\bpid={job.pid}\b", after=before)

    def tsctl(self, *words, node=0, env=None, wrap=None):
        """Runs tsctl to its end; .returncode, .stdout and .stderr say how it went."""
        env = {**os.environ, **self.nodes[node].env, "TIMESLICE_MASTER": self.address, **(env or {})}
        wrap = self.wrap if wrap is None else wrap
        return subprocess.run([*wrap, Programs.ctl, *map(str, words)], env=env, text=True,
                              capture_output=True, timeout=PATIENCE)

    def follow_events(self):
        """A tsctl that goes on; what it prints is read line by line, as a daemon's log is."""
        env = {**self.nodes[0].env, "TIMESLICE_MASTER": self.address}
        command = ["sh", "-c", 'exec "$0" events --follow >&2', Programs.ctl]
        return self.keep(Daemon("events", command, env, self.wrap))

    def status(self):
        return json.loads(self.tsctl("status", "--json").stdout)

    def keep(self, thing):
        self._kept.append(thing)
        self._ends.callback(thing.kill)
        return thing

    def close(self):
        self._ends.close()
