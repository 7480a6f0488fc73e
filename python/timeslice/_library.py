"""Finds libtimeslice.so and declares its C ABI, <timeslice/timeslice.h>."""

from __future__ import annotations

import ctypes
import os
import threading

from ._errors import Unavailable

OK = 0
BUSY = 7

# Of src/local/protocol.h.
MOST_IN_GANG = 1000000
MOST_PRIORITY = 10000

_NAME = "libtimeslice.so.0"
_lock = threading.Lock()
_loaded = None


class JoinOptions(ctypes.Structure):
    """ts_join_options"""
    _fields_ = [("size", ctypes.c_size_t), ("socket", ctypes.c_char_p), ("group", ctypes.c_char_p),
                ("job", ctypes.c_char_p), ("devices", ctypes.c_char_p), ("backend", ctypes.c_char_p),
                ("gang", ctypes.c_uint32), ("priority", ctypes.c_int32),
                ("deadline_ms", ctypes.c_int64)]


class AcquireOptions(ctypes.Structure):
    """ts_acquire_options"""
    _fields_ = [("size", ctypes.c_size_t), ("deadline_ms", ctypes.c_int64),
                ("phase", ctypes.c_char_p)]


class RawGrant(ctypes.Structure):
    """ts_grant"""
    _fields_ = [("size", ctypes.c_size_t), ("epoch", ctypes.c_uint64),
                ("generation", ctypes.c_uint32), ("restored", ctypes.c_uint32),
                ("waited_us", ctypes.c_uint64), ("moved_bytes", ctypes.c_uint64)]


class RawState(ctypes.Structure):
    """ts_state"""
    _fields_ = [("size", ctypes.c_size_t), ("active", ctypes.c_uint32),
                ("entered", ctypes.c_uint32), ("depth", ctypes.c_uint32),
                ("waiters", ctypes.c_uint32), ("epoch", ctypes.c_uint64)]


def sized(kind):
    """A zeroed struct of a kind with its size set."""
    return kind(size=ctypes.sizeof(kind))


def _candidates() -> list[str]:
    named = os.environ.get("TIMESLICE_LIBRARY")
    if named:
        return [named]
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), _NAME)
    return [here, _NAME] if os.path.exists(here) else [_NAME]


def _declare(lib):
    handle = ctypes.c_void_p
    grant = ctypes.POINTER(RawGrant)
    options = ctypes.POINTER(AcquireOptions)
    signatures = {
        "ts_join": (ctypes.c_int, [ctypes.POINTER(JoinOptions), ctypes.POINTER(handle)]),
        "ts_acquire_start": (ctypes.c_int, [handle, options]),
        "ts_acquire_finish": (ctypes.c_int, [handle, grant]),
        "ts_try_acquire": (ctypes.c_int, [handle, grant]),
        "ts_cancel": (ctypes.c_int, [handle]),
        "ts_yield": (ctypes.c_int, [handle]),
        "ts_yield_start": (ctypes.c_int, [handle]),
        "ts_yield_finish": (ctypes.c_int, [handle]),
        "ts_should_yield": (ctypes.c_int, [handle]),
        "ts_fd": (ctypes.c_int, [handle]),
        "ts_get_state": (ctypes.c_int, [handle, ctypes.POINTER(RawState)]),
        "ts_leave": (None, [handle]),
        "ts_last_error": (ctypes.c_char_p, []),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


def load():
    """The library, loaded once. Raises Unavailable that says where it was looked for."""
    global _loaded
    with _lock:
        if _loaded is None:
            tried = []
            for path in _candidates():
                try:
                    _loaded = _declare(ctypes.CDLL(path))
                    break
                except (OSError, AttributeError) as error:
                    tried.append(f"{path} ({error})")
            else:
                raise Unavailable(f"libtimeslice.so cannot be loaded: {'; '.join(tried)}; install "
                                  "timeslice on this machine, or name the file in TIMESLICE_LIBRARY")
        return _loaded


def _renew_in_child() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have had it


os.register_at_fork(after_in_child=_renew_in_child)
