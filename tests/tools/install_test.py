#!/usr/bin/env python3
"""What `meson install` puts where, what the units for systemd allow, which package takes what.

usage: install_test.py SOURCE_ROOT BUILD_ROOT
"""
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(2))
SOURCE = pathlib.Path(sys.argv.pop(1))
UNITS = ("tsmasterd.service", "tsnoded.service", "tsnoded.socket")


class Installed(unittest.TestCase):
    """`meson install` into a folder of its own."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        done = subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir", cls.root],
                              text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.places = ["/" + p.relative_to(cls.root).as_posix() for p in cls.root.rglob("*") if not p.is_dir()]

    def the_one(self, end):
        found = [place for place in self.places if place.endswith(end)]
        self.assertEqual(len(found), 1, f"{end}: {found}")
        return self.root / found[0][1:]

    def test_programs_library_and_headers(self):
        for end in ("/bin/tsctl", "/sbin/tsmasterd", "/sbin/tsnoded", "/libtimeslice.so.0.1.0",
                    "/libtimeslice-preload.so", "/include/timeslice/timeslice.h", "/include/timeslice/timeslice.hpp"):
            self.the_one(end)

    def test_every_file_of_the_python_package(self):
        for file in (SOURCE / "python/timeslice").iterdir():
            if file.is_file():
                self.the_one(f"-packages/timeslice/{file.name}")

    def test_the_examples_of_configuration(self):
        for file in [*(SOURCE / "conf").rglob("*.toml"), *(SOURCE / "conf").rglob("*.conf")]:
            place = self.the_one(f"/share/doc/timeslice/examples/{file.relative_to(SOURCE / 'conf')}")
            self.assertEqual(place.read_text(), file.read_text())

    def test_the_line_for_plugstack_names_the_place_of_the_plugin_and_is_optional(self):
        lines = self.the_one("/share/timeslice/slurm/timeslice.conf").read_text().splitlines()
        said = [line for line in lines if not line.startswith("#")]
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], r"^optional /.*/slurm/spank_timeslice\.so$")

    def test_the_epilog_finds_tsctl_where_it_is_installed(self):
        script = self.the_one("/share/timeslice/slurm/epilog-slurmctld")
        self.assertTrue(os.access(script, os.X_OK))
        folder = "/" + self.the_one("/bin/tsctl").parent.relative_to(self.root).as_posix()
        self.assertIn(f"}}{folder}:", script.read_text())

    @unittest.skipUnless(shutil.which("go-md2man"), "no go-md2man here")
    def test_a_manual_page_for_each_that_is_written(self):
        for page in (SOURCE / "docs/man").glob("*.md"):
            self.the_one(f"/man{page.stem[-1]}/{page.stem}")

    def test_the_units_start_the_programs_that_are_installed_with_them(self):
        for unit in UNITS:
            text = self.the_one(f"/systemd/system/{unit}").read_text()
            self.assertNotRegex(text, r"@\w+@")
            for program in re.findall(r"(?m)^ExecStart=(\S+)", text):
                self.assertTrue(os.access(self.root / program[1:], os.X_OK), program)

    @unittest.skipUnless(shutil.which("systemd-sysusers"), "no systemd-sysusers here: apt-get install systemd")
    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_the_user_of_the_master_is_made_with_the_uid_that_the_site_says_if_it_says_one(self):
        self.the_one("/sysusers.d/timeslice.conf")
        for say, uid in (('u timeslice 683 "of this site" /var/lib/timeslice\n', "683"), (None, r"\d+")):
            etc = self.root / "etc"
            shutil.rmtree(etc, ignore_errors=True)
            (etc / "sysusers.d").mkdir(parents=True)
            if say:
                (etc / "sysusers.d/timeslice.conf").write_text(say)
            done = subprocess.run(["systemd-sysusers", f"--root={self.root}", "timeslice.conf"], text=True,
                                  capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex((etc / "passwd").read_text(), rf"(?m)^timeslice:[^:]*:{uid}:.*:/usr/sbin/nologin$")

    @unittest.skipUnless(shutil.which("systemd-tmpfiles"), "no systemd-tmpfiles here: apt-get install systemd")
    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_the_folders_are_made_each_for_its_owner(self):
        etc = self.root / "etc"
        etc.mkdir(exist_ok=True)
        (etc / "passwd").write_text("root:x:0:0::/:/bin/sh\ntimeslice:x:683:683::/:/usr/sbin/nologin\n")
        (etc / "group").write_text("root:x:0:\ntimeslice:x:683:\n")
        for conf in ("timeslice-master.conf", "timeslice-node.conf"):
            self.the_one(f"/tmpfiles.d/{conf}")
            done = subprocess.run(["systemd-tmpfiles", f"--root={self.root}", "--create", conf], text=True,
                                  capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        for folder, owner, mode in (("run/timeslice", 0, 0o755), ("run/timeslice-master", 683, 0o755),
                                    ("var/lib/timeslice", 683, 0o700), ("etc/timeslice", 0, 0o755)):
            found = (self.root / folder).stat()
            self.assertEqual((found.st_uid, found.st_mode & 0o777), (owner, mode), folder)


class WithoutDaemons(unittest.TestCase):
    """For another Slurm: what jobs load, on a machine that has nothing but a compiler."""

    def test_what_jobs_load_is_built_and_installed_where_no_library_of_the_daemons_is(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PKG_CONFIG_LIBDIR": "/nowhere", "CCACHE_NOHASHDIR": "1"}
            environment.pop("PKG_CONFIG_PATH", None)
            build, root = f"{folder}/build", pathlib.Path(folder, "root")
            for words in (("setup", build, SOURCE, "-Ddaemons=disabled", "-Dslurm=disabled"), ("install", "-C", build, "--destdir", root)):
                done = subprocess.run(["meson", *map(str, words)], text=True, capture_output=True, env=environment)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            names = {place.name for place in root.rglob("*") if not place.is_dir()}
        self.assertLessEqual({"libtimeslice.so.0.1.0", "libtimeslice-preload.so", "timeslice.h", "__init__.py"}, names)
        self.assertEqual({name for name in names if name.startswith("ts")}, set(), "a program")


class Packages(unittest.TestCase):
    """What each Debian package takes of what is installed."""

    def lists(self):
        """{package: its patterns}"""
        return {file.stem: [line.split()[0] for line in file.read_text().splitlines()]
                for file in (SOURCE / "packaging/debian").glob("*.install")}

    def as_packaged(self, place, prefix):
        place = re.sub(r"^.*-packages/", "usr/lib/python3/dist-packages/", place.replace(prefix, "usr", 1))
        return place.replace("usr/lib/systemd/", "lib/systemd/")

    def test_every_installed_file_is_in_one_package(self):
        options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", str(BUILD)], text=True,
                                            capture_output=True, check=True).stdout)
        prefix = next(o["value"] for o in options if o["name"] == "prefix")
        told = subprocess.run(["meson", "introspect", "--installed", str(BUILD)], text=True, capture_output=True,
                              check=True)
        lists = self.lists()
        for place in map(lambda p: self.as_packaged(p, prefix), json.loads(told.stdout).values()):
            takers = [package for package, patterns in lists.items()
                      if any(fnmatch.fnmatch(place, p) or fnmatch.fnmatch(place, f"{p}/*") for p in patterns)]
            self.assertEqual(len(takers), 1, f"{place}: {takers}")

    def test_each_package_but_that_of_slurm_is_described(self):
        control = (SOURCE / "packaging/debian/control.in").read_text()
        self.assertEqual(set(re.findall(r"(?m)^Package: (\S+)$", control)) | {"timeslice-slurm"}, set(self.lists()))

    def test_what_the_packages_are_built_with_is_what_the_tools_install(self):
        listed = {word for line in (SOURCE / "tools/packages").read_text().splitlines()
                  for word in line.split("#")[0].split()}
        control = (SOURCE / "packaging/debian/control.in").read_text()
        wanted = set(re.findall(r"(?m)^ ([a-z0-9.+-]+),$", control.split("Build-Depends:")[1].split("\nHomepage")[0]))
        self.assertEqual(wanted - listed - {"dh-sequence-installsysusers"}, set())
        self.assertIn("debhelper", listed)


@unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here: apt-get install systemd")
class Units(unittest.TestCase):
    """What the units leave to whoever takes one of the daemons over: 0 is nothing, 10 all of a machine."""
    UNITS = BUILD / "systemd"

    def exposure(self, unit, most):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={int(most * 10)}",
                               "--no-pager", str(self.UNITS / unit)], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def lines(self, unit):
        return (self.UNITS / unit).read_text().splitlines()

    def test_a_master_that_is_taken_over_can_do_little(self):
        self.exposure("tsmasterd.service", 2.0)

    def test_a_node_daemon_that_is_taken_over_can_do_what_its_work_needs(self):
        self.exposure("tsnoded.service", 5.0)

    def test_systemd_understands_every_line_and_finds_the_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            copies = []
            for unit in UNITS:
                text = (self.UNITS / unit).read_text()
                for program in ("master/tsmasterd", "node/tsnoded"):
                    text = re.sub(rf"(?m)^ExecStart=\S*/{program.split('/')[1]}$", f"ExecStart={BUILD}/src/{program}", text)
                copies.append(pathlib.Path(folder) / unit)
                copies[-1].write_text(text)
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", *copies], text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_FF_F1_the_socket_is_open_to_all_from_its_start_and_says_who_speaks(self):
        for line in ("ListenSequentialPacket=/run/timeslice/node.sock", "SocketMode=0666", "PassCredentials=yes"):
            self.assertIn(line, self.lines("tsnoded.socket"))

    def test_FF_E1_each_daemon_has_descriptors_enough(self):
        for unit in ("tsmasterd.service", "tsnoded.service"):
            self.assertRegex((self.UNITS / unit).read_text(), r"(?m)^LimitNOFILE=\d{5,}$")

    def test_a_job_that_slurmd_starts_finds_the_socket_and_a_restart_keeps_jobs_and_what_is_known_of_them(self):
        self.assertIn("Before=slurmd.service", self.lines("tsnoded.socket"))
        for line in ("Before=slurmd.service", "Requires=tsnoded.socket", "KillMode=process",
                     "RuntimeDirectoryPreserve=yes"):
            self.assertIn(line, self.lines("tsnoded.service"))

    def test_a_daemon_that_hangs_or_fails_is_started_anew_and_one_that_is_configured_wrongly_is_not(self):
        for unit in ("tsmasterd.service", "tsnoded.service"):
            for line in ("Type=notify", "Restart=on-failure", "StartLimitIntervalSec=0", "RestartPreventExitStatus=2 78",
                         "StandardError=journal"):
                self.assertIn(line, self.lines(unit))
            self.assertRegex((self.UNITS / unit).read_text(), r"(?m)^WatchdogSec=\d+$")

    def test_the_stop_of_a_node_daemon_lasts_as_long_as_the_move_that_it_waits_for(self):
        conf = (SOURCE / "conf/node.toml").read_text()
        longest = max(int(t) for t in re.findall(r'(?m)^#(?:save|restore)_deadline = "(\d+) s"$', conf))
        stop = int(re.search(r"(?m)^TimeoutStopSec=(\d+)$", (self.UNITS / "tsnoded.service").read_text())[1])
        self.assertGreater(stop, longest + 5)


if __name__ == "__main__":
    report.main()
