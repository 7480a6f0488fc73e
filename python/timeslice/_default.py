"""The participant that a process is without saying so: made at the first slice."""

from __future__ import annotations

import os
import threading

from ._client import Client
from ._errors import AlreadyJoined

_lock = threading.Lock()
_client: Client | None = None


def join(**options) -> Client:
    """Makes this process a participant; options and errors are those of Client. Needed only to say
    more than the environment does, or to fail early. Raises AlreadyJoined the second time. Any
    thread; blocks for the join's deadline (seconds, 10 by default) at most."""
    global _client
    with _lock:
        if _client is not None:
            raise AlreadyJoined("join: this process is a participant already; leave() first")
        _client = Client(**options)
        return _client


def client() -> Client:
    """The participant of this process; joins at the first call. Raises as Client. Any thread."""
    global _client
    with _lock:
        if _client is None:
            _client = Client()
        return _client


def leave() -> None:
    """Ends the participation of join() or of the first slice; yields if need be. Does nothing when
    there is none. Never raises; blocks for 10 s at most. One thread, when no other is in a slice."""
    global _client
    with _lock:
        gone, _client = _client, None
    if gone is not None:
        gone.leave()


def should_yield() -> bool:
    """True when others wait and the hold limit is over: end the slice at the next good point. False
    outside and before the first slice. Never blocks and never raises. Any thread."""
    current = _client
    return current is not None and current.should_yield()


def _forget_in_child() -> None:
    global _client, _lock
    _lock = threading.Lock()  # another thread of the parent may have had it
    _client = None  # the parent's goes on; whoever kept it here is told Forked


os.register_at_fork(after_in_child=_forget_in_child)
