"""A whole Slurm in a folder of its own: munged, slurmctld and a slurmd for each node of a timeslice
cluster, on free ports. Debian builds slurmd with --enable-multiple-slurmd, so one machine is many nodes."""
import contextlib
import fcntl
import os
import pathlib
import pwd
import re
import secrets
import shlex
import signal
import socket
import stat
import subprocess
import threading
import time

from cluster import NOBODY, Cluster, Programs
from daemon import PATIENCE
from puppet import Puppet

PLUGIN = os.environ.get("SPANK_PLUGIN", "")
PRELOAD = os.environ.get("PRELOAD_LIBRARY", "")
LIBRARY = os.environ.get("TIMESLICE_LIBRARY", "")
DEMO = os.environ.get("TSDEMO", "")
PYTHON = os.environ.get("TIMESLICE_PYTHON", "")
MARK = "TIMESLICE_SLURM_TEST"
NO_DRIVER = 60  # a major number for local use, https://docs.kernel.org/admin-guide/devices.html
CGROUPS = pathlib.Path("/sys/fs/cgroup")
TOOLS = "/usr/sbin:/usr/bin:/sbin:/bin"
OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL"}
_tick = threading.Event()


def until(condition, what, patience=PATIENCE):
    """What the condition returns as soon as it is true: for what Slurm tells nobody of by itself."""
    end = time.monotonic() + patience
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"never came true: {what() if callable(what) else what}")
        _tick.wait(0.05)
    return found


def free_ports(count):
    """That nobody has now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]


def version():
    """(22, 5)"""
    said = subprocess.run(["slurmctld", "-V"], env=clean_environment(), check=True, capture_output=True, text=True).stdout
    return tuple(map(int, re.findall(r"\d+", said)[:2]))


def as_user(user):
    if user is None:
        return []
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]


def is_running(pid):
    """A zombie that nobody reaps is none."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


@contextlib.contextmanager
def cgroups_of(names):
    """Those that a slurmd makes for its node are named by it alone, so one cluster has them at a time. None is left."""
    held = os.open(CGROUPS, os.O_RDONLY)  # those below Slurm locks itself
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
        for top in [top for name in names for top in CGROUPS.glob(f"*/slurm_{name}")]:
            remove_cgroup(top)
    finally:
        os.close(held)


def remove_cgroup(path):
    for below in path.iterdir():
        if below.is_dir():
            remove_cgroup(below)
    until(lambda: not (path / "cgroup.procs").read_text(), lambda: f"{path} is empty")
    path.rmdir()


