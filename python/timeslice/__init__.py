"""Take turns on GPUs with other jobs.

    import timeslice

    with timeslice.slice(phase="train"):      # blocks until the turn has come
        ...                                   # touch the GPU
                                              # yielded: do not touch the GPU here

    @timeslice.sliced(phase="rollout")
    async def rollout(prompts): ...

The process joins at its first slice, with what TIMESLICE_* in the environment says, or with what
join() is given. Without TIMESLICE_GROUP and TIMESLICE_SOCKET in the environment everything here
succeeds at once and does nothing, so that code runs unchanged where there is no timeslice; with
TIMESLICE_REQUIRED=1 it raises Unavailable instead.

Units: seconds (float) for deadlines and durations, bytes for sizes.
Threads: everything may be called from any thread, and from any number of asyncio tasks; no thread is
started. Slices nest: all threads and tasks of a process are in the same slice.
Fork: a child joins anew at its first slice; a Client of the parent raises Forked there.
End: a process that ends leaves its group, also by sys.exit(); that takes 1 s at most, 10 s inside a slice.
One that ends by an exception nobody caught, a signal or os._exit() has died: its gang is broken.
"""

from ._client import Client, Grant, State
from ._default import client, join, leave, should_yield
from ._errors import (
    AlreadyJoined, Busy, Cancelled, Deadlock, DeviceOwned, Error, Evicted, Faulted, Forked, Internal,
    Invalid, MasterDown, NoClaim, NoContext, NoDeviceMemory, NoHostMemory, NoSuchProcess, NotEntered,
    NotJoined, NotReleased, Paused, Permission, Protocol, Shutdown, Stale, TimedOut, Unavailable,
    UnknownGroup, Unsupported, Version)
from ._slice import slice, sliced

__version__ = "0.1.0"

__all__ = [
    "AlreadyJoined", "Busy", "Cancelled", "Client", "Deadlock", "DeviceOwned", "Error", "Evicted",
    "Faulted", "Forked", "Grant", "Internal", "Invalid", "MasterDown", "NoClaim", "NoContext",
    "NoDeviceMemory", "NoHostMemory", "NoSuchProcess", "NotEntered", "NotJoined", "NotReleased",
    "Paused", "Permission", "Protocol", "Shutdown", "Stale", "State", "TimedOut", "Unavailable",
    "UnknownGroup", "Unsupported", "Version", "client", "join", "leave", "should_yield", "slice",
    "sliced"]
