"""One participant: this process in one group."""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import os
import time

from . import _library
from ._errors import Error, NotJoined, TimedOut, Unavailable, error_for
from ._gate import Gate
from ._watch import Watch


@dataclasses.dataclass(frozen=True)
class Grant:
    """What a slice began with. `waited` is in seconds, `moved_bytes` counts out and in on all nodes,
    `restored` says that device state was brought back, `epoch` grows with every slice."""

    epoch: int = 0
    generation: int = 0
    restored: bool = False
    waited: float = 0.0
    moved_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class State:
    """Where this process stands. `active` is False outside; `waiters` counts other jobs of the group
    that wait, as last known by the node."""

    active: bool = False
    entered: bool = False
    depth: int = 0
    waiters: int = 0
    epoch: int = 0


def _text(value: str | None) -> bytes | None:
    return None if value is None else os.fsencode(value)


def _milliseconds(seconds: float | None) -> int:
    return 0 if seconds is None else max(1, round(seconds * 1000))


def _is_outside(socket, group) -> bool:
    names = (socket, group, os.environ.get("TIMESLICE_SOCKET"), os.environ.get("TIMESLICE_GROUP"))
    return not any(names)


def _refuse_outside() -> None:
    required = os.environ.get("TIMESLICE_REQUIRED", "")
    if required not in ("", "0"):
        raise Unavailable(
            f"TIMESLICE_REQUIRED={required}, but neither TIMESLICE_GROUP nor TIMESLICE_SOCKET is set "
            "here: the job was started without timeslice; submit it with --timeslice-group or use "
            "tsctl run")


