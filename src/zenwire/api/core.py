"""What a session and everything it declares work on: the node, and who is still there."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import _get_running_loop  # named in its documentation
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from zenwire import process
from zenwire.api import values
from zenwire.api.namespace import Namespace
from zenwire.api.overwrites import Overwrites
from zenwire.api.pump import Pump
from zenwire.api.stamps import Stamps
from zenwire.errors import ForkedSession, SessionClosed, WrongLoop
from zenwire.node.once import Once
from zenwire.routing import Locality

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zenwire.api.handlers import Opened
    from zenwire.api.querier import Asking
    from zenwire.api.stamps import TimestampCallback
    from zenwire.node.neighbour import Waiting
    from zenwire.node.node import Node
    from zenwire.routing import Question

__all__ = ["GRACE", "Core", "Held", "get_ident", "locality_of"]

T = TypeVar("T")

GRACE: Final = 1.0
"""Seconds that callbacks have for what waits for them when a session is closed."""

_TURN: Final = 128
"""So many calls that need not wait, then others have their turn: a loop of puts is no excuse."""

_LOCALITIES = {
    values.Locality.ANY: Locality.ANY,
    values.Locality.SESSION_LOCAL: Locality.SESSION_LOCAL,
    values.Locality.REMOTE: Locality.REMOTE,
}


def locality_of(locality: values.Locality | None, name: str = "allowed_destination") -> Locality:
    """Convert to routing's enumeration. Raises TypeError, with the ``name`` of the argument."""
    if locality is None:
        return Locality.ANY
    if not isinstance(locality, values.Locality):
        raise TypeError(f"{name} is a Locality, not {type(locality).__name__}")
    return _LOCALITIES[locality]


class Held(Protocol):
    """What ends with its session."""

    def over(self) -> None:
        """The session is closed: nothing more comes."""


