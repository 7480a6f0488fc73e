"""A real Slurm with one of the recipes of conf/slurm, in a folder and on ports of its own: munged, slurmctld, slurmds."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import types

for folder in ("slurm", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
from slurm import Slurm, until  # noqa: E402

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


def without(text, *keys):
    """Lines of a configuration but those that begin with one of the keys."""
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith(keys))


class Recipe:
    """conf/slurm/NAME, word by word but for what differs from machine to machine: nodes, CPUs, memory, device files."""
    CPUS = 8
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
        text = text.replace("gpu-[1-4]", names).replace("CPUs=64", f"CPUs={self.CPUS}")
        text = text.replace("DefMemPerNode=512000", f"DefMemPerNode={self.MEMORY // 2}")
        text = text.replace("DefMemPerCPU=8000", f"DefMemPerCPU={self.MEMORY // self.CPUS // 2}")
        text = text.replace("RealMemory=1024000", f"RealMemory={self.MEMORY}")
        # Two GPUs instead of eight, and as many shards of each.
        return text.replace("gpu:8,shard:16", "gpu:2,shard:4").replace("Name=shard Count=16", "Name=shard Count=4")


class Site(Slurm):
    """with Site(Recipe(folder)) as site: … Everything that it started is gone afterwards."""

    def __init__(self, recipe, nodes=2, extra="", configless=False, plugstack=""):
        base = "/dev/shm" if os.path.isdir("/dev/shm") else None  # munge wants short paths
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ts-slurm-", dir=base))
        folder.chmod(0o755)
        nodes = [types.SimpleNamespace(name=f"n{i + 1}") for i in range(nodes)]
        super().__init__(types.SimpleNamespace(dir=folder, nodes=nodes))
        self._ends.callback(shutil.rmtree, folder, ignore_errors=True)
        self.recipe = recipe
        self.configless = configless
        self.more = extra + ("SlurmctldParameters=enable_configless\n" if configless else "")
        self.plugstack = plugstack

    def conf(self, name=None):
        return self.dir / "slurm.conf"

    def _write(self):
        names = f"n[1-{len(self.names)}]"
        for folder in ("log", "state", "spool", "munge", "dev", "out", "pid", *(f"spool/{name}" for name in self.names)):
            (self.dir / folder).mkdir(mode=0o755, parents=True)
        for i in range(GPUS):
            (self.dir / f"dev/nvidia{i}").symlink_to("/dev/null")
        key = self.dir / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.conf().write_text(self._text(names))
        recipe = self.recipe
        gres = recipe.nodes_of_test(recipe.gres, names).replace("/dev/nvidia[0-7]", f"{self.dir}/dev/nvidia[0-{GPUS - 1}]")
        (self.dir / "gres.conf").write_text("AutoDetect=off\n" + gres)
        (self.dir / "cgroup.conf").write_text(recipe.cgroup)
        (self.dir / "plugstack.conf").write_text(self.plugstack)

    def _text(self, names):
        # What a machine without cgroups of its own, and a cluster in a folder, cannot have from the recipe.
        lines = without(self.recipe.slurm, "ProctrackType", "TaskPlugin", "NodeName")
        node_line = re.search(r"(?m)^NodeName=gpu-\[1-4\] (.*)$", self.recipe.slurm)[1]
        host = socket.gethostname().split(".")[0]
        text = BASE.format(dir=self.dir, host=host, port=self.ports[0]) + self.recipe.nodes_of_test(lines, names)
        for name, port in zip(self.names, self.ports[1:]):
            text += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            text += self.recipe.nodes_of_test(node_line, names) + "\n"
        # A partition follows its nodes.
        partitions = [line for line in text.splitlines() if line.startswith("PartitionName")]
        return without(text, "PartitionName") + "\n".join(partitions) + "\n" + self.more

    def start_daemons(self):
        if not self.configless:
            return super().start_daemons()
        slurmctld = self.start_slurmctld("-c")  # has what the others are waiting for
        for name in self.names:
            self.start_slurmd(name)
        self._ends.callback(self.stop_daemon, slurmctld)

    def start_slurmd(self, name):
        if not self.configless:
            return super().start_slurmd(name)
        # What it is sent lies in /run/slurm, and munged is asked where it always is: a /run of its own has both.
        run = self.dir / "run" / name
        (run / "munge").mkdir(parents=True)
        (run / "munge/munge.socket.2").symlink_to(self.dir / "munge/socket")
        return self.start_daemon(name, "unshare", "--mount", "sh", "-c",
                                 'mount --bind "$1" /run && shift && unset SLURM_CONF && exec "$@"', "sh", run,
                                 "slurmd", "-D", "-N", name, "--conf-server", f"127.0.0.1:{self.ports[0]}")

    def stop_controller(self):
        self.stop_daemon(self.daemons["slurmctld"])

    def idle(self):
        said = self.command("scontrol", "--oneliner", "show", "node")
        return len(re.findall(r"State=IDLE .*SlurmdStartTime=\d", said.stdout))

    def command(self, *words, env=None):
        return self.run(*words, env=env)

    def wait_until(self, condition, what):
        until(condition, what)

    def job_state(self, job):
        said = self.command("scontrol", "--oneliner", "show", "job", job).stdout
        return re.search(r"JobState=(\S+) Reason=(\S+)", said).groups()


BASE = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge/socket
SlurmctldPort={port}
SlurmctldPidFile={dir}/pid/slurmctld
StateSaveLocation={dir}/state
SlurmdPidFile={dir}/pid/%n
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
