"""A real Slurm with one of the recipes of conf/slurm, in a folder and on ports of its own: munged, slurmctld, slurmds."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE = int(os.environ.get("TIMESLICE_TEST_PATIENCE", "60"))
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol")
SBIN = os.pathsep + os.pathsep.join(("/usr/sbin", "/sbin"))
GPUS = 2  # of each node; links to /dev/null


def missing():
    """What is needed and not there, in words; "" if all is."""
    gone = [p for p in PROGRAMS if not shutil.which(p, path=os.environ["PATH"] + SBIN)]
    if os.geteuid() != 0:
        return "a Slurm of its own needs root"
    return f"no {', '.join(gone)} here: apt-get install slurmctld slurmd slurm-client munge" if gone else ""


def version():
    """(22, 5)"""
    slurmctld = shutil.which("slurmctld", path=os.environ["PATH"] + SBIN)
    said = subprocess.run([slurmctld, "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(int(n) for n in said.split()[1].split(".")[:2])


def free_ports(count):
    """A run of ports that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def without(text, *keys):
    """Lines of a configuration but those that begin with one of the keys."""
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith(keys))


class Recipe:
    """conf/slurm/NAME, word by word but for what differs from machine to machine: nodes, CPUs, memory, device files."""
    MEMORY = 2048

    def __init__(self, folder):
        self.slurm, self.gres, self.cgroup = ((folder / f"{name}.conf").read_text()
                                              for name in ("slurm", "gres", "cgroup"))

    def change(self, old, new):
        """In slurm.conf, for a site that strays from the recipe."""
        assert old in self.slurm, old
        self.slurm = self.slurm.replace(old, new)
        return self

    def nodes_of_test(self, text, names):
        text = text.replace("gpu-[1-4]", names).replace("CPUs=64", "CPUs=8")
        text = text.replace("DefMemPerNode=512000", f"DefMemPerNode={self.MEMORY // 2}")
        text = text.replace("RealMemory=1024000", f"RealMemory={self.MEMORY}")
        # Two GPUs instead of eight, and as many shards of each.
        return text.replace("gpu:8,shard:16", "gpu:2,shard:4").replace("Name=shard Count=16", "Name=shard Count=4")


