"""An exception for each status of <timeslice/timeslice.h>. str() is the reason, a sentence."""

from __future__ import annotations


class Error(Exception):
    """A call answered something else than OK. `status` is the number, `reason` the sentence."""

    status = -1
    __module__ = "timeslice"  # as who catches it writes it

    def __init_subclass__(cls):
        cls.__module__ = "timeslice"

    def __init__(self, reason: str, status: int | None = None):
        super().__init__(reason)
        self.reason = reason
        if status is not None:
            self.status = status

    def __str__(self) -> str:
        return self.reason


class Invalid(Error, ValueError):
    """An argument or a variable is out of its range."""
    status = 1


class Unavailable(Error, ConnectionError):
    """No node daemon at the socket, or no libtimeslice.so; the reason says where it was looked for."""
    status = 2


class Forked(Error):
    """The client belongs to the parent process: join anew."""
    status = 3


class Internal(Error):
    """A bug of timeslice; please report the reason."""
    status = 4


class TimedOut(Error, TimeoutError):
    """The deadline is over; the acquire has no place in the queue any more."""
    status = 5


class Cancelled(Error):
    """Client.cancel() gave up the acquire."""
    status = 6


class Busy(Error):
    """The turn is not free now."""
    status = 7


class NotJoined(Error):
    """The node daemon does not know this process."""
    status = 8


class AlreadyJoined(Error):
    """This process is a participant already."""
    status = 9


class NotEntered(Error):
    """A yield without a slice; nothing changed."""
    status = 10


class UnknownGroup(Error):
    """No such group, and the master makes none on demand."""
    status = 11


class Permission(Error, PermissionError):
    """The group, or the socket, is not for this user."""
    status = 12


class DeviceOwned(Error):
    """A device of the claim belongs to another group."""
    status = 13


class NoClaim(Error):
    """The job has no device to take turns on."""
    status = 14


class Deadlock(Error):
    """Waiting would close a cycle between jobs."""
    status = 15


class NoDeviceMemory(Error):
    """The devices have no room for the job's state."""
    status = 16


class NoHostMemory(Error):
    """The host has no room for what must be saved."""
    status = 17


class NotReleased(Error):
    """The job before did not free the devices."""
    status = 18


class Faulted(Error):
    """The job's state cannot be moved; see `tsctl why`."""
    status = 19


class Evicted(Error):
    """An operator or a policy ended the job."""
    status = 20


class Paused(Error):
    """The group is paused."""
    status = 21


class Stale(Error):
    """The slice was over already."""
    status = 22


class Version(Error):
    """Library and node daemon have no protocol version in common."""
    status = 23


class NoSuchProcess(Error):
    """Not a process, or the id of a thread."""
    status = 24


class NoContext(Error):
    """The process has no device state."""
    status = 25


class Unsupported(Error):
    """The node cannot do this."""
    status = 26


class Protocol(Error):
    """The node daemon sent what is no message, or says so of us."""
    status = 27


class Shutdown(Error):
    """The node daemon is stopping."""
    status = 28


class MasterDown(Error):
    """The node daemon is fine and cannot reach the master."""
    status = 29


_BY_STATUS = {kind.status: kind for kind in Error.__subclasses__()}


def error_for(status: int, reason: str) -> Error:
    """The exception for a status that is not OK."""
    kind = _BY_STATUS.get(status)
    return kind(reason) if kind else Error(reason, status)
