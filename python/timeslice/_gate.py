"""Lets threads and asyncio tasks through one at a time, in the order in which they came."""

from __future__ import annotations

import asyncio
import collections
import threading


class Gate:
    """A mutex that a task awaits and a thread blocks on. Any thread may call everything."""

    def __init__(self):
        self._lock = threading.Lock()
        self._inside = False
        self._waiting = collections.deque()  # callables that wake one; False: it is not there any more

    def enter(self, timeout: float | None) -> bool:
        """Blocks for `timeout` seconds at most, None: for ever. False: the time was over."""
        event = threading.Event()

        def wake() -> bool:
            event.set()
            return True

        if self._enter_or_queue(wake):
            return True
        try:
            if event.wait(timeout):
                return True
        except BaseException:
            if not self._drop(wake):
                self.leave()
            raise
        return not self._drop(wake)

    async def enter_async(self, timeout: float | None) -> bool:
        """As enter(), for a task. Cancelling it leaves no trace."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()

        def wake() -> bool:
            try:
                loop.call_soon_threadsafe(lambda: turn.done() or turn.set_result(None))
            except RuntimeError:  # the loop is closed: whoever waited is gone
                return False
            return True

        if self._enter_or_queue(wake):
            return True
        try:
            await asyncio.wait([turn], timeout=timeout)
        except BaseException:
            if not self._drop(wake):
                self.leave()
            raise
        return not self._drop(wake)

    def leave(self) -> None:
        """Lets the next one in. Never blocks."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._inside = False
                    return
                wake = self._waiting.popleft()
            if wake():
                return

    def _enter_or_queue(self, wake) -> bool:
        with self._lock:
            if self._inside:
                self._waiting.append(wake)
                return False
            self._inside = True
            return True

    def _drop(self, wake) -> bool:
        """False: it is not in the queue any more, so it is inside."""
        with self._lock:
            try:
                self._waiting.remove(wake)
            except ValueError:
                return False
            return True