class _Runner:
    """The thread in which a loop runs now, for loops that do not have it as an attribute."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    @property
    def _thread_id(self) -> int | None:
        return get_ident() if _get_running_loop() is self._loop else None


class Core:
    """One session of a node. Its calls belong to the loop, and the process, that opened it."""

    def __init__(self, node: Node, timestamp_callback: TimestampCallback | None = None) -> None:
        self.node = node
        self.face = node.session()
        self.namespace = Namespace(node.config.settings.namespace)
        publication = node.config.settings.qos.publication
        self.overwrites = Overwrites(publication) if publication else None
        """QoS that the configuration gives to publications, if it does."""
        self.stamps = Stamps(node, timestamp_callback)
        self.zid = values.ZenohId.from_wire(node.zid)
        self.held: dict[int, Held] = {}
        """By the id of the object: declared things, and queries that are not finished."""
        self.questions: dict[tuple[str, Asking], Question] = {}
        """What was asked before."""
        self.foreign = 0
        """What came for this session on keys outside of its namespace."""
        self._loop = asyncio.get_running_loop()
        # Any: the attribute is that of all loops of asyncio, but in no stub.
        self.runner: Any = self._loop if hasattr(self._loop, "_thread_id") else _Runner(self._loop)
        """``runner._thread_id == get_ident()`` while the session's loop runs in this thread.

        Cheaper than asking for the running loop, which is a system call before Python 3.12.
        """
        self._thread = get_ident()
        self._pid = process.pid
        self.over = False
        """It was closed."""
        self._closing = Once()
        self._pumps: dict[asyncio.Task[None], Pump[Any]] = {}
        self._calls = 0

    @property
    def now(self) -> float:
        return self.node.time()

    @property
    def forked(self) -> bool:
        return process.pid != self._pid

    @property
    def alive(self) -> bool:
        """Whether there is anything that can still be done, by whoever may."""
        return not (self.over or self.node.closed or process.pid != self._pid)

    def usable(self) -> bool:
        """Whether `check` would not raise."""
        return (
            process.pid == self._pid
            and self.runner._thread_id == get_ident()  # noqa: SLF001 # see there
            and not (self.over or self.node.closed)
        )

    def check(self, what: str) -> None:
        """Raise, if ``what`` cannot be done any more, or not here."""
        self.check_alive(what)
        self.check_loop(what)

    def check_loop(self, what: str) -> None:
        """Raise WrongLoop, unless the session's loop runs here."""
        if self.runner._thread_id != get_ident():  # noqa: SLF001 # see there
            raise WrongLoop(what)

    def check_alive(self, what: str) -> None:
        """The same, for any thread: what it asks for is done in the loop."""
        if process.pid != self._pid:
            raise ForkedSession(what, self._pid)
        if self.over or self.node.closed:
            raise SessionClosed(what)

    def settle(self) -> list[Waiting] | None:
        """Carry out what was asked of routing. What it gives, if anything, goes to `room`."""
        waiting = self.node.settle()
        self._calls += 1
        return waiting if waiting or not self._calls % _TURN else None

    async def room(self, waiting: Iterable[Waiting] | None) -> None:
        """Wait until messages are queued or, by their congestion control, dropped."""
        if waiting is None:
            return
        if not waiting:
            await asyncio.sleep(0)
        for one in waiting:
            await one.done

    def hold(self, held: Held) -> None:
        self.held[id(held)] = held

    def release(self, held: Held) -> None:
        self.held.pop(id(held), None)

    def pump(self, opened: Opened[T]) -> Callable[[T], bool]:
        """Let a callback run, if there is one that needs it. Gives what takes the items."""
        if opened.callback is None:
            if opened.channel is not None:
                opened.channel.soon = self.soon
            return opened.sink.put
        pump = Pump(opened)
        task = pump.start()
        self._pumps[task] = pump
        task.add_done_callback(self._pumps.pop)
        return pump.put

    def soon(self, call: Callable[[], None]) -> bool:
        """For what may run where things are handed over; a task that runs is not interrupted."""
        node = self.node
        if not node.telling or asyncio.current_task(self._loop) is not None:
            return False
        node.afterwards.append(call)
        return True

    def call(self, call: Callable[[], None]) -> None:
        """Call in the loop: now, if it runs here."""
        if self.runner._thread_id == get_ident():  # noqa: SLF001 # see there
            call()
        else:
            self.later(call)

    def later(self, call: Callable[..., None], *args: Any) -> None:
        """Call from wherever the garbage collector runs, unless this process is a fork."""
        if self.forked:
            return
        # A loop that is closed has nothing left to be done.
        with contextlib.suppress(RuntimeError):
            if get_ident() == self._thread:
                self._loop.call_soon(call, *args)
            else:
                self._loop.call_soon_threadsafe(call, *args)

    async def close(self) -> None:
        """End everything. All callers wait for the same end, which no cancellation interrupts."""
        if self.forked:
            raise ForkedSession("close", self._pid)
        self.check_loop("close")
        calling = self._calling()
        if self._closing.begun and calling is not None:
            # The end waits for this callback, which must not wait for the end.
            return
        await self._closing.run(lambda: self._close(calling))

    async def _close(self, calling: asyncio.Task[None] | None) -> None:
        """``calling`` is the pump whose callback asked for it."""
        try:
            for held in list(self.held.values()):
                held.over()
            self.held.clear()
            await self._drained(calling)
        finally:
            self.over = True
            self.face.close()
            self.node.settle()
            await self.node.close()

    async def _drained(self, calling: asyncio.Task[None] | None) -> None:
        """Callbacks take what waits for them, for a while."""
        pumps = self._pumps.keys() - {calling}
        if not pumps:
            return
        _, late = await asyncio.wait(pumps, timeout=GRACE)
        for task in late:
            task.cancel()

    def _calling(self) -> asyncio.Task[None] | None:
        """The pump whose callback this is called in, if there is one."""
        current = asyncio.current_task()
        return next((task for task, pump in self._pumps.items() if pump.runs(current)), None)
