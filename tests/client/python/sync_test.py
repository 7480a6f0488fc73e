"""The Python package on threads, against a fake node."""
import ctypes
import os
import signal
import subprocess
import sys
import threading
import unittest

import fake
import report
import timeslice
from timeslice import _library


class Base(unittest.TestCase):
    def setUp(self):
        fake.clean_environment()
        self.node = fake.FakeNode()
        os.environ["TIMESLICE_SOCKET"] = self.node.socket
        os.environ["TIMESLICE_GROUP"] = "rl"

    def tearDown(self):
        timeslice.leave()
        self.node.close()
        fake.clean_environment()


class Slices(Base):
    def test_a_block_is_one_slice(self):
        with timeslice.slice(phase="train") as grant:
            self.assertEqual(grant.epoch, 1)
            self.assertEqual(grant.generation, 1)
            self.assertTrue(grant.restored)
            self.assertEqual(grant.moved_bytes, 4096)
            self.assertAlmostEqual(grant.waited, 7e-6)
            self.assertTrue(timeslice.client().state().entered)
        self.assertFalse(timeslice.client().state().entered)
        self.assertIn("phase=train", self.node.seen("acquire"))
        self.assertIn("epoch=1", self.node.seen("yield"))

    def test_blocks_nest(self):
        with timeslice.slice("outer"), timeslice.slice("inner"):
            self.assertEqual(timeslice.client().state().depth, 2)
        self.assertEqual(self.node.count("acquire"), 1)
        self.assertEqual(self.node.count("yield"), 1)

    def test_P81_a_block_that_raises_yields(self):
        with self.assertRaises(ZeroDivisionError):
            with timeslice.slice():
                1 / 0
        self.assertEqual(self.node.count("yield"), 1)

    def test_a_decorated_function_holds_during_each_call(self):
        @timeslice.sliced(phase="reward")
        def work(x):
            """Doubles."""
            return 2 * x if timeslice.client().state().entered else None

        @timeslice.sliced
        def bare():
            return timeslice.client().state().depth

        self.assertEqual(work(21), 42)
        self.assertEqual(work.__doc__, "Doubles.")
        self.assertEqual(bare(), 1)
        self.assertEqual(self.node.count("yield"), 2)

    def test_P107_a_generator_function_is_refused(self):
        with self.assertRaisesRegex(TypeError, "generator"):
            @timeslice.sliced()
            def numbers():
                yield 1

    def test_a_phase_that_is_no_text_is_named(self):
        for wrong in (5, None):
            with self.assertRaisesRegex(TypeError, f"phase={wrong} is no text"):
                timeslice.slice(wrong)
        with self.assertRaisesRegex(TypeError, "phase=5 is no text"):
            timeslice.sliced(5)

    def test_exceptions_bear_the_name_they_are_caught_by(self):
        self.assertEqual(timeslice.Error.__module__, "timeslice")
        self.assertEqual(timeslice.NoClaim.__module__, "timeslice")

    def test_P80_P82_a_deadline_in_seconds(self):
        self.node.tell("hold acquire")
        with self.assertRaises(TimeoutError) as caught:
            with timeslice.slice(deadline=0.02):
                self.fail("nobody granted it")
        self.assertIsInstance(caught.exception, timeslice.TimedOut)
        self.assertIn("job other holds", str(caught.exception))
        self.assertIn("deadline=20 ", self.node.seen("acquire") + " ")

    def test_a_try_does_not_wait(self):
        self.node.tell("hold acquire")
        self.assertIsNone(timeslice.client().try_acquire())
        self.node.tell("answer acquire 0")
        self.assertEqual(timeslice.client().try_acquire().epoch, 1)
        timeslice.client().give_back()

    def test_a_request_to_yield(self):
        with timeslice.slice():
            self.assertFalse(timeslice.should_yield())
            self.node.tell("ask")
            self.assertTrue(timeslice.should_yield())
        self.assertFalse(timeslice.should_yield())

    def test_a_deadline_that_is_no_time_is_named(self):
        client = timeslice.join()
        for deadline in (float("nan"), float("inf"), 1e300, "5"):
            with self.subTest(deadline), self.assertRaises(timeslice.Invalid) as no:
                client.acquire(deadline=deadline)
            self.assertIn(repr(deadline), str(no.exception))
        self.assertFalse(client.state().entered)

    def test_a_keyboard_interrupt_gives_up_the_place(self):
        self.node.tell("hold acquire")
        timeslice.join()
        main = threading.main_thread().ident

        def interrupt():
            self.node.seen("acquire")
            signal.pthread_kill(main, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            with timeslice.slice():
                self.fail("nobody granted it")
        thread.join()
        self.assertEqual(self.node.count("cancel"), 1)
        self.node.tell("answer acquire 0")
        with timeslice.slice():
            pass

    def interrupted_after(self, name):
        """A Ctrl-C that arrives just when a call of the library has returned."""
        client = timeslice.join()
        real = client._lib

        class Interrupting:
            def __getattr__(self, called):
                function = getattr(real, called)
                if called != name:
                    return function

                def interrupted(*arguments):
                    status = function(*arguments)
                    if status == _library.OK:
                        client._lib = real
                        raise KeyboardInterrupt
                    return status
                return interrupted

        client._lib = Interrupting()
        return client

    def test_an_interrupt_right_after_the_start_gives_up_the_place(self):
        self.node.tell("hold acquire")
        client = self.interrupted_after("ts_acquire_start")
        with self.assertRaises(KeyboardInterrupt):
            client.acquire()
        self.assertEqual(self.node.count("cancel"), 1)
        self.node.tell("answer acquire 0")
        with timeslice.slice():
            pass

    def test_an_interrupt_right_after_the_grant_yields(self):
        client = self.interrupted_after("ts_acquire_finish")
        with self.assertRaises(KeyboardInterrupt):
            client.acquire()
        self.assertFalse(client.state().entered)
        self.assertEqual(self.node.count("yield"), 1)

    def test_an_interrupt_right_after_a_try_yields(self):
        client = self.interrupted_after("ts_try_acquire")
        with self.assertRaises(KeyboardInterrupt):
            client.try_acquire()
        self.assertFalse(client.state().entered)
        self.assertEqual(self.node.count("yield"), 1)

    def test_a_cancel_from_another_thread(self):
        self.node.tell("hold acquire")
        client = timeslice.join()

        def cancel():
            self.node.seen("acquire")
            client.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        with self.assertRaises(timeslice.Cancelled):
            with timeslice.slice():
                self.fail("nobody granted it")
        thread.join()

    def test_FF_E4_32_threads(self):
        failures = []

        def work():
            try:
                for _ in range(10):
                    with timeslice.slice():
                        if not timeslice.client().state().entered:
                            failures.append("not entered")
            except Exception as error:  # shown below
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertFalse(timeslice.client().state().entered)


class Joining(Base):
    def test_P79_options_reach_the_node(self):
        timeslice.join(group="g", job="j", backend="none", gang=2, priority=-5, devices="0,1")
        self.assertIn("devices=0,1", self.node.seen("claim"))
        line = self.node.seen("join")
        for words in ("group=g", "job=j", "backend=none", "gang=2", "priority=-5"):
            self.assertIn(words, line)

    def test_a_second_join_is_refused(self):
        timeslice.join()
        with self.assertRaises(timeslice.AlreadyJoined):
            timeslice.join()

    def test_P80_P82_every_status_is_an_exception_with_its_reason(self):
        for status in range(1, 30):
            if status in (7, 28):
                continue
            self.node.tell(f"answer acquire {status} because {status}")
            with self.assertRaises(timeslice.Error) as caught:
                with timeslice.slice():
                    pass
            self.assertEqual(caught.exception.status, status)
            self.assertIn(f"because {status}", caught.exception.reason)
            self.assertNotEqual(type(caught.exception), timeslice.Error)

    def test_P82_no_daemon(self):
        self.node.tell("away")
        with self.assertRaises(timeslice.Unavailable) as caught:
            timeslice.join()
        self.assertIn(self.node.socket, str(caught.exception))
        self.assertIn("tsnoded --config /etc/timeslice/node.toml", str(caught.exception))
        self.node.tell("back")

    def test_P79_a_bad_value(self):
        with self.assertRaises(ValueError) as caught:
            timeslice.join(group="a/b")
        self.assertIn("'a/b'", str(caught.exception))

    def test_who_has_left_is_told_so(self):
        client = timeslice.join()
        timeslice.leave()
        self.node.seen("leave")
        with self.assertRaises(timeslice.NotJoined):
            client.acquire()
        self.assertFalse(client.should_yield())
        client.leave()

    def test_a_forked_child_joins_anew(self):
        client = timeslice.join()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                client.state()
            except timeslice.Forked:
                with timeslice.slice():
                    code = 0
            except ValueError:
                code = 2
            os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(self.node.count("join"), 2)
        with timeslice.slice():
            pass


    def test_a_kept_client_is_refused_in_a_child_while_a_thread_waits(self):
        self.node.tell("hold acquire")
        client = timeslice.join()
        thread = threading.Thread(target=client.acquire)
        thread.start()
        self.node.seen("acquire")
        pid = os.fork()
        if pid == 0:
            codes = []
            for call in (client.acquire, client.try_acquire, client.give_back, client.cancel):
                try:
                    call()
                except timeslice.Forked:
                    codes.append(0)
            os._exit(0 if codes == [0] * 4 and not client.should_yield() else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.node.tell("grant")
        thread.join()

    def test_a_child_forked_inside_a_block_gives_nothing_back_and_joins_nothing(self):
        pid = None
        code = 1
        try:
            with timeslice.slice():
                pid = os.fork()
        except timeslice.Forked as error:
            code = 0 if str(os.getpid()) in str(error) else 2
        if pid == 0:
            os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(self.node.count("join"), 1)
        self.assertEqual(self.node.count("yield"), 1)

    def test_numbers_are_not_cut_down_to_what_fits(self):
        for options in ({"gang": -1}, {"gang": 2**32 + 1}, {"gang": 1.5}, {"priority": 2**31},
                        {"priority": 10001}, {"priority": -10001}):
            with self.assertRaises(timeslice.Invalid) as caught:
                timeslice.join(**options)
            name, value = next(iter(options.items()))
            self.assertIn(f"{name}={value} is not a whole number from ", str(caught.exception))
        self.assertEqual(self.node.count("join"), 0)
        timeslice.join(priority=-10000)

    def test_without_a_descriptor_left_the_join_says_so(self):
        code = """if True:
            import resource, timeslice
            from timeslice import _library
            lib = _library.load()
            real = lib.ts_fd
            def none_left(handle):
                resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
                return real(handle)
            lib.ts_fd = none_left
            try:
                timeslice.join()
            except timeslice.Internal as error:
                print(error)"""
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
        self.assertEqual(done.stdout, "ts_fd: no descriptor is left in this process: see ulimit -n\n")
        self.node.seen("leave")


class Layout(unittest.TestCase):
    def test_the_structs_are_those_of_the_header(self):
        lines = subprocess.run([os.environ["LAYOUT"]], text=True, capture_output=True, check=True)
        for line in lines.stdout.splitlines():
            name, size, last, offset = line.split()
            kind = getattr(_library, name)
            self.assertEqual(ctypes.sizeof(kind), int(size), name)
            self.assertEqual(getattr(kind, last).offset, int(offset), name)


class Ending(Base):
    """How often the node is told of a leave by a program that has come to its end."""

    def leaves(self, code, status=0):
        done = subprocess.run([sys.executable, "-c", f"if True:\n{code}"], text=True, capture_output=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return self.node.count("leave")

    def test_FF_E4_a_program_that_ends_has_left(self):
        self.assertEqual(self.leaves("""
            import timeslice
            with timeslice.slice():
                pass"""), 1)

    def test_so_has_one_that_exits_inside_a_slice(self):
        self.assertEqual(self.leaves("""
            import sys, timeslice
            timeslice.client().acquire()
            sys.exit(3)""", status=3), 1)
        self.assertEqual(self.node.count("yield"), 1)

    def test_so_has_a_client_of_its_own(self):
        self.assertEqual(self.leaves("""
            import timeslice
            client = timeslice.Client()"""), 1)

    def test_one_that_has_left_does_not_leave_again(self):
        self.assertEqual(self.leaves("""
            import timeslice
            timeslice.join()
            timeslice.leave()"""), 1)

    def test_one_that_fails_has_died(self):
        self.assertEqual(self.leaves("""
            import timeslice
            timeslice.join()
            1 / 0""", status=1), 0)

    def test_a_forked_child_does_not_leave_for_its_parent(self):
        self.assertEqual(self.leaves("""
            import os, sys, timeslice
            timeslice.join()
            if os.fork() == 0:
                sys.exit(0)
            os.wait()
            os._exit(0)"""), 0)

    def test_a_child_of_multiprocessing_leaves_unless_it_fails(self):
        code = """
            import multiprocessing, timeslice
            def work():
                with timeslice.slice():
                    {}
            child = multiprocessing.get_context("fork").Process(target=work)
            child.start()
            child.join()"""
        self.assertEqual(self.leaves(code.format("pass")), 1)
        self.assertEqual(self.leaves(code.format("1 / 0")), 1)

    def test_a_daemon_thread_that_waits_does_not_hold_up_the_end(self):
        self.node.tell("hold acquire")
        self.assertEqual(self.leaves("""
            import threading, timeslice
            client = timeslice.join()
            inside = threading.Event()
            wait = client._watch.wait
            client._watch.wait = lambda: (inside.set(), wait())
            threading.Thread(target=client.acquire, daemon=True).start()
            inside.wait()"""), 0)


class Outside(unittest.TestCase):
    def run_outside(self, code, **variables):
        environment = {"PYTHONPATH": os.environ["PYTHONPATH"], "TIMESLICE_LIBRARY": "/does/not/exist.so"}
        return subprocess.run([sys.executable, "-c", code], env={**environment, **variables}, text=True,
                              capture_output=True)

    def test_nothing_is_needed_and_everything_succeeds(self):
        done = self.run_outside("""if True:
            import asyncio, timeslice
            with timeslice.slice("train") as grant:
                assert not timeslice.should_yield()
                assert not timeslice.client().state().active
            @timeslice.sliced()
            async def work():
                async with timeslice.slice():
                    return 7
            assert asyncio.run(work()) == 7
            assert timeslice.client().try_acquire().epoch == 0
            timeslice.client().cancel()
            timeslice.leave()
            print("fine")""")
        self.assertEqual((done.stdout, done.stderr), ("fine\n", ""))

    def test_required_is_refused(self):
        done = self.run_outside("import timeslice; timeslice.join()", TIMESLICE_REQUIRED="1")
        self.assertIn("Unavailable: TIMESLICE_REQUIRED=1", done.stderr)

    def test_inside_a_missing_library_is_named(self):
        done = self.run_outside("import timeslice; timeslice.join()", TIMESLICE_GROUP="rl")
        self.assertIn("/does/not/exist.so", done.stderr)
        self.assertIn("TIMESLICE_LIBRARY", done.stderr)


if __name__ == "__main__":
    report.main()