class Site:
    """with Site(Recipe(folder)) as site: … Everything that it started is gone afterwards."""

    def __init__(self, recipe, nodes=2, extra="", configless=False, plugstack=""):
        base = "/dev/shm" if os.path.isdir("/dev/shm") else None  # munge wants short paths
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ts-slurm-", dir=base))
        self.dir.chmod(0o755)
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.conf = self.dir / "slurm.conf"
        self.env = {k: v for k, v in os.environ.items() if not re.match(r"(SLURM|SBATCH|SALLOC|SRUN|TIMESLICE)_", k)}
        self.env |= {"SLURM_CONF": str(self.conf), "PATH": os.environ["PATH"] + SBIN, "LC_ALL": "C"}
        self.processes = []
        self.configless = configless
        self.write(recipe, extra + ("SlurmctldParameters=enable_configless\n" if configless else ""), plugstack)

    def write(self, recipe, extra, plugstack):
        names = f"n[1-{len(self.names)}]"
        self.port, *ports = free_ports(1 + len(self.names))
        for folder in ("log", "state", "spool", "munge", "dev"):
            (self.dir / folder).mkdir(mode=0o755)
        for i in range(GPUS):
            (self.dir / f"dev/nvidia{i}").symlink_to("/dev/null")
        key = self.dir / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        # What a machine without cgroups of its own, and a cluster in a folder, cannot have from the recipe.
        lines = without(recipe.slurm, "ProctrackType", "TaskPlugin", "NodeName")
        node_line = re.search(r"(?m)^NodeName=gpu-\[1-4\] (.*)$", recipe.slurm)[1]
        host = socket.gethostname().split(".")[0]
        text = BASE.format(dir=self.dir, host=host, port=self.port) + recipe.nodes_of_test(lines, names)
        for name, port in zip(self.names, ports):
            text += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            text += recipe.nodes_of_test(node_line, names) + "\n"
        # A partition follows its nodes.
        partitions = [line for line in text.splitlines() if line.startswith("PartitionName")]
        self.conf.write_text(without(text, "PartitionName") + "\n".join(partitions) + "\n" + extra)
        gres = recipe.nodes_of_test(recipe.gres, names).replace("/dev/nvidia[0-7]", f"{self.dir}/dev/nvidia[0-{GPUS - 1}]")
        (self.dir / "gres.conf").write_text("AutoDetect=off\n" + gres)
        (self.dir / "cgroup.conf").write_text(recipe.cgroup)
        (self.dir / "plugstack.conf").write_text(plugstack)

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

    def start(self):
        d = self.dir
        self.run("munged", "--foreground", "--force", f"--key-file={d}/munge/key", f"--socket={d}/munge/socket",
                 f"--pid-file={d}/munge/pid", f"--log-file={d}/log/munged.log", f"--seed-file={d}/munge/seed")
        self.wait_until(lambda: (d / "munge/socket").exists(), "munged listens")
        self.run("slurmctld", "-D", "-c", "-f", str(self.conf))
        for name in self.names:
            (d / "spool" / name).mkdir()
            self.start_node(name)
        self.wait_until(lambda: self.idle() == len(self.names), "all nodes are idle")

    def start_node(self, name):
        if not self.configless:
            self.run("slurmd", "-D", "-N", name, "-f", str(self.conf))
            return
        # What it is sent lies in /run/slurm, and munged is asked where it always is: a /run of its own has both.
        run = self.dir / "run" / name
        (run / "munge").mkdir(parents=True)
        (run / "munge/munge.socket.2").symlink_to(self.dir / "munge/socket")
        self.run("unshare", "--mount", "sh", "-c", 'mount --bind "$1" /run && shift && unset SLURM_CONF && exec "$@"', "sh",
                 str(run), "slurmd", "-D", "-N", name, "--conf-server", f"127.0.0.1:{self.port}")

    def stop_controller(self):
        self.processes[1].terminate()
        self.processes.pop(1).wait(PATIENCE)

    def idle(self):
        said = self.command("scontrol", "--oneliner", "show", "node")
        return len(re.findall(r"State=IDLE .*SlurmdStartTime=\d", said.stdout))

    def run(self, program, *words):
        log = open(self.dir / f"log/{program}.out", "a")
        self.processes.append(subprocess.Popen([shutil.which(program, path=self.env["PATH"]), *words], env=self.env,
                                               stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True))
        log.close()

    def command(self, *words, env=None):
        return subprocess.run([str(w) for w in words], env={**self.env, **(env or {})}, capture_output=True, text=True,
                              timeout=PATIENCE)

    def wait_until(self, condition, what):
        until = time.monotonic() + PATIENCE
        while not condition():
            for process in self.processes:
                if process.poll() is not None:
                    raise AssertionError(f"{process.args[0]} ended with {process.returncode} before {what}")
            if time.monotonic() > until:
                raise AssertionError(f"it never came that {what}")

    def job_state(self, job):
        said = self.command("scontrol", "--oneliner", "show", "job", job).stdout
        return re.search(r"JobState=(\S+) Reason=(\S+)", said).groups()

    def logs(self):
        return "".join(f"== {log.name}\n{''.join(log.read_text(errors='replace').splitlines(True)[-30:])}"
                       for log in sorted((self.dir / "log").iterdir()))

    def close(self):
        if len(self.processes) > 1:
            self.command("scancel", "--user=root", "--signal=KILL")
        # The controller first: without its nodes it waits for them.
        for process in [*self.processes[1:], *self.processes[:1]]:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []
        end_strays(self.dir)
        shutil.rmtree(self.dir, ignore_errors=True)


def end_strays(folder):
    """Each slurmstepd and job that still has this site in its environment."""
    mark = f"SLURM_CONF={folder}/".encode()  # without a file of its own a slurmd names its copy
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            ours = any(entry.startswith(mark) for entry in path.read_bytes().split(b"\0"))
            if ours and int(path.parent.name) != os.getpid():
                os.kill(int(path.parent.name), signal.SIGKILL)
        except (OSError, ValueError):
            pass


BASE = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge/socket
SlurmctldPort={port}
SlurmctldPidFile={dir}/state/slurmctld.pid
SlurmctldLogFile={dir}/log/slurmctld.log
StateSaveLocation={dir}/state
SlurmdPidFile={dir}/spool/%n.pid
SlurmdLogFile={dir}/log/slurmd.%n.log
SlurmdSpoolDir={dir}/spool/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
AccountingStorageType=accounting_storage/none
PlugStackConfig={dir}/plugstack.conf
"""
