"""A slice around a block or a function."""

from __future__ import annotations

import functools
import inspect

from ._client import Client, Grant
from ._default import client as default_client


class slice:  # noqa: A001  it is timeslice.slice
    """Holds the turn for a block: `with timeslice.slice("train"):`, or `async with` in a loop.

    Entering blocks (or awaits) until the turn has come, and gives a Grant. `phase` is a label for
    `tsctl why`, at most 31 bytes; `deadline` counts seconds from the entering, None: none; `client` is
    the process's own unless given. Slices nest at no cost. Raises as Client.acquire() and
    Client.give_back(). Any thread and any task; an object may be entered again, also while entered.
    Cancelling a task that waits leaves no queue entry. A child forked inside the block raises Forked
    at its end, unless it leaves with os._exit().

    The first slice of a process joins, which blocks a loop, too, for 10 s at most: a program whose
    loop must not stand still calls timeslice.join() before it runs.
    """

    def __init__(self, phase: str = "", *, deadline: float | None = None,
                 client: Client | None = None):
        if not isinstance(phase, str):
            raise TypeError(f"timeslice.slice: phase={phase!r} is no text: give a label such as \"train\"")
        self._phase = phase
        self._deadline = deadline
        self._client = client
        self._entered = []  # who gives back at the end: in a child, the process's own is another one

    def _participant(self) -> Client:
        return self._client if self._client is not None else default_client()

    def __enter__(self) -> Grant:
        participant = self._participant()
        grant = participant.acquire(self._phase, self._deadline)
        self._entered.append(participant)
        return grant

    def __exit__(self, *_exception) -> None:
        self._entered.pop().give_back()

    async def __aenter__(self) -> Grant:
        participant = self._participant()
        grant = await participant.acquire_async(self._phase, self._deadline)
        self._entered.append(participant)
        return grant

    async def __aexit__(self, *_exception) -> None:
        await self._entered.pop().give_back_async()


def sliced(phase: str = "", *, deadline: float | None = None, client: Client | None = None):
    """A decorator: each call of the function, sync or async, is one slice.

    Arguments, units, errors and thread rules are those of slice(). A generator function is refused
    with TypeError: it would be over before its body runs.
    """
    if callable(phase):
        return sliced()(phase)
    turn = slice(phase, deadline=deadline, client=client)

    def decorate(function):
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"timeslice.sliced: {function.__qualname__} is a generator function; use "
                            "`with timeslice.slice()` inside it")
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def wrapper(*args, **kwargs):
                async with turn:
                    return await function(*args, **kwargs)
        else:
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                with turn:
                    return function(*args, **kwargs)
        return wrapper

    return decorate
