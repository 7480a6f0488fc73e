"""Waiting for a descriptor, on a thread or in an asyncio loop."""

from __future__ import annotations

import asyncio
import select
import threading


class Watch:
    """Waits until a descriptor is readable. A loop has one reader for each descriptor, so all tasks
    of a loop that wait share it."""

    def __init__(self, fd: int):
        self._fd = fd
        self._lock = threading.Lock()
        self._tasks = {}  # loop -> futures

    def wait(self) -> None:
        """Blocks; a signal's Python handler runs meanwhile, and may raise."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.poll()

    async def wait_async(self) -> None:
        """The same for a task; may wake once too often."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._add(loop, future)
        try:
            await future
        finally:
            self._remove(loop, future)

    def _add(self, loop, future) -> None:
        with self._lock:
            futures = self._tasks.setdefault(loop, set())
            futures.add(future)
        if len(futures) == 1:
            loop.add_reader(self._fd, self._readable, loop)

    def _remove(self, loop, future) -> None:
        with self._lock:
            futures = self._tasks.get(loop, set())
            futures.discard(future)
            if futures:
                return
            self._tasks.pop(loop, None)
        loop.remove_reader(self._fd)

    def _readable(self, loop) -> None:
        with self._lock:
            futures = self._tasks.pop(loop, set())
        loop.remove_reader(self._fd)
        for future in futures:
            if not future.done():
                future.set_result(None)
