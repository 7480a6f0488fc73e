#!/usr/bin/env python3
"""tsctl against real daemons: looking, acting, taking turns, following events."""
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import report  # noqa: E402
from cluster import Cluster, Programs  # noqa: E402


class Tsctl(unittest.TestCase):
    def cluster(self, **options):
        c = Cluster(cards=None, **options)
        self.addCleanup(c.close)
        c.start()
        return c

    def ctl(self, cluster, *words, code=0, **options):
        run = cluster.tsctl(*words, **options)
        self.assertEqual(run.returncode, code, f"{words}: {run.stdout}{run.stderr}")
        return run

    def told(self, cluster, *words):
        return json.loads(self.ctl(cluster, *words, "--json").stdout)

    def test_status_shows_holder_and_waiter_as_table_and_json(self):
        c = self.cluster(nodes=2)
        a, b = c.job(job="a"), c.job(job="b")
        a.acquire()
        c.queue(b)
        told = self.told(c, "status")
        self.assertEqual([(g["name"], g["holders"], g["queue"]) for g in told["groups"]], [("g", ["a"], ["b"])])
        self.assertEqual({n["name"]: n["state"] for n in told["nodes"]}, {"n1": "up", "n2": "up"})
        jobs = {j["name"]: j for j in self.told(c, "jobs", "--group", "g")}
        self.assertEqual((jobs["a"]["phase"], jobs["b"]["place"]), ("holding", 1))
        self.assertEqual(jobs["a"]["claim"], [{"node": "n1", "devices": [0]}])
        text = self.ctl(c, "status").stdout
        self.assertRegex(text, r"2 nodes, 1 group, 2 jobs \(1 holding, 1 waiting\)")
        self.assertRegex(text, r"(?m)^g/b +waiting .* 1 +n1:0 +waits for g/a$")

    def test_no_control_character_of_a_name_is_echoed(self):
        c = self.cluster()
        for words in (["jobs", "--group", "\x1b[2J"], ["why", "\x1b[2J"], ["pause", "\x1b[2J"]):
            done = c.tsctl(*words)
            self.assertNotIn("\x1b", done.stdout + done.stderr)
            self.assertIn("?[2J", done.stdout + done.stderr)

    def test_why_names_who_is_before_it(self):
        c = self.cluster()
        a, b = c.job(job="a"), c.job(job="b")
        a.acquire()
        c.queue(b)
        text = self.ctl(c, "why", "b").stdout
        self.assertRegex(text, r"g/b has waited for .* number 1 in the queue of g")
        self.assertRegex(text, r"before it g/a has held its devices")
        self.assertEqual(self.told(c, "why", "g/b")["before"][0]["name"], "a")
        self.assertIn('no job "c"', self.ctl(c, "why", "c", code=1).stderr)

    def test_a_paused_group_grants_nothing_until_it_is_resumed(self):
        c = self.cluster(master={"any_group": False}, groups={"g": {}})
        a = c.job(job="a")
        self.assertEqual(self.ctl(c, "pause", "g").stdout, "group g is paused\n")
        c.queue(a)
        self.assertTrue(self.told(c, "status")["groups"][0]["paused"])
        self.assertIn("tsctl resume", self.ctl(c, "why", "a").stdout)
        self.assertTrue(a.is_waiting())
        self.ctl(c, "resume", "g")
        a.hear_grant()
        self.assertIn('no group "h"', self.ctl(c, "pause", "h", code=1).stderr)

    def test_a_drained_node_grants_nothing_until_it_is_taken_back(self):
        c = self.cluster()
        a = c.job(job="a")
        self.ctl(c, "drain", "n1")
        c.queue(a)
        self.assertEqual(self.told(c, "nodes")[0]["state"], "drained")
        self.assertTrue(a.is_waiting())
        self.ctl(c, "undrain", "n1")
        a.hear_grant()
        self.assertIn('no node "n9"', self.ctl(c, "drain", "n9", code=1).stderr)
        self.assertIn("is up", self.ctl(c, "declare-dead", "n1", code=1).stderr)

    def test_a_slice_runs_its_program_during_the_turn_and_passes_its_exit_code_on(self):
        c = self.cluster()
        run = self.ctl(c, "slice", "--group", "g", "--job", "s", "--phase", "test", "--", Programs.ctl,
                       "--json", "jobs")
        told = [(j["name"], j["phase"], j["label"]) for j in json.loads(run.stdout)]
        self.assertEqual(told, [("s", "holding", "test")])
        self.ctl(c, "slice", "--group", "g", "--", "sh", "-c", "exit 7", code=7)
        self.ctl(c, "slice", "--group", "g", "--", "sh", "-c", "kill -9 $$", code=137)
        self.assertIn("cannot start /nowhere", self.ctl(c, "slice", "--group", "g", "--", "/nowhere", code=1).stderr)
        c.master.wait_for(r"leave .*job=nowhere")
        a = c.job(job="a")
        a.acquire()  # nothing is left behind

    def test_a_slice_that_does_not_get_its_turn_in_time_starts_nothing(self):
        c = self.cluster()
        a = c.job(job="a")
        a.acquire()
        run = self.ctl(c, "slice", "--group", "g", "--deadline", "50ms", "--", "echo", "ran", code=1)
        self.assertEqual(run.stdout, "")
        self.assertIn("TIMED_OUT", run.stderr)
        c.master.wait_for(r"\bleave .*job=echo")
        self.assertEqual([j["name"] for j in self.told(c, "jobs") if j["place"]], [])

    def test_run_becomes_the_program_with_its_group_and_job(self):
        c = self.cluster()
        run = self.ctl(c, "run", "--group", "g", "--job", "r", "--devices", "0", "--priority", "3", "--",
                       "sh", "-c", "echo $TIMESLICE_GROUP $TIMESLICE_JOB $TIMESLICE_DEVICES $TIMESLICE_PRIORITY")
        self.assertEqual(run.stdout, "g r 0 3\n")

    def test_events_are_told_in_order_and_end_with_the_past(self):
        c = self.cluster()
        a = c.job(job="a")
        a.acquire()
        a.ask("yield")
        c.master.wait_for(r"slice-ended")
        lines = [json.loads(line) for line in self.ctl(c, "events", "--json").stdout.splitlines()]
        verbs = [line["verb"] for line in lines]
        self.assertLess(verbs.index("join"), verbs.index("grant"))
        self.assertLess(verbs.index("grant"), verbs.index("yield"))
        self.assertEqual(sorted(line["at_s"] for line in lines), [line["at_s"] for line in lines])
        self.assertEqual(self.ctl(c, "events", "--since", "2100-01-01T00:00:00Z").stdout, "")

    def test_following_events_brings_new_ones_as_they_come(self):
        c = self.cluster()
        with subprocess.Popen([Programs.ctl, "--master", c.address, "events", "-f"],
                              stdout=subprocess.PIPE, text=True) as follower:
            self.addCleanup(follower.kill)
            c.job(job="late").acquire()
            for line in follower.stdout:
                if "grant" in line and "job=late" in line:
                    break
            else:
                self.fail("it ended without the grant")
            follower.kill()

    def test_evict_ends_a_waiting_job_and_kill_ends_its_processes(self):
        c = self.cluster()
        a, b = c.job(job="a"), c.job(job="b")
        a.acquire()
        c.queue(b)
        self.ctl(c, "evict", "b")
        with self.assertRaisesRegex(Exception, "EVICTED"):
            b.hear_grant()
        self.ctl(c, "evict", "g/a", "--kill")
        self.assertNotEqual(a.process.wait(60), 0)

    def test_a_master_of_another_auth_is_named_with_the_option_that_helps(self):
        c = self.cluster()
        config = c.dir / "proven.toml"
        config.write_text('master_user = "root"\n')
        run = self.ctl(c, "--auth", "munge", "--node-config", config, "status", code=1)
        self.assertIn("--auth", run.stderr)
        self.ctl(c, "--master", c.master_dir / "master.sock", "status")  # its socket needs neither

    def test_doctor_joins_the_reports_of_node_and_master(self):
        c = self.cluster()
        told = self.told(c, "doctor")
        whats = " | ".join(check["what"] for check in told["checks"])
        self.assertTrue(told["ok"], whats)
        self.assertIn("node n1", whats)
        self.assertIn(f"answers at {c.address}", whats)
        self.assertNotIn("1 devices", whats)

    def read_report(self, path):
        with tarfile.open(path) as tar:
            return {m.name.split("/")[1]: tar.extractfile(m).read().decode() for m in tar.getmembers()}

    def test_a_report_has_what_a_bug_needs_and_nothing_that_is_secret(self):
        c = self.cluster(master={"http": "127.0.0.1:0", "operators": ["65534"]}, groups={"g": {"users": ["root", "65534"]}})
        a, b = c.job(job="patients-7"), c.job(job="x")
        a.acquire()
        c.queue(b)
        gone = c.job(job="merger-with-acme")
        gone.end()
        c.master.wait_for(r"\bleave\b.*job=merger")
        path = c.dir / "report.tar"
        http = c.master.wait_for(r"\blistening what=http address=(\S+)")[1]
        config = c.dir / "as-it-listens.toml"
        config.write_text((c.master_dir / "master.toml").read_text().replace("127.0.0.1:0", http) + "# TOKEN=hunter2\n")
        words = ["report", "--output", path, "--master-config", config,
                 "--node-config", c.nodes[0].dir / "node.toml"]
        self.assertIn(str(path), self.ctl(c, *words).stdout)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        parts = self.read_report(path)
        self.assertEqual(list(parts), ["README.txt", "versions.txt", "status.json", "events.txt", "doctor.txt",
                                       "master.txt", "node.txt", "metrics.txt"])
        for word in ("hunter2", "TOKEN", "patients", "merger", "acme", "65534", "g/x", "uid=0"):
            for name, text in parts.items():
                self.assertNotIn(word, text, name)
        status = json.loads(parts["status.json"])
        names = {j["name"]: j for j in status["jobs"]}
        self.assertEqual(set(names), set(status["groups"][0]["holders"]) | set(status["groups"][0]["queue"]))
        self.assertEqual({j["uid"] for j in status["jobs"]}, {None})
        holder = status["groups"][0]["holders"][0]
        self.assertRegex(parts["events.txt"], rf"grant .*job={holder}\b")
        self.assertRegex(parts["versions.txt"], r"tsctl \d+\.\d+\.\d+\ntsmasterd \d+\.\d+\.\d+\nLinux")
        self.assertIn("node n1", parts["doctor.txt"])
        for line in ("recovery_grace = 300 ms", "[group.g]", "users = 2 users, masked"):
            self.assertIn(line, parts["master.txt"].splitlines())
        self.assertIn("timeslice_", parts["metrics.txt"])
        self.assertIn("backend = none", parts["node.txt"].splitlines())
        self.assertIn("--output", self.ctl(c, *words, code=1).stderr)  # never over a file

    def test_a_report_is_written_also_when_nothing_answers(self):
        c = self.cluster()
        c.master.kill()
        path = c.dir / "report.tar"
        wrong = c.dir / "wrong.toml"
        wrong.write_text('password = "hunter2"\n')
        self.ctl(c, "report", "--output", path, "--master-config", wrong, "--node-config", c.dir / "none.toml")
        parts = self.read_report(path)
        for name in ("status.json", "events.txt", "node.txt", "metrics.txt"):
            self.assertIn("not there: ", parts[name], name)
        self.assertIn("1 mistake", parts["master.txt"])
        self.assertNotIn("hunter2", "".join(parts.values()))
        self.assertIn("node n1", parts["doctor.txt"])

    def test_bash_completes_the_names_of_jobs_groups_and_nodes(self):
        c = self.cluster()
        c.job(job="a").acquire()
        script = self.ctl(c, "completion", "bash").stdout
        for words, names in ((["why", "g"], ["g/a"]), (["evict", "a"], ["a"]), (["pause", ""], ["g"]),
                             (["run", "--group", ""], ["g"]), (["drain", ""], ["n1"])):
            line = " ".join(f"'{word}'" for word in ["tsctl", *words])
            done = subprocess.run(
                ["bash", "-c", f'{script}\ntsctl() {{ "{Programs.ctl}" "$@"; }}\n'
                               f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _tsctl; echo ${{COMPREPLY[@]}}"],
                env={**os.environ, "TIMESLICE_MASTER": str(c.master_dir / "master.sock")}, text=True,
                capture_output=True, check=True)
            self.assertEqual((done.stdout.split(), done.stderr), (names, ""))

    def test_doctor_asks_for_no_munge_at_the_socket_of_the_master(self):
        c = self.cluster()
        self.ctl(c, "--master", c.master_dir / "master.sock", "doctor")


if __name__ == "__main__":
    report.main()
