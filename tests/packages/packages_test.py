#!/usr/bin/env python3
"""What an administrator does with the Debian packages, step by step. Called by tools/test-packages.

usage: packages_test.py SOURCE_ROOT FOLDER_OF_PACKAGES BASE_CHROOT   (the last two may be empty)
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = int(os.environ.get("TIMESLICE_TEST_PATIENCE", "120"))
UID = "683"
MASTER = 'log_level = "debug"\n'
# No GPU in there: one declared device, and nothing to move.
NODE = 'name = "n1"\nbackend = "none"\ndevices = 1\n'


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def require(condition, *what):
    if not condition:
        raise Failed(" ".join(str(w) for w in what))


def run(*words, check=True, **options):
    done = subprocess.run([str(w) for w in words], text=True, capture_output=True, **options)
    require(not check or done.returncode == 0, *words, "ended with", done.returncode, done.stdout, done.stderr)
    return done


def wait_until(condition, what):
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        require(time.monotonic() < until, "it never came that", what)
    return found


class Chroot:
    """A Debian 12 of our own; `boot()` starts its systemd."""

    def __init__(self, base):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="timeslice-packages-", dir=os.environ.get("TMPDIR", "/var/tmp")))
        self.root.chmod(0o755)
        self.nspawn = None
        self.leader = None
        if base:
            run("cp", "-a", "--reflink=auto", f"{base}/.", self.root)
        else:
            run("debootstrap", "--variant=minbase", "--include=systemd-sysv,munge,python3,ca-certificates", "bookworm", self.root)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")

    def without_systemd(self, *words, check=True):
        """As in a container image: no init, no /run/systemd."""
        inside = 'mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc && mount --rbind /dev dev && exec chroot . "$@"'
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside, self.root, *words, check=check,
                   env=self.environment())

    def environment(self):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "HOME": "/root"}

    def boot(self):
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", f"--directory={self.root}", "--boot", "--register=no", "--keep-unit",
             "--private-network", "--console=pipe"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.leader = wait_until(self.find_leader, "the chroot boots")
        wait_until(lambda: self.enter("systemctl", "is-system-running", check=False).stdout.strip() == "running",
                   "its systemd runs")

    def find_leader(self):
        require(self.nspawn.poll() is None, "systemd-nspawn ended with", self.nspawn.returncode)
        return run("pgrep", "--parent", self.nspawn.pid, check=False).stdout.strip()

    def inside(self, *words):
        return ["nsenter", "--target", self.leader, "--mount", "--uts", "--ipc", "--net", "--pid", "--", *map(str, words)]

    def enter(self, *words, check=True):
        return run(*self.inside(*words), check=check, env=self.environment())

    def shut_down(self):
        if self.nspawn and self.nspawn.poll() is None:
            self.nspawn.send_signal(signal.SIGTERM)
            try:
                self.nspawn.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.nspawn.kill()
                self.nspawn.wait()

    def remove(self):
        self.shut_down()
        shutil.rmtree(self.root, ignore_errors=True)


class Walk:
    """The steps in their order; the name of each says what holds."""

    def __init__(self, source, debs, base):
        self.source = source
        self.base = base
        self.temporary = None if debs else tempfile.mkdtemp(prefix="timeslice-debs-")
        self.folder = pathlib.Path(debs or self.temporary)
        self.chroot = None
        self.job = None

    def debs(self):
        return sorted(self.folder.glob("timeslice-*.deb"))

    def systemctl(self, *words, check=True):
        return self.chroot.enter("systemctl", *words, check=check)

    def shown(self, unit, key):
        return self.systemctl("show", "--value", "--property", key, unit).stdout.strip()

    def status(self):
        return json.loads(self.chroot.enter("tsctl", "status", "--json").stdout)

    def node_is_up(self):
        done = self.chroot.enter("tsctl", "nodes", check=False)
        return re.search(r"(?m)^n1\b.*\bup\b", done.stdout)

    def journal(self, unit, *words):
        return self.chroot.enter("journalctl", "--quiet", "--no-pager", "-o", "cat", "-u", unit, *words).stdout

    # --- a job that has the turn until it is told to end

    def start_job(self):
        (self.chroot.root / "gate").unlink(missing_ok=True)
        os.mkfifo(self.chroot.root / "gate", 0o644)
        self.job = subprocess.Popen(
            self.chroot.inside("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "tsctl", "slice", "--group", "g",
                               "--job", "walk", "--", "sh", "-c", "read -r line </gate"),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.chroot.environment())
        wait_until(self.holds, "the job has its turn")

    def holds(self):
        require(self.job.poll() is None, "the job ended:", self.job.stderr.read() if self.job.poll() is not None else "")
        return re.search(r"\bwalk\b.*\bhold", self.chroot.enter("tsctl", "jobs", check=False).stdout)

    def check_holds(self):
        wait_until(self.node_is_up, "the node is up")
        wait_until(self.holds, "the job has its turn still")

    def end_job(self):
        (self.chroot.root / "gate").write_text("go\n")
        require(self.job.wait(PATIENCE) == 0, "the job ended with", self.job.returncode, self.job.stderr.read())
        self.job = None

    # --- the steps

    def step_01_one_command_builds_the_packages(self):
        if self.temporary:
            print(run(self.source / "tools/package-debian", "--out", self.folder).stderr, end="", file=sys.stderr)
        names = {deb.name.split("_")[0] for deb in self.debs()}
        require({"timeslice-client", "timeslice-node", "timeslice-master"} <= names, names)

    def step_02_lintian_finds_no_error(self):
        done = run("lintian", "--allow-root", "--fail-on", "error", *self.debs(), check=False)
        print(done.stdout, end="", file=sys.stderr)
        require(done.returncode == 0, done.stdout, done.stderr)

    def step_03_the_plugin_is_in_a_package_of_one_version_of_slurm(self):
        debs = [deb for deb in self.debs() if re.match(r"timeslice-slurm[0-9.]+_", deb.name)]
        if not debs:
            raise Skipped("no plugin was built: tools/package-debian has said why")
        version = re.match(r"timeslice-slurm([0-9]+)\.([0-9]+)_", debs[0].name).groups()
        depends = run("dpkg-deb", "--field", debs[0], "Depends").stdout
        for wish in (f"slurm-client (>= {'.'.join(version)})", f"slurm-client (<< {version[0]}.{int(version[1]) + 1:02d})"):
            require(wish in depends, depends)
        with tempfile.TemporaryDirectory() as folder:
            run("dpkg-deb", "--extract", debs[0], folder)
            line = pathlib.Path(folder, "usr/share/timeslice/slurm/timeslice.conf").read_text().splitlines()[-1]
            require(line.startswith("optional /usr/"), line)
            require(pathlib.Path(folder, line.split()[1][1:]).exists(), line, "names what is not in the package")

    def step_04_they_are_installed_where_no_systemd_runs_and_the_site_says_which_uid(self):
        self.chroot = Chroot(self.base)
        etc = self.chroot.root / "etc/sysusers.d"
        etc.mkdir(exist_ok=True)
        (etc / "timeslice.conf").write_text(f'u timeslice {UID} "Master of timeslice" /var/lib/timeslice\n')
        (self.chroot.root / "debs").mkdir()
        for deb in self.debs():
            if "-slurm" not in deb.name and "-dbgsym" not in deb.name:
                shutil.copy(deb, self.chroot.root / "debs")
        self.chroot.without_systemd("apt-get", "update", "-qq")
        self.chroot.without_systemd("sh", "-c", "apt-get install -y -qq --no-install-recommends munge /debs/*.deb")
        passwd = (self.chroot.root / "etc/passwd").read_text()
        require(re.search(rf"(?m)^timeslice:[^:]*:{UID}:", passwd), passwd)

    def step_05_programs_run_and_python_finds_the_library(self):
        for program in ("tsctl", "tsmasterd", "tsnoded"):
            self.chroot.without_systemd(program, "--version")
        self.chroot.without_systemd("python3", "-c", "import timeslice; timeslice.join()")
        libraries = [p for p in (self.chroot.root / "usr/lib").glob("*/libtimeslice*.so*") if not p.is_symlink()]
        require(len(libraries) == 2, libraries)
        run("bash", self.source / "tests/client/libc_only.sh", *libraries)

    def step_06_a_machine_that_is_not_configured_boots_without_a_failure_and_runs_none_of_it(self):
        self.chroot.boot()
        for unit in ("tsmasterd.service", "tsnoded.service", "tsnoded.socket"):
            require(self.shown(unit, "ActiveState") == "inactive", unit, self.shown(unit, "ActiveState"))
            require(self.systemctl("is-enabled", unit).stdout.strip() == "enabled", unit)

    def step_07_with_two_files_they_start_and_the_node_is_up(self):
        etc = self.chroot.root / "etc/timeslice"
        (etc / "master.toml").write_text(MASTER)
        (etc / "node.toml").write_text(NODE)
        self.systemctl("start", "tsmasterd", "tsnoded")
        wait_until(self.node_is_up, "the node is up")
        require(self.shown("tsmasterd", "Type") == "notify")
        doctor = self.chroot.enter("tsctl", "doctor", check=False)
        require("fail " not in doctor.stdout, doctor.stdout)

    def step_08_the_journal_has_the_lines_with_their_priorities(self):
        require("ready" in self.journal("tsnoded", "--priority", "info"), self.journal("tsnoded"))
        require("level=" not in self.journal("tsnoded"), "the journal knows the level itself")
        require("declared" not in self.journal("tsmasterd", "--priority", "info"), "debug lines are not informational")

    def step_09_a_restart_of_each_daemon_leaves_the_job_its_turn(self):
        self.start_job()
        for unit in ("tsnoded", "tsmasterd"):
            before = self.shown(unit, "MainPID")
            self.systemctl("restart", unit)
            require(self.shown(unit, "MainPID") != before)
            self.check_holds()

    def step_10_a_killed_daemon_is_started_anew(self):
        for unit in ("tsnoded", "tsmasterd"):
            before = self.shown(unit, "MainPID")
            self.systemctl("kill", "--signal=KILL", unit)
            wait_until(lambda: self.shown(unit, "MainPID") not in (before, "0"), f"{unit} is started anew")
            self.check_holds()

    def step_11_a_daemon_that_hangs_is_started_anew(self):
        for unit in ("tsnoded", "tsmasterd"):
            folder = self.chroot.root / f"etc/systemd/system/{unit}.service.d"
            folder.mkdir(parents=True)
            (folder / "soon.conf").write_text("[Service]\nWatchdogSec=1\n")
            self.systemctl("daemon-reload")
            self.systemctl("restart", unit)
            before = self.shown(unit, "MainPID")
            self.systemctl("kill", "--signal=STOP", unit)
            wait_until(lambda: self.shown(unit, "MainPID") not in (before, "0"), f"{unit} is started anew")
            require("watchdog" in self.journal(unit).lower(), self.journal(unit))
            shutil.rmtree(folder)
            self.systemctl("daemon-reload")
            self.systemctl("restart", unit)
            self.check_holds()

    def step_12_a_wrong_configuration_is_named_with_its_line_and_tried_once(self):
        node = self.chroot.root / "etc/timeslice/node.toml"
        node.write_text(NODE + 'bakend = "none"\n')
        require(self.systemctl("restart", "tsnoded", check=False).returncode != 0, "it started")
        require("/etc/timeslice/node.toml:4" in self.journal("tsnoded"), self.journal("tsnoded"))
        require(self.shown("tsnoded", "ActiveState") == "failed", self.shown("tsnoded", "ActiveState"))
        require(self.shown("tsnoded", "NRestarts") == "0", self.shown("tsnoded", "NRestarts"))
        require(self.job.poll() is None, "the job did not live through it")
        node.write_text(NODE)
        self.systemctl("start", "tsnoded")
        self.check_holds()

    def step_13_an_upgrade_restarts_the_daemons_and_not_the_socket_and_leaves_the_job_its_turn(self):
        pids = [self.shown(unit, "MainPID") for unit in ("tsnoded", "tsmasterd")]
        socket = self.chroot.enter("stat", "--format=%i", "/run/timeslice/node.sock").stdout
        self.chroot.enter("sh", "-c", "apt-get install -y -qq --reinstall /debs/*.deb")
        now = [self.shown(unit, "MainPID") for unit in ("tsnoded", "tsmasterd")]
        require(all(a != b and b != "0" for a, b in zip(pids, now)), pids, now)
        require(self.chroot.enter("stat", "--format=%i", "/run/timeslice/node.sock").stdout == socket, "another socket")
        self.check_holds()
        self.end_job()

    def step_14_who_comes_while_the_daemon_is_down_starts_it(self):
        self.systemctl("stop", "tsnoded")
        self.chroot.enter("tsctl", "slice", "--group", "g", "--deadline", "1min", "--", "true")
        require(self.shown("tsnoded", "ActiveState") == "active")

    def step_15_a_removal_stops_all_and_keeps_configuration_and_history(self):
        self.chroot.enter("apt-get", "remove", "-y", "-qq", "timeslice-node", "timeslice-master", "timeslice-client")
        require(not self.chroot.enter("pgrep", "-x", "tsnoded|tsmasterd", check=False).stdout, "a daemon still runs")
        for place in ("etc/timeslice/node.toml", "etc/timeslice/master.toml", "var/lib/timeslice/master.db"):
            require((self.chroot.root / place).exists(), place, "is gone")

    def step_16_a_purge_leaves_nothing(self):
        self.chroot.enter("apt-get", "purge", "-y", "-qq", "timeslice-node", "timeslice-master", "timeslice-client")
        for place in ("etc/timeslice", "var/lib/timeslice"):
            require(not (self.chroot.root / place).exists(), place, "is still there")
        left = self.chroot.enter("sh", "-c", "find / -xdev -path /debs -prune -o -path /proc -prune -o "
                                 "-path /var/log -prune -o -name '*timeslice*' -print").stdout.split()
        # The site's own word about the uid, and what systemd keeps of a user's runtime directories.
        require([p for p in left if p != "/etc/sysusers.d/timeslice.conf"] == [], left)
        require(self.systemctl("--failed", "--plain", "--no-legend").stdout == "", "a unit has failed")

    def close(self):
        if self.job and self.job.poll() is None:
            self.job.kill()
        if self.chroot:
            self.chroot.remove()
        if self.temporary:
            shutil.rmtree(self.temporary, ignore_errors=True)


def main():
    source, debs, base = (pathlib.Path(sys.argv[1]), *sys.argv[2:4])
    walk = Walk(source, debs, base)
    steps = [name for name in sorted(dir(walk)) if name.startswith("step_")]
    passed = skipped = 0
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    try:
        for name in steps:
            print("==", name[8:].replace("_", " "), file=sys.stderr, flush=True)
            try:
                getattr(walk, name)()
                passed += 1
            except Skipped as reason:
                print(reason, file=sys.stderr)
                skipped += 1
    except (Failed, subprocess.SubprocessError, OSError) as e:
        print(e, file=sys.stderr)
    finally:
        walk.close()
        print(f"{passed} passed, {len(steps) - passed - skipped} failed, {skipped} skipped")
    sys.exit(passed + skipped < len(steps))


if __name__ == "__main__":
    main()
