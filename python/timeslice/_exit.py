"""At the end of the process: who ends well leaves, who fails is left to be found dead."""

from __future__ import annotations

import atexit
import os
import sys
import threading

_joined = set()  # the clients of this process that have not left
_HERE = os.path.dirname(__file__)


def remember(client) -> None:
    """The client leaves at the end of this process, unless it has left by then."""
    _joined.add(client)
    # A child that multiprocessing has forked ends without what atexit knows.
    util = sys.modules.get("multiprocessing.util")
    if util is not None and sys.modules["multiprocessing.process"].parent_process() is not None:
        util.Finalize(None, leave_all, exitpriority=0)


def forget(client) -> None:
    _joined.discard(client)


def leave_all() -> None:
    """Blocks as Client.leave(). A rank that failed stays for the node to find: its gang is broken."""
    clients = list(_joined)
    _joined.clear()
    if _has_failed():
        return
    for client in clients:
        client.leave_unless(_others_are_inside)


def _has_failed() -> bool:
    # multiprocessing ends a child inside the except of what its function raised.
    kind = sys.exc_info()[0] or getattr(sys, "last_type", None)
    return kind is not None and not issubclass(kind, SystemExit)


def _others_are_inside() -> bool:
    """Daemon threads go on until the very end, and one may be in a call on the handle."""
    mine = threading.get_ident()
    return any(_is_ours(frame) for thread, frame in sys._current_frames().items() if thread != mine)


def _is_ours(frame) -> bool:
    while frame is not None:
        if os.path.dirname(frame.f_code.co_filename) == _HERE:
            return True
        frame = frame.f_back
    return False


atexit.register(leave_all)
os.register_at_fork(after_in_child=_joined.clear)  # the parent's go on
