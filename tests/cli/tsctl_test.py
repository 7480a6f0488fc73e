#!/usr/bin/env python3
"""tsctl as people run it, on a machine without daemons: exit codes, streams, JSON, completions.

usage: tsctl_test.py PATH_OF_TSCTL
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402

TSCTL = sys.argv.pop(1)


class Tsctl(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.config = self.dir / "node.toml"

    def run_it(self, *arguments, **environment):
        env = {k: v for k, v in os.environ.items() if not k.startswith("TIMESLICE_")}
        env.update(environment)
        return subprocess.run([TSCTL, "--node-config", str(self.config), *arguments],
                              capture_output=True, text=True, env=env, timeout=60)

    def free_port(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def check_fails(self, code, text, *arguments, **environment):
        done = self.run_it(*arguments, **environment)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, "one line says it all")
        return done

    def test_no_control_character_of_an_argument_reaches_the_terminal(self):
        for words in (["\x1b[2J"], ["--\x1b[2J"], ["jobs", "--\x1b[2J"], ["slice", "--group", "g", "--deadline", "\x1b[2J", "--", "true"]):
            done = self.run_it(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn("\x1b", done.stdout + done.stderr)
            self.assertIn("?[2J", done.stderr)

    def test_an_answer_that_cannot_be_written_is_no_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TSCTL, "completion", "bash"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)

    def test_usage_errors_are_2(self):
        self.check_fails(2, "see tsctl --help")
        self.check_fails(2, 'did you mean status?', "staus")
        self.check_fails(2, "tsctl why --help", "why")

    def test_a_missing_master_is_69_and_says_where_and_how(self):
        address = f"127.0.0.1:{self.free_port()}"
        for command in (["status"], ["jobs"], ["nodes"], ["events"], ["why", "x"], ["pause", "g"],
                        ["resume", "g"], ["evict", "x"], ["clear-fault", "x"], ["drain", "n"], ["declare-dead", "n"], ["slurm-ended", "17"]):
            done = self.check_fails(69, f"tsmasterd cannot be reached at {address} (--master): "
                                        "Connection refused; start it", "--master", address, *command)
            self.assertEqual(done.stdout, "")
        self.check_fails(69, "(TIMESLICE_MASTER)", "status", TIMESLICE_MASTER=address)
        self.config.write_text(f'master = "{address}"\n')
        self.check_fails(69, f"(from {self.config})", "status")
        self.check_fails(69, "No such file", "--master", str(self.dir / "master.sock"), "status")

    def test_a_master_that_accepts_and_says_nothing_is_69_in_time(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            self.check_fails(69, "no answer within 100 ms", "--master", address, "--timeout",
                             "100ms", "--auth", "none", "status")

    def test_a_peer_that_talks_nonsense_is_no_crash(self):
        with socket.socket() as odd:
            odd.bind(("127.0.0.1", 0))
            odd.listen()
            address = f"127.0.0.1:{odd.getsockname()[1]}"
            with subprocess.Popen([TSCTL, "--node-config", str(self.config), "--master", address,
                                   "--auth", "none", "status"], stderr=subprocess.PIPE,
                                  text=True) as tsctl:
                peer, _ = odd.accept()
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                peer.close()
                self.assertIn("tsctl: ", tsctl.stderr.read())
                self.assertIn(tsctl.wait(), (1, 69))

    def test_a_missing_node_daemon_is_69(self):
        path = str(self.dir / "node.sock")
        for command in (["snapshot", "--pid", "1"], ["restore", "--pid", "1"],
                        ["run", "--group", "g", "--", "true"]):
            self.check_fails(69, f"tsnoded cannot be reached at {path} (--socket)", "--socket", path,
                             *command)
        self.check_fails(69, path, "--socket", path, "slice", "--group", "g", "--", "true")

    def test_a_silent_node_daemon_is_69_in_time(self):
        path = str(self.dir / "node.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.bind(path)
            silent.listen()
            for command in (["slice", "--group", "g", "--", "true"], ["run", "--group", "g", "--", "true"],
                            ["snapshot", "--pid", "1"], ["restore", "--pid", "1"]):
                self.check_fails(69, path, "--socket", path, "--timeout", "100ms", *command)

    def test_bad_configuration_is_78_with_its_place(self):
        self.config.write_text("mastr = 1\n")
        done = self.check_fails(78, f'{self.config}:1:1: unknown key "mastr"; did you mean "master"?',
                                "status")
        self.assertEqual(done.stdout, "")

    def test_doctor_of_slurm_asks_no_daemon_and_says_where_to_run_it(self):
        scontrol = self.dir / "scontrol"
        done = self.run_it("doctor", "--slurm", PATH=str(self.dir))
        self.assertEqual(done.returncode, 1)
        self.assertIn("fail  scontrol: No such file or directory\n      install Slurm's client commands here", done.stdout)
        scontrol.write_text("#!/bin/sh\necho 'slurm_load_ctl_conf error: Unable to contact slurm controller' >&2\nexit 1\n")
        scontrol.chmod(0o755)
        done = self.run_it("doctor", "--slurm", "--json", PATH=f"{self.dir}:/usr/bin:/bin")
        self.assertEqual(done.returncode, 1)
        check = json.loads(done.stdout)["checks"][-1]
        self.assertEqual(check["what"], "scontrol ended with 1: slurm_load_ctl_conf error: Unable to contact slurm controller")
        self.assertIn("SLURM_CONF", check["cure"])

    def test_failures_are_objects_with_json(self):
        done = self.run_it("--json", "--master", f"127.0.0.1:{self.free_port()}", "status")
        self.assertEqual(done.returncode, 69)
        told = json.loads(done.stdout)
        self.assertEqual(told["exit"], 69)
        self.assertIn("tsmasterd cannot be reached", told["error"])

    def test_doctor_finds_what_is_missing_and_says_what_to_do(self):
        done = self.run_it("--json", "--socket", str(self.dir / "node.sock"), "--master",
                           f"127.0.0.1:{self.free_port()}", "--timeout", "2s", "doctor")
        self.assertEqual(done.returncode, 1, done.stderr)
        told = json.loads(done.stdout)
        self.assertFalse(told["ok"])
        failed = {c["what"].split()[0]: c["cure"] for c in told["checks"] if c["verdict"] == "fail"}
        self.assertIn("tsnoded --config /etc/timeslice/node.toml", failed["tsnoded"])
        self.assertIn("tsmasterd --config /etc/timeslice/master.toml", failed["tsmasterd"])

    def test_help_and_version_go_to_stdout_and_are_0(self):
        for arguments in (["--help"], ["run", "--help"], ["--version"]):
            done = self.run_it(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout)

    def complete(self, *words):
        """What bash would offer for the last word."""
        script = self.run_it("completion", "bash").stdout
        line = " ".join(f"'{w}'" for w in words)
        script += f"\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _tsctl; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_and_options(self):
        self.assertEqual(self.complete("tsctl", "dr"), ["drain"])
        self.assertEqual(self.complete("tsctl", "evict", "--k"), ["--kill"])
        self.assertIn("zsh", self.complete("tsctl", "completion", ""))
        self.assertIn("bash", self.complete("tsctl", "run", "--group", "g", "--", "bas"))

    def test_bash_completes_what_an_option_takes(self):
        self.assertEqual(self.complete("tsctl", "status", "--auth", "m"), ["munge"])
        self.assertEqual(self.complete("tsctl", "run", "--backend", ""), ["cuda", "none", "turns"])
        self.config.write_text("")
        self.assertEqual(self.complete("tsctl", "--node-config", str(self.dir / "node.")), [str(self.config)])
        self.assertEqual(self.complete("tsctl", "--timeout", ""), [])
        self.assertEqual(self.complete("tsctl", "--master", "m:1", "dr"), ["drain"])

    def test_names_that_nobody_can_tell_are_none(self):
        self.assertEqual(self.complete("tsctl", "why", ""), [])

    def test_zsh_and_fish_take_their_scripts(self):
        for shell, check in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            if shutil.which(shell) is None:
                continue
            script = self.run_it("completion", shell).stdout
            done = subprocess.run([shell, *check, "/dev/stdin"], input=script, text=True,
                                  capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    report.main()