class Slurm:
    """with Slurm(cluster) as s: … Everything that it started is gone afterwards."""

    def __init__(self, cluster, words="", extra="", loading="optional", slots=2, kill_wait=2, shards=0, epilog="",
                 files=None, gpus=True, cgroups=False, partition="slice"):
        """`epilog`: what EpilogSlurmctld runs, with tsctl of this cluster at hand. `files` beside slurm.conf, by name;
        {dir} is the folder of all. `gpus`: jobs can ask for them. `cgroups`: Slurm tracks processes by them, and lets
        nobody open a device that it has not given. `partition`: the one in which jobs share nodes; by another name it is not the default."""
        self.cluster = cluster
        self.partition = partition
        self.dir = cluster.dir / "slurm"
        self.words = words
        self.extra = extra
        self.epilog = epilog
        self.files = {"cgroup.conf": "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n"
                      f"ConstrainDevices={'yes' if cgroups else 'no'}\n", **(files or {})}
        self.loading = loading
        self.slots = slots
        self.kill_wait = kill_wait
        self.shards = shards  # of each card, as in conf/slurm/shard
        self.gpus = gpus
        self.cgroups = cgroups
        self.names = [node.name for node in cluster.nodes]
        self.ports = free_ports(1 + len(self.names))
        self._ends = contextlib.ExitStack()
        self.daemons = {}
        self.scripts = 0

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            print(self.logs())
            self.close()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.logs())
        self.close()

    # --- configuration

    def conf(self, name=None):
        """Of one node, which has its own plugstack; of everybody else."""
        return self.dir / "etc" / (name or "") / "slurm.conf"

    def plugin_line(self, words=None, plugin=None):
        words = self.words if words is None else words
        return (f"{self.loading} {plugin or PLUGIN} socket={self.cluster.dir}/%n/node.sock preload={PRELOAD} "
                f"client={LIBRARY} timeout_ms=5000 {words}\n")

    def write_plugstack(self, text, *names):
        """Of the named nodes; without names of all and of whoever submits. Read anew at each launch."""
        for name in names or (None, *self.names):
            path = self.conf(name).parent / "plugstack.conf"
            path.with_suffix(".new").write_text(text)
            path.with_suffix(".new").rename(path)

    def set_words(self, words):
        self.write_plugstack(self.plugin_line(words))

    def _write(self):
        for name in ("etc", "dev", "log", "spool", "state", "munge", "out", "pid"):
            (self.dir / name).mkdir(parents=True)
        (self.dir / "state").chmod(0o700)
        (self.dir / "out").chmod(0o1777)
        for index in range(2):  # Slurm wants devices, and hands out their places only
            device = self.dir / "dev" / f"nvidia{index}"
            if self.cgroups:  # one that nobody drives: who may open it is told so
                os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(NO_DRIVER, index))
                device.chmod(0o666)
            else:
                device.symlink_to("/dev/null")
        key = self.dir / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        # What a driver and its libraries are on a real node.
        prolog = self.dir / "etc" / "task-prolog"
        prolog.write_text(f"#!/bin/sh\necho export SIMGPU_CARDS={self.cluster.dir}/$SLURMD_NODENAME/cards\n"
                          f"echo export LD_LIBRARY_PATH={Programs.simgpu}\n")
        prolog.chmod(0o755)
        if self.epilog:  # slurmctld looks for it when it starts
            script = self.dir / "etc" / "epilog"
            script.write_text(f"#!/bin/sh\nexport PATH={pathlib.Path(Programs.ctl).parent}:$PATH "
                              f"TIMESLICE_MASTER={self.cluster.address}\nexec {self.epilog}\n")
            script.chmod(0o755)
            self.extra += f"\nEpilogSlurmctld={script}"
        for name in (None, *self.names):
            path = self.conf(name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(self._text(path.parent))
            for other, text in {"gres.conf": self._gres(), **self.files}.items():
                (path.parent / other).write_text(text.replace("{dir}", str(self.dir)))
        for name in self.names:
            (self.dir / "spool" / name).mkdir()
        self.set_words(self.words)

    def _gres(self):
        names = ",".join(self.names)
        gpus = f"NodeName={names} Name=gpu Type=sim File={self.dir}/dev/nvidia[0-1]\n" if self.gpus else ""
        return (f"AutoDetect=off\n{gpus}NodeName={names} Name=tslot Count={self.slots}\n"
                + (f"NodeName={names} Name=shard Count={2 * self.shards}\n" if self.shards else ""))

    def _text(self, etc):
        host = socket.gethostname().split(".")[0]
        names = ",".join(self.names)
        shard, shards = (",shard", f",shard:{2 * self.shards}") if self.shards else ("", "")
        gpu, gpus = ("gpu,", "gpu:sim:2,") if self.gpus else ("", "")
        track, task = ("cgroup", "cgroup") if self.cgroups else ("linuxproc", "none")
        select = ",MULTIPLE_SHARING_GRES_PJ" if self.shards and version() >= (23, 11) else ""
        default = "YES" if self.partition == "slice" else "NO"
        nodes = "".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 RealMemory=1024000 "
            f"Gres={gpus}tslot:{self.slots}{shards} State=UNKNOWN\n" for name, port in zip(self.names, self.ports[1:]))
        return f"""ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={self.dir}/munge/socket
SlurmctldPort={self.ports[0]}
SlurmctldPidFile={self.dir}/pid/slurmctld
SlurmctldDebug=verbose
StateSaveLocation={self.dir}/state
SlurmdPidFile={self.dir}/pid/%n
SlurmdSpoolDir={self.dir}/spool/%n
SlurmdDebug=verbose
SlurmdParameters=config_overrides
DebugFlags=NO_CONF_HASH
ProctrackType=proctrack/{track}
TaskPlugin=task/{task}
TaskProlog={self.dir}/etc/task-prolog
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=20
InactiveLimit=0
KillWait={self.kill_wait}
MinJobAge=600
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
PrologFlags=Alloc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core{select}
AccountingStorageType=accounting_storage/none
PlugStackConfig={etc}/plugstack.conf
GresTypes={gpu}tslot{shard}
{self.extra}
{nodes}PartitionName={self.partition} Nodes={names} Default={default} MaxTime=INFINITE State=UP OverSubscribe=FORCE:{self.slots}
PartitionName=gpu Nodes={names} MaxTime=INFINITE State=UP
"""

    # --- life

    def start(self):
        if self.cgroups:
            self._ends.enter_context(cgroups_of(self.names))
        self._write()
        self._ends.callback(self._end_steps)
        self.start_daemon("munged", "munged", "--foreground", "--force", f"--key-file={self.dir}/munge/key",
                          f"--socket={self.dir}/munge/socket", f"--pid-file={self.dir}/pid/munged",
                          f"--log-file={self.dir}/log/munged", f"--seed-file={self.dir}/munge/seed")
        until((self.dir / "munge/socket").exists, "munged has its socket")
        self.start_daemons()
        self._ends.callback(self._cancel_all)
        until(self.is_ready, lambda: "all nodes are ready:\n" + self.run("scontrol", "-o", "show", "node").stdout)

    def start_daemons(self):
        for name in self.names:  # first: stopped the other way round slurmctld does not wait for them
            self.start_slurmd(name)
        self.start_slurmctld("-c")

    def start_daemon(self, name, *command, conf=None):
        env = {**clean_environment(), "SLURM_CONF": str(conf or self.conf()), MARK: str(self.dir)}
        with open(self.dir / "log" / f"{name}.stderr", "ab") as log:
            daemon = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.daemons[name] = daemon
        self._ends.callback(self.stop_daemon, daemon)
        return daemon

    def start_slurmctld(self, *words):
        return self.start_daemon("slurmctld", "slurmctld", "-D", *words, "-f", self.conf())

    def start_slurmd(self, name):
        return self.start_daemon(name, "slurmd", "-D", "-N", name, "-f", self.conf(name), conf=self.conf(name))

    def stop_daemon(self, daemon):
        if daemon.poll() is None:
            daemon.send_signal(signal.SIGCONT)
            daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(10)
            return
        daemon.kill()
        daemon.wait(PATIENCE)

    def kill_daemon(self, name):
        self.daemons[name].kill()
        self.daemons[name].wait(PATIENCE)

    def close(self):
        self._ends.close()

    def _cancel_all(self):
        if self.daemons["slurmctld"].poll() is not None:
            return
        for state in ("PENDING", "RUNNING", "SUSPENDED"):
            self.run("scancel", "-t", state, "-u", "root")
            self.run("scancel", "-t", state, "-u", pwd.getpwuid(NOBODY).pw_name)
        with contextlib.suppress(AssertionError):
            until(lambda: not self.run("squeue", "-h").stdout.strip(), "no job is left", 15)

    def _end_steps(self):
        for pid in self.step_daemons():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def step_daemons(self, job=None):
        """slurmstepds of this cluster. Whose they are is in the environment that they were started with; a slurmstepd of
        24.11 writes over it, and is known by its socket in the spool."""
        mark = f"{MARK}={self.dir}".encode()
        sockets = self._sockets()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or not is_running(entry.name):
                continue
            with contextlib.suppress(OSError):
                if (entry / "comm").read_text().strip() not in ("slurmstepd", "slurmd", "slurmctld", "slurmscriptd"):
                    continue
                title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                ours = mark in (entry / "environ").read_bytes().split(b"\0") or any(
                    os.readlink(fd) in sockets for fd in (entry / "fd").iterdir())
                if ours and (job is None or f"[{job}." in title):
                    found.append(int(entry.name))
        return found

    def _sockets(self):
        """What /proc/PID/fd shows of those that are bound in the folder of this cluster."""
        lines = (line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines())
        return {f"socket:[{line[6]}]" for line in lines if line[-1].startswith(f"{self.dir}/spool/")}

    def is_ready(self):
        shown = self.run("scontrol", "-o", "show", "node").stdout
        ready = re.findall(r"State=(?:IDLE|MIXED|ALLOCATED|COMPLETING)\S* .*?SlurmdStartTime=\d", shown)
        return len(ready) == len(self.names)

    def logs(self, count=40):
        out = []
        for path in sorted((self.dir / "log").glob("*")):
            lines = path.read_text(errors="replace").splitlines()[-count:]
            out += [f"  {path.name}: {line}" for line in lines]
        return "\n".join(out)

    def log(self, name):
        return (self.dir / "log" / f"{name}.stderr").read_text(errors="replace")

    # --- as a user types it

    def env(self, **variables):
        return {**clean_environment(), "SLURM_CONF": str(self.conf()), **variables}

    def start_command(self, *command, user=None, env=None, **options):
        return subprocess.Popen([*as_user(user), *map(str, command)], env=self.env(**(env or {})), text=True,
                                cwd=self.dir / "out", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def run(self, *command, user=None, env=None, input=None):
        return subprocess.run([*as_user(user), *map(str, command)], env=self.env(**(env or {})), text=True,
                              cwd=self.dir / "out", input=input, stdin=None if input else subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE * 2)

    def srun(self, *words, user=NOBODY, env=None):
        return self.run("srun", *words, user=user, env=env)

    def puppet(self, *words, user=NOBODY, before=""):
        """A program in a step of one task that does what the test tells it to; see tests/e2e/puppet.py. `before`: what the
        task's shell runs first."""
        self.scripts += 1
        path = self.dir / "out" / f"puppet-{self.scripts}"
        program = ["sh", "-c", f"{before} && exec {Programs.puppet}"] if before else [Programs.puppet]
        command = [*as_user(user), "srun", "-n1", "--unbuffered", *words, *program]
        path.write_text(f"#!/bin/sh\ncd {self.dir}/out\nexec {shlex.join(map(str, command))} 2>{path}.err\n")
        path.chmod(0o755)
        puppet = Puppet(path, self.env())
        puppet.errors = pathlib.Path(f"{path}.err")
        self._ends.callback(puppet.kill)
        return puppet

    def sbatch(self, script, *words, user=NOBODY, env=None):
        """The number of the job."""
        done = self.try_sbatch(script, *words, user=user, env=env)
        if done.returncode != 0:
            raise AssertionError(f"sbatch said {done.stderr}")
        return int(done.stdout.split(";")[0])

    def try_sbatch(self, script, *words, user=NOBODY, env=None):
        self.scripts += 1
        path = self.dir / "out" / f"script-{self.scripts}"
        path.write_text("#!/bin/bash\n" + script)
        path.chmod(0o755)
        return self.run("sbatch", "--parsable", "-o", f"{self.dir}/out/%A_%a.out", "-e", f"{self.dir}/out/%A_%a.err",
                        *words, path, user=user, env=env)

    def job(self, number):
        """What scontrol shows, by its words."""
        shown = self.run("scontrol", "-o", "show", "job", number).stdout.splitlines()
        return dict(re.findall(r"(\w[\w:/]*)=(\S*)", shown[0])) if shown else {}

    def wait(self, number, patience=PATIENCE):
        """The job when it is over and gone from its nodes."""
        def over():
            job = self.job(number)
            return job if job.get("JobState") in OVER else None
        return until(over, lambda: f"job {number} is over: {self.job(number)}\n{self.errors(number)}",
                     patience)

    def wait_running(self, number):
        return until(lambda: self.job(number).get("JobState") == "RUNNING", lambda: f"job {number} runs: {self.job(number)}")

    def _file(self, number, kind):
        path = self.dir / "out" / f"{number}_4294967294.{kind}"
        return path.read_text(errors="replace") if path.exists() else ""

    def output(self, number):
        return self._file(number, "out")

    def errors(self, number):
        return self._file(number, "err")

    def drained(self):
        shown = self.run("scontrol", "-o", "show", "node").stdout
        return re.findall(r"NodeName=(\S+) (?=.*State=\S*(?:DRAIN|DOWN|FAIL))", shown)


def clean_environment():
    """A test may itself run in a job of Slurm, or of timeslice."""
    foreign = re.compile(r"(SLURM|SBATCH|SALLOC|SRUN|SPANK|TIMESLICE|LD_PRELOAD|MESON|MALLOC)")
    kept = {name: value for name, value in os.environ.items() if not foreign.match(name)}
    return {**kept, "PATH": f"{kept.get('PATH', '')}:{TOOLS}", "PYTHONPATH": PYTHON, "PYTHONDONTWRITEBYTECODE": "1"}


@contextlib.contextmanager
def slurm_cluster(nodes=4, cards=("--bytes", "64MiB", "--cards", "2"), master=None, node=None, groups=None, hears=False, base=None,
                  **slurm):
    """`hears`: tsmasterd is told where Slurm is, and asks it often."""
    cluster = Cluster(nodes=nodes, cards=cards, master=master, node=node, groups=groups, base=base)
    if hears:
        cluster.master_config |= {"slurm": True, "slurm_conf": f"{cluster.dir}/slurm/etc/slurm.conf", "slurm_period": "300 ms"}
    with cluster:
        with Slurm(cluster, **slurm) as s:
            yield cluster, s
