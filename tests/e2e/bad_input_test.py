"""What users do wrong: a named error with the value that caused it, and nobody else notices."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import local_wire  # noqa: E402
import report  # noqa: E402
from cluster import NOBODY, Cluster, Programs  # noqa: E402
from daemon import PATIENCE  # noqa: E402
from local_wire import Wire  # noqa: E402
from puppet import Refused  # noqa: E402

NO_GPU = {"cards": ()}


class BadInput(unittest.TestCase):
    def refused(self, name, *values, by):
        """The call answers `name`, and the sentence has each of `values`."""
        with self.assertRaises(Refused) as no:
            by()
        self.assertEqual(no.exception.name, name, no.exception)
        for value in values:
            self.assertIn(str(value), str(no.exception))
        return str(no.exception)

    def unharmed(self, c, *bystanders):
        """Both daemons live, and who was there before still takes turns."""
        self.assertTrue(c.master.alive())
        for node in c.nodes:
            self.assertTrue(node.daemon.alive())
        for job in bystanders:
            job.acquire()
            job.ask("yield")

    def test_FF_I6_an_unknown_group_is_named(self):
        with Cluster(**NO_GPU, master={"any_group": False}, groups={"known": {}}) as c:
            good = c.job(job="a", group="known")
            bad = c.process()
            self.refused("UNKNOWN_GROUP", "trainres", by=lambda: bad.join(group="trainres", job="b"))
            self.unharmed(c, good)

    def test_a_group_name_that_is_none_is_refused_with_the_name(self):
        with Cluster(**NO_GPU) as c:
            good, bad = c.job(job="a"), c.process()
            self.refused("INVALID", "no/slash", by=lambda: bad.join(group="no/slash", job="b"))
            self.unharmed(c, good)

    def test_an_acquire_without_a_join_is_refused(self):
        with Cluster(**NO_GPU) as c:
            good = c.job(job="a")
            with Wire(c.nodes[0].socket) as wire:
                self.assertEqual(wire.ask(local_wire.HELLO, local_wire.hello()).status, local_wire.OK)
                reply = wire.ask(local_wire.ACQUIRE, local_wire.acquire())
                self.assertEqual(reply.status, local_wire.NOT_JOINED, reply.detail)
                self.assertIn("join", reply.detail)
            self.unharmed(c, good)

    def test_a_second_join_of_the_same_process_is_refused(self):
        with Cluster(**NO_GPU) as c:
            good = c.job(job="a")
            self.refused("ALREADY_JOINED", good.pid, by=lambda: good.join(group="g", job="a"))
            self.unharmed(c, good)

    def test_a_yield_without_a_slice_is_refused_and_changes_nothing(self):
        with Cluster(**NO_GPU) as c:
            holder, other = c.job(job="a"), c.job(job="b")
            holder.acquire()
            self.refused("NOT_ENTERED", by=lambda: other.ask("yield"))
            self.assertIn("entered=1", holder.ask("state"))
            holder.ask("yield")
            self.unharmed(c, holder, other)

    @unittest.skipUnless(os.getuid() == 0, "needs root to be somebody else")
    def test_FF_F1_a_user_who_may_not_use_a_group_is_refused_by_name(self):
        with Cluster(**NO_GPU, groups={"g": {"users": ["root"]}}) as c:
            good = c.job(job="a")
            foreign = c.process(user=NOBODY)
            self.refused("PERMISSION", "g", by=lambda: foreign.join(group="g", job="b"))
            self.unharmed(c, good)

    @unittest.skipUnless(os.getuid() == 0, "needs root to be somebody else")
    def test_FF_F1_a_user_cannot_put_a_process_into_the_job_of_another(self):
        with Cluster(**NO_GPU) as c:
            good = c.job(job="a")
            foreign = c.process(user=NOBODY)
            self.refused("PERMISSION", "a", by=lambda: foreign.join(group="g", job="a"))
            self.unharmed(c, good)

    def test_a_malformed_message_ends_its_connection_and_nothing_else(self):
        nonsense = {
            "truncated": local_wire.message(local_wire.HELLO, 1)[:100],
            "too long": local_wire.message(local_wire.HELLO, 1) + b"\0" * 256,
            "no magic": local_wire.message(local_wire.HELLO, 1, local_wire.hello(), magic=0xDEADBEEF),
            "no such type": local_wire.message(99, 1),
            "a name without an end": local_wire.message(local_wire.JOIN, 1, b"A" * 64),
            "request 0": local_wire.message(local_wire.HELLO, 0, local_wire.hello()),
            "random": os.urandom(256),
        }
        with Cluster(**NO_GPU) as c:
            good = c.job(job="a")
            for what, data in nonsense.items():
                with self.subTest(what), Wire(c.nodes[0].socket) as wire:
                    wire.send(data)
                    reply = wire.hear()
                    self.assertIsNotNone(reply, "closed without a word")
                    self.assertEqual(reply.status, local_wire.PROTOCOL, reply.detail)
                    self.assertTrue(reply.detail)
                    self.assertIsNone(wire.hear(), "the connection goes on")
                    self.unharmed(c, good)

    def test_a_wrong_protocol_version_is_answered_with_both_ranges(self):
        with Cluster(**NO_GPU) as c:
            good = c.job(job="a")
            with Wire(c.nodes[0].socket) as wire:
                reply = wire.ask(local_wire.HELLO, local_wire.hello(900, 901))
                self.assertEqual(reply.status, local_wire.VERSION_MISMATCH, reply.detail)
                self.assertIn("versions 900 to 901", reply.detail)
                self.assertIn("this node daemon 1 to 1", reply.detail)
                self.assertIsNone(wire.hear(), "the connection goes on")
            self.unharmed(c, good)

    def test_FF_D13_a_device_of_another_group_is_refused_with_the_groups_name(self):
        with Cluster(**NO_GPU) as c:
            good = c.job(job="a", group="first")
            bad = c.process()
            self.refused("DEVICE_OWNED", "first", by=lambda: bad.join(group="second", job="b"))
            self.unharmed(c, good)

    def test_a_claim_without_devices_is_refused(self):
        with Cluster(**NO_GPU) as c:
            good, bad = c.job(job="a"), c.process()
            self.refused("NO_CLAIM", by=lambda: bad.join(group="g", job="b", devices="none"))
            self.unharmed(c, good)

    def test_a_claim_of_a_device_that_is_not_there_names_it(self):
        with Cluster(**NO_GPU) as c:
            good, bad = c.job(job="a"), c.process()
            self.refused("INVALID", "7", by=lambda: bad.join(group="g", job="b", devices="7"))
            self.unharmed(c, good)

    def test_a_node_without_devices_lets_nobody_wait_for_ever(self):
        with Cluster(**NO_GPU, node={"devices": 0}) as c:
            bad = c.process()
            self.refused("NO_CLAIM", by=lambda: bad.join(group="g", job="b"))
            self.unharmed(c)

    def test_a_backend_that_is_not_there_is_named(self):
        with Cluster(**NO_GPU) as c:
            good, bad = c.job(job="a"), c.process()
            self.refused("UNSUPPORTED", "magic", by=lambda: bad.join(group="g", job="b", backend="magic"))
            self.unharmed(c, good)


class CheckConfig(unittest.TestCase):
    def check(self, program, text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            return subprocess.run([program, "--check-config", "--config", file.name], capture_output=True,
                                  text=True, timeout=PATIENCE)

    def test_a_master_user_that_is_nobody_here_is_found_by_the_check(self):
        done = self.check(Programs.node, 'master = "m:6830"\nauth = "munge"\nmaster_user = "no-such-user"\n')
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("no-such-user", done.stderr)

    def test_a_database_without_a_folder_is_found_by_the_check(self):
        done = self.check(Programs.master, 'auth = "none"\ndatabase = "/nowhere/at/all.db"\n')
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("make the folder /nowhere/at", done.stderr)


class Reload(unittest.TestCase):
    def test_FF_I2_a_reload_of_a_bad_file_keeps_what_was_and_says_so(self):
        with Cluster(**NO_GPU) as c:
            job = c.job(job="a")
            for daemon, file in ((c.master, c.master_dir / "master.toml"), (c.nodes[0].daemon, c.nodes[0].dir / "node.toml")):
                good, mark = file.read_text(), daemon.mark()
                file.write_text(good + "\nhartbeat = 3\n")
                os.kill(daemon.pid, signal.SIGHUP)
                line = daemon.wait_for(r"\bbad-config\b.*kept=.*", mark)[0]
                self.assertIn(f"{file.name}:", line)
                self.assertIn("hartbeat", line)
                file.write_text(good)
                os.kill(daemon.pid, signal.SIGHUP)
                daemon.wait_for(r"\breloaded\b", mark)
            job.acquire()
            job.ask("yield")


class NotRunning(unittest.TestCase):
    def test_without_a_node_daemon_a_join_says_where_it_looked_and_how_to_start_it(self):
        with Cluster(**NO_GPU) as c:
            c.nodes[0].daemon.stop()
            job = c.process()
            with self.assertRaises(Refused) as no:
                job.join(group="g", job="a", deadline=500)
            self.assertEqual(no.exception.name, "UNAVAILABLE")
            self.assertIn(c.nodes[0].socket, str(no.exception))
            self.assertIn("tsnoded", str(no.exception))

    def test_without_a_master_a_join_says_which_address_the_node_tried(self):
        with Cluster(**NO_GPU) as c:
            mark = c.nodes[0].daemon.mark()
            c.master.kill()
            c.nodes[0].daemon.wait_for(r"\bmaster-down\b", mark)
            job = c.process()
            with self.assertRaises(Refused) as no:
                job.join(group="g", job="a", deadline=500)
            self.assertEqual(no.exception.name, "MASTER_DOWN")
            self.assertIn(c.address, str(no.exception))
            self.assertIn("tsmasterd", str(no.exception))

    def test_with_a_frozen_master_a_join_ends_at_its_deadline(self):
        with Cluster(**NO_GPU) as c:
            os.kill(c.master.pid, signal.SIGSTOP)
            job = c.process()
            with self.assertRaises(Refused) as no:
                job.join(group="g", job="a", deadline=500)
            self.assertEqual(no.exception.name, "TIMED_OUT")
            self.assertIn(c.nodes[0].socket, str(no.exception))
            self.assertIn("the master", str(no.exception))
            os.kill(c.master.pid, signal.SIGCONT)
            job.join(group="g", job="a")
            job.acquire()

    def test_tsctl_exits_69_and_says_where_it_looked_for_the_master(self):
        with Cluster(**NO_GPU) as c:
            c.master.stop()
            run = c.tsctl("status")
            self.assertEqual(run.returncode, 69, run.stderr)
            self.assertIn(c.address, run.stderr)
            self.assertIn("tsmasterd", run.stderr)


if __name__ == "__main__":
    report.main()
