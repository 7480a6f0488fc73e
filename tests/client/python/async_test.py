"""The Python package in asyncio loops, against a fake node."""
import asyncio
import os
import threading
import unittest

import fake
import report
import timeslice


class NextTurn:
    """Awaiting it lets the other tasks of the loop run once."""

    def __await__(self):
        yield


class Async(unittest.TestCase):
    def setUp(self):
        fake.clean_environment()
        self.node = fake.FakeNode()
        os.environ["TIMESLICE_SOCKET"] = self.node.socket
        os.environ["TIMESLICE_GROUP"] = "rl"
        self.client = timeslice.join()

    def tearDown(self):
        timeslice.leave()
        self.node.close()
        fake.clean_environment()

    async def seen(self, word):
        return await asyncio.get_running_loop().run_in_executor(None, self.node.seen, word)

    def test_a_block_is_one_slice(self):
        async def main():
            async with timeslice.slice("rollout") as grant:
                self.assertEqual(grant.epoch, 1)
                self.assertTrue(self.client.state().entered)

        asyncio.run(main())
        self.assertIn("phase=rollout", self.node.seen("acquire"))
        self.assertIn("epoch=1", self.node.seen("yield"))

    def test_the_loop_goes_on_while_a_task_waits(self):
        self.node.tell("hold acquire")

        async def main():
            async def work():
                async with timeslice.slice():
                    return "held"

            task = asyncio.create_task(work())
            await self.seen("acquire")  # the loop runs: this is awaited in it
            self.assertFalse(task.done())
            self.node.tell("grant")
            return await task

        threads = threading.active_count()
        self.assertEqual(asyncio.run(main()), "held")
        self.assertLessEqual(threading.active_count(), threads)

    def test_P107_a_decorated_coroutine_holds_during_each_call(self):
        @timeslice.sliced(phase="sample")
        async def work(x):
            return x if self.client.state().entered else None

        self.assertTrue(asyncio.iscoroutinefunction(work))
        self.assertEqual(asyncio.run(work(3)), 3)
        self.assertEqual(self.node.count("yield"), 1)

    def test_a_cancelled_task_leaves_no_queue_entry(self):
        self.node.tell("hold acquire")

        async def main():
            async def work():
                async with timeslice.slice():
                    self.fail("nobody granted it")

            task = asyncio.create_task(work())
            await self.seen("acquire")
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        self.assertEqual(self.node.count("cancel"), 1)
        self.node.tell("answer acquire 0")
        with timeslice.slice():
            pass

    def test_a_grant_that_crosses_the_cancel_is_yielded(self):
        self.node.tell("hold acquire")
        self.node.tell("ignore cancel")

        async def main():
            task = asyncio.create_task(self.client.acquire_async())
            await self.seen("acquire")
            task.cancel()
            await self.seen("cancel")
            self.node.tell("grant")
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        self.assertEqual(self.node.count("yield"), 1)
        self.assertFalse(self.client.state().entered)

    def test_a_cancel_that_a_hanging_daemon_ignores_ends(self):
        self.node.tell("ignore acquire")
        self.node.tell("ignore cancel")

        async def main():
            task = asyncio.create_task(self.client.acquire_async())
            await self.seen("acquire")
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())

    def test_a_task_cancelled_while_it_yields_yields(self):
        self.node.tell("hold yield")

        async def main():
            async def work():
                async with timeslice.slice():
                    pass

            task = asyncio.create_task(work())
            await self.seen("yield")
            task.cancel()
            await NextTurn()
            self.node.tell("grant")
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        self.assertEqual(self.node.count("yield"), 1)

    def test_a_loop_that_shuts_down_leaves_nothing_begun(self):
        for word in ("acquire", "yield"):
            self.node.forget()
            self.node.tell(f"hold {word}")

            async def work():
                async with timeslice.slice():
                    pass

            async def main(word=word):
                task = asyncio.create_task(work())
                await self.seen(word)
                task.cancel()  # and it runs on only while the loop shuts down
                if word == "yield":
                    threading.Timer(0, self.node.tell, ["grant"]).start()

            asyncio.run(main())
            self.assertFalse(self.client.state().entered)
            self.node.tell(f"answer {word} 0")
            asyncio.run(work())
            with timeslice.slice():
                pass

    def test_a_deadline_in_seconds(self):
        self.node.tell("hold acquire")

        async def main():
            with self.assertRaises(timeslice.TimedOut):
                async with timeslice.slice(deadline=0.02):
                    self.fail("nobody granted it")

        asyncio.run(main())

    def test_a_deadline_behind_another_task(self):
        self.node.tell("hold acquire")

        async def main():
            first = asyncio.create_task(self.client.acquire_async())
            await self.seen("acquire")
            with self.assertRaises(timeslice.TimedOut):
                await self.client.acquire_async(deadline=0.02)
            self.node.tell("grant")
            await first

        asyncio.run(main())

    def test_many_tasks_share_the_slice(self):
        async def main():
            async def work(i):
                async with timeslice.slice(f"task-{i}"):
                    await NextTurn()
                    return self.client.state().entered

            return await asyncio.gather(*(work(i) for i in range(50)))

        self.assertEqual(set(asyncio.run(main())), {True})
        self.assertFalse(self.client.state().entered)

    def test_cancelling_one_of_two_tasks_leaves_the_other_waiting(self):
        self.node.tell("hold acquire")

        async def main():
            first = asyncio.create_task(self.client.acquire_async())
            await self.seen("acquire")
            second = asyncio.create_task(self.client.acquire_async())
            await NextTurn()
            first.cancel()
            await self.seen("acquire")
            self.node.tell("grant")
            await second
            self.assertTrue(first.cancelled())

        asyncio.run(main())
        self.assertEqual(self.client.state().depth, 1)

    def test_P83_a_daemon_that_restarts_under_a_waiting_task(self):
        self.node.tell("hold acquire")

        async def main():
            task = asyncio.create_task(self.client.acquire_async())
            await self.seen("acquire")
            self.node.tell("away")
            self.node.tell("back")
            await self.seen("acquire")
            self.node.tell("grant")
            await task

        asyncio.run(main())
        self.assertEqual(self.node.count("join"), 2)

    def test_loops_on_several_threads(self):
        results = []

        async def work():
            for _ in range(20):
                async with timeslice.slice():
                    await NextTurn()
            return True

        threads = [threading.Thread(target=lambda: results.append(asyncio.run(work())))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        with timeslice.slice():
            pass
        for thread in threads:
            thread.join()
        self.assertEqual(results, [True] * 4)


if __name__ == "__main__":
    report.main()
