"""One participant: this process in one group."""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import os
import time

from . import _exit, _library
from ._errors import Error, Forked, Internal, Invalid, NotJoined, TimedOut, Unavailable, error_for
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


def _whole(name: str, value: int, low: int, high: int) -> int:
    """ctypes would cut it down to what fits."""
    if not isinstance(value, int) or not low <= value <= high:
        raise Invalid(f"{name}={value!r} is not a whole number from {low} to {high}")
    return value


_LONGEST = 365 * 24 * 3600.0  # seconds


def _checked(seconds: float) -> float:
    if not isinstance(seconds, (int, float)) or not seconds <= _LONGEST:  # nan is nowhere
        raise Invalid(
            f"deadline={seconds!r} is not a number of seconds up to {_LONGEST:.0f}; None: no deadline")
    return seconds


def _milliseconds(seconds: float | None) -> int:
    """0: none. What is over already is the shortest: the wait ends as soon as it has begun."""
    return 0 if seconds is None else max(1, round(_checked(seconds) * 1000))


def _is_outside(socket, group) -> bool:
    names = (socket, group, os.environ.get("TIMESLICE_SOCKET"), os.environ.get("TIMESLICE_GROUP"))
    return not any(names)


def _refuse_outside() -> None:
    required = os.environ.get("TIMESLICE_REQUIRED", "")
    if required not in ("", "0"):
        raise Unavailable(
            f"TIMESLICE_REQUIRED={required}, but neither TIMESLICE_GROUP nor TIMESLICE_SOCKET is set "
            "here: the job was started without timeslice; start it with tsctl run --group NAME -- "
            "PROGRAM")


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
        options.gang = _whole("gang", gang, 0, _library.MOST_IN_GANG)
        options.priority = _whole("priority", priority, -_library.MOST_PRIORITY,
                                  _library.MOST_PRIORITY)
        options.deadline_ms = _milliseconds(deadline)
        handle = ctypes.c_void_p()
        self._lib = lib
        self._check(lib.ts_join(ctypes.byref(options), ctypes.byref(handle)))
        self._handle = handle
        self._pid = os.getpid()
        _exit.remember(self)
        self._watch = Watch(self._descriptor())
        self._acquires = Gate()
        self._yields = Gate()
        self._begin()

    def _descriptor(self) -> int:
        fd = self._lib.ts_fd(self._handle)
        if fd < 0:
            reason = self._lib.ts_last_error().decode(errors="replace")
            self.leave()
            raise Internal(reason)
        return fd

    def _check(self, status: int) -> None:
        if status != _library.OK:
            reason = (self._lib.ts_last_error() or b"").decode(errors="replace")
            raise error_for(status, reason or f"status {status}")

    def _is_outside(self) -> bool:
        if self._handle is None and not self._outside:
            raise NotJoined("this Client has left its group: make another one")
        if not self._outside and os.getpid() != self._pid:
            raise Forked(f"this Client belongs to process {self._pid}, which forked {os.getpid()}: make "
                         "another one here, or use timeslice.slice()")
        return self._outside

    def acquire(self, phase: str = "", deadline: float | None = None) -> Grant:
        """Blocks until the turn has come; inside a slice it is one level deeper, at once.

        `phase` is a label for `tsctl why`, at most 31 bytes; `deadline` counts seconds from now, None:
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
            return self._acquire(phase, self._left(end))
        finally:
            self._acquires.leave()

    def _acquire(self, phase: str, deadline: float | None) -> Grant:
        try:
            self._start(phase, deadline)
            while (grant := self._finish()) is None:
                self._watch.wait()
            return grant
        except BaseException:
            self._abandon()
            raise

    async def acquire_async(self, phase: str = "", deadline: float | None = None) -> Grant:
        """As acquire(), without blocking the running loop. Cancelling the task leaves no queue
        entry: a grant that crossed the cancel is yielded before CancelledError goes on."""
        if self._is_outside():
            return Grant()
        end = self._end_of(deadline)
        if not await self._acquires.enter_async(self._left(end)):
            raise self._timed_out(deadline)
        try:
            return await self._acquire_async(phase, self._left(end))
        finally:
            self._acquires.leave()

    async def _acquire_async(self, phase: str, deadline: float | None) -> Grant:
        try:
            self._start(phase, deadline)
            while (grant := self._finish()) is None:
                await self._watch.wait_async()
            return grant
        except GeneratorExit:  # the loop is gone, and nothing can be awaited
            self._abandon()
            raise
        except BaseException:
            await self._abandon_async()
            raise

    def try_acquire(self) -> Grant | None:
        """The turn if it is free now, else None. Raises as acquire(). Any thread."""
        if self._is_outside():
            return Grant()
        raw = _library.sized(_library.RawGrant)
        try:
            status = self._lib.ts_try_acquire(self._handle, ctypes.byref(raw))
            if status == _library.BUSY:
                return None
            self._check(status)
            return self._grant_of(raw)
        except KeyboardInterrupt:
            if raw.epoch != 0:
                self.give_back()
            raise

    def give_back(self) -> None:
        """Yields: ends the slice, or one level of nesting. Returns when the node has recorded it, also
        while the master is away. Raises NotEntered without a slice, Unavailable when the node daemon
        cannot be reached for 10 s (the slice is over all the same), Stale, Forked. Any thread."""
        if not self._is_outside():
            self._check(self._lib.ts_yield(self._handle))

    async def give_back_async(self) -> None:
        """As give_back(), without blocking the running loop; a cancelled task yields all the same."""
        if self._is_outside():
            return
        held = _HeldCancel()
        await self._give_back_async(held)
        held.let_go()

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
        has to be told of a yield and is away. Never raises. One thread, when no other uses it. A process
        that ends, other than by an exception or a signal, leaves by itself."""
        self.leave_unless(lambda: False)

    def leave_unless(self, in_use) -> None:
        """As leave(), but keeps what another thread still uses: whoever comes later finds no handle, so
        `in_use()` only has to know who came before."""
        _exit.forget(self)
        handle, self._handle = self._handle, None
        if handle is not None and not in_use():
            self._lib.ts_leave(handle)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_exception) -> None:
        self.leave()

    @staticmethod
    def _end_of(deadline: float | None) -> float | None:
        return None if deadline is None else time.monotonic() + _checked(deadline)

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
        options = _library.sized(_library.AcquireOptions)
        options.deadline_ms = _milliseconds(deadline)
        options.phase = _text(phase)
        self._begin()
        status = self._lib.ts_acquire_start(self._handle, ctypes.byref(options))
        if status != _library.OK:
            self._end(status)

    def _begin(self) -> None:
        """What an exception may leave behind from here on, also one between two lines, is known from
        `_raw`, whose epoch libtimeslice fills with a grant, and from `_pending`."""
        self._raw = _library.sized(_library.RawGrant)
        self._pending = True

    def _end(self, status: int) -> None:
        self._pending = False
        self._check(status)

    def _finish(self) -> Grant | None:
        """None: not yet. Only who is inside the gate calls it."""
        status = self._lib.ts_acquire_finish(self._handle, ctypes.byref(self._raw))
        if status == _library.BUSY:
            return None
        self._end(status)
        return self._grant_of(self._raw)

    def _settled(self) -> bool:
        """Whether a cancelled acquire has ended, in whatever way."""
        try:
            return self._finish() is not None
        except Error:  # its place is gone; what made us cancel goes on
            return True

    def _gives_up(self) -> bool:
        """Cancels what waits. True: its end must be waited for."""
        if not self._pending or self._raw.epoch != 0:
            return False
        self.cancel()
        return True

    def _abandon(self) -> None:
        """Leaves no place in the queue and no slice behind."""
        if self._gives_up():
            while not self._settled():
                self._wait_through()
        if self._raw.epoch == 0:
            return
        try:
            self.give_back()
        except Error:  # the slice is over all the same
            pass

    def _wait_through(self) -> None:
        try:
            self._watch.wait()
        except KeyboardInterrupt:  # the first one is on its way already
            pass

    async def _abandon_async(self) -> None:
        held = _HeldCancel()
        if self._gives_up():
            while not self._settled():
                await held.over(self._watch.wait_async())
        if self._raw.epoch == 0:
            return
        try:
            await self._give_back_async(held)
        except Error:  # the slice is over all the same
            pass

    async def _give_back_async(self, held: _HeldCancel) -> None:
        while not await held.over(self._yields.enter_async(None)):
            pass
        try:
            self._check(self._lib.ts_yield_start(self._handle))
            while (status := self._lib.ts_yield_finish(self._handle)) == _library.BUSY:
                await held.over(self._watch.wait_async())
            self._check(status)
        finally:
            self._yields.leave()


class _HeldCancel:
    """Keeps a task's cancel until what it has begun is over. In the task itself: a loop that shuts down
    cancels every other one, too."""

    def __init__(self):
        self._error = None

    async def over(self, awaitable) -> bool:
        """False: a cancel came instead."""
        try:
            await awaitable
            return True
        except asyncio.CancelledError as error:
            self._error = error
            return False

    def let_go(self) -> None:
        if self._error is not None:
            raise self._error