class Client:
    """This process as a participant of a group.

    What is None comes from the environment: `socket` from TIMESLICE_SOCKET, `group` from
    TIMESLICE_GROUP, `job` from TIMESLICE_JOB, `devices` ("0,1" or UUIDs) from TIMESLICE_DEVICES, else
    CUDA_VISIBLE_DEVICES, `backend` from TIMESLICE_BACKEND, `gang` (participants that make one slice)
    from TIMESLICE_GANG, `priority` (larger first) from TIMESLICE_PRIORITY. `deadline` for the join is
    in seconds, None: 10 s. A process is in one group at a time.

    Raises Unavailable, Invalid, Version, UnknownGroup, Permission, DeviceOwned, NoClaim,
    AlreadyJoined, MasterDown, TimedOut. Any thread may use it, also several at the same time, but not
    during or after leave().
    """

    def __init__(self, *, socket: str | None = None, group: str | None = None,
                 job: str | None = None, devices: str | None = None, backend: str | None = None,
                 gang: int = 0, priority: int = 0, deadline: float | None = None):
        self._handle = None
        self._outside = _is_outside(socket, group)
        if self._outside:
            _refuse_outside()
            return
        lib = _library.load()
        options = _library.sized(_library.JoinOptions)
        options.socket, options.group, options.job = _text(socket), _text(group), _text(job)
        options.devices, options.backend = _text(devices), _text(backend)
        options.gang, options.priority = gang, priority
        options.deadline_ms = _milliseconds(deadline)
        handle = ctypes.c_void_p()
        self._lib = lib
        self._check(lib.ts_join(ctypes.byref(options), ctypes.byref(handle)))
        self._handle = handle
        self._watch = Watch(lib.ts_fd(handle))
        self._acquires = Gate()
        self._yields = Gate()

    def _check(self, status: int) -> None:
        if status != _library.OK:
            reason = (self._lib.ts_last_error() or b"").decode(errors="replace")
            raise error_for(status, reason or f"status {status}")

    def _is_outside(self) -> bool:
        if self._handle is None and not self._outside:
            raise NotJoined("this Client has left its group: make another one")
        return self._outside

    def acquire(self, phase: str = "", deadline: float | None = None) -> Grant:
        """Blocks until the turn has come; inside a slice it is one level deeper, at once.

        `phase` is a label for metrics, at most 31 bytes; `deadline` counts seconds from now, None:
        none. Raises TimedOut, Cancelled, Deadlock, Evicted, Faulted, NoDeviceMemory, NoHostMemory,
        Forked, Unavailable. Any thread; a KeyboardInterrupt gives up the place in the queue. Prefer
        timeslice.slice(), which yields by itself.
        """
        if self._is_outside():
            return Grant()
        end = self._end_of(deadline)
        if not self._acquires.enter(self._left(end)):
            raise self._timed_out(deadline)
        try:
            self._start(phase, self._left(end))
            try:
                while (grant := self._finish()) is None:
                    self._watch.wait()
                return grant
            except BaseException:
                self._abandon()
                raise
        finally:
            self._acquires.leave()

    async def acquire_async(self, phase: str = "", deadline: float | None = None) -> Grant:
        """As acquire(), without blocking the running loop. Cancelling the task leaves no queue
        entry: a grant that crossed the cancel is yielded before CancelledError goes on."""
        if self._is_outside():
            return Grant()
        end = self._end_of(deadline)
        if not await self._acquires.enter_async(self._left(end)):
            raise self._timed_out(deadline)
        try:
            self._start(phase, self._left(end))
            try:
                while (grant := self._finish()) is None:
                    await self._watch.wait_async()
                return grant
            except BaseException:
                await self._abandon_async()
                raise
        finally:
            self._acquires.leave()

    def try_acquire(self) -> Grant | None:
        """The turn if it is free now, else None. Raises as acquire(). Any thread."""
        if self._is_outside():
            return Grant()
        raw = _library.sized(_library.RawGrant)
        status = self._lib.ts_try_acquire(self._handle, ctypes.byref(raw))
        if status == _library.BUSY:
            return None
        self._check(status)
        return self._grant_of(raw)

    def release(self) -> None:
        """Yields: ends the slice, or one level of nesting. Returns when the node has recorded it, also
        while the master is away. Raises NotEntered without a slice, Unavailable when the node daemon
        cannot be reached for 10 s (the slice is over all the same), Stale, Forked. Any thread."""
        if not self._is_outside():
            self._check(self._lib.ts_yield(self._handle))

    async def release_async(self) -> None:
        """As release(), without blocking the running loop; a cancelled task yields all the same."""
        if self._is_outside():
            return
        await _unstoppable(self._release_async())

    def should_yield(self) -> bool:
        """True when others wait and the hold limit is over: end the slice at the next good point.
        Never blocks and never raises. Any thread."""
        return self._handle is not None and self._lib.ts_should_yield(self._handle) != 0

    def cancel(self) -> None:
        """Gives up a waiting acquire, which raises Cancelled, unless the grant came first. Does nothing
        when none waits. Raises Forked. Any thread, and signal handlers."""
        if not self._is_outside():
            self._check(self._lib.ts_cancel(self._handle))

    def state(self) -> State:
        """Where this process stands. Never blocks. Raises Forked. Any thread."""
        if self._is_outside():
            return State()
        raw = _library.sized(_library.RawState)
        self._check(self._lib.ts_get_state(self._handle, ctypes.byref(raw)))
        return State(active=bool(raw.active), entered=bool(raw.entered), depth=raw.depth,
                     waiters=raw.waiters, epoch=raw.epoch)

    def leave(self) -> None:
        """Yields if need be and ends the participation. Blocks for 10 s at most, when the node daemon
        has to be told of a yield and is away. Never raises. One thread, when no other uses it."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._lib.ts_leave(handle)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_exception) -> None:
        self.leave()

    @staticmethod
    def _end_of(deadline: float | None) -> float | None:
        return None if deadline is None else time.monotonic() + deadline

    @staticmethod
    def _left(end: float | None) -> float | None:
        return None if end is None else max(0.0, end - time.monotonic())

    @staticmethod
    def _timed_out(deadline: float) -> TimedOut:
        return TimedOut(f"acquire: TIMED_OUT after {deadline} s behind other threads and tasks of this "
                        "process; wait longer")

    @staticmethod
    def _grant_of(raw) -> Grant:
        return Grant(epoch=raw.epoch, generation=raw.generation, restored=bool(raw.restored),
                     waited=raw.waited_us / 1e6, moved_bytes=raw.moved_bytes)

    def _start(self, phase: str, deadline: float | None) -> None:
        self._finished = False
        options = _library.sized(_library.AcquireOptions)
        options.deadline_ms = _milliseconds(deadline)
        options.phase = _text(phase)
        try:
            self._check(self._lib.ts_acquire_start(self._handle, ctypes.byref(options)))
        except BaseException:
            self._finished = True
            raise

    def _finish(self) -> Grant | None:
        """None: not yet. Only who is inside the gate calls it."""
        raw = _library.sized(_library.RawGrant)
        status = self._lib.ts_acquire_finish(self._handle, ctypes.byref(raw))
        if status == _library.BUSY:
            return None
        self._finished = True
        self._check(status)
        return self._grant_of(raw)

    def _abandon(self) -> None:
        if self._finished:
            return
        self.cancel()
        while not self._finished:
            if self._settle():
                self.release()
                return
            if not self._finished:
                self._wait_through()

    def _wait_through(self) -> None:
        try:
            self._watch.wait()
        except KeyboardInterrupt:  # the first one is on its way already
            pass

    async def _abandon_async(self) -> None:
        if not self._finished:
            self.cancel()
            await _unstoppable(self._settle_async())

    async def _settle_async(self) -> None:
        while not self._finished:
            if self._settle():
                await self._release_async()
                return
            if not self._finished:
                await self._watch.wait_async()

    def _settle(self) -> bool:
        """Takes in the end of a cancelled acquire. True: the grant came first, and must be yielded."""
        try:
            return self._finish() is not None
        except Error:  # whatever ended it, its place is gone; the cancel goes on
            return False

    async def _release_async(self) -> None:
        await self._yields.enter_async(None)
        try:
            self._check(self._lib.ts_yield_start(self._handle))
            while (status := self._lib.ts_yield_finish(self._handle)) == _library.BUSY:
                await self._watch.wait_async()
            self._check(status)
        finally:
            self._yields.leave()


async def _unstoppable(coroutine) -> None:
    """Runs a short coroutine to its end whatever happens to the task; a cancel is raised afterwards."""
    task = asyncio.ensure_future(coroutine)
    cancelled = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # raised again below, from the task itself
            break
    if cancelled is not None:
        task.exception()
        raise cancelled
    task.result()
