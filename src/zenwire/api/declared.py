"""What publishers, subscribers and the others have in common: they are declared, then not."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from zenwire.api.values import EntityGlobalId
from zenwire.errors import ChannelClosed, Undeclared, ZError

if TYPE_CHECKING:
    from zenwire.api.channel import Channel
    from zenwire.api.core import Core
    from zenwire.api.handlers import Opened
    from zenwire.keyexpr import KeyExpr

__all__ = ["Declared", "Entity", "Receiving"]

T = TypeVar("T")


class Declared:
    """Declared until it is undeclared, or its session closed; ``async with`` undeclares it.

    The session keeps it: nothing ends because a program let go of it.
    """

    WHAT: ClassVar[str]

    def __init__(self, core: Core) -> None:
        self._core = core
        self._declared = True
        core.hold(self)

    def check(self, call: str) -> None:
        """Raise, if it is too late for a call, or this is not its loop."""
        if not (self._declared and self._core.usable()):
            self._core.check(f"{self.WHAT}.{call}")
            raise Undeclared(self.WHAT, self._where)

    def check_alive(self, call: str) -> None:
        """The same, for any thread."""
        if not (self._declared and self._core.alive):
            self._core.check_alive(f"{self.WHAT}.{call}")
            raise Undeclared(self.WHAT, self._where)

    async def undeclare(self) -> None:
        """Take the declaration back. Once more, or after the end of the session, is no matter."""
        if self._declared and not self._core.over:
            self._core.check(f"{self.WHAT}.undeclare")
            self._undeclare()
            await self._core.room(self._core.settle())

    def over(self) -> None:
        """The session is closed, or it is undeclared."""
        if self._declared:
            self._declared = False
            self._end()

    async def ready(self) -> Self:
        """It is declared once there was room to say so; nothing is, if the wait is cancelled."""
        try:
            await self._core.room(self._core.settle())
        except BaseException:
            self._undeclare()
            self._core.node.settle()
            raise
        return self

    def _undeclare(self) -> None:
        """All of it but the waiting."""
        self._core.release(self)
        self.over()

    def _end(self) -> None:
        """Nothing more comes."""

    @property
    def _where(self) -> str:
        return ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.undeclare()


class Entity(Declared):
    """Something with a key that other nodes, or routing, know of."""

    def __init__(self, core: Core, eid: int, key_expr: KeyExpr) -> None:
        super().__init__(core)
        self._eid = eid
        self._key_expr = key_expr

    @property
    def id(self) -> EntityGlobalId:
        """Id of this entity: the node's ZenohId, and a number unique within the node."""
        return EntityGlobalId(self._core.zid, self._eid)

    @property
    def key_expr(self) -> KeyExpr:
        """Canonical key expression that was declared."""
        return self._key_expr

    @property
    def _where(self) -> str:
        return str(self._key_expr)

    def _undeclare(self) -> None:
        super()._undeclare()
        self._core.node.receivers.pop(self._eid, None)
        self._core.face.undeclare(self._eid)

    def __repr__(self) -> str:
        state = "" if self._declared else ", undeclared"
        return f"{type(self).__name__}({self._where!r}{state})"


class Receiving(Generic[T]):
    """What a program reads from: ``async for``, ``recv``, ``try_recv``."""

    WHAT: ClassVar[str]
    _opened: Opened[T]

    @property
    def handler(self) -> Any:
        """A Channel; of a pair, what it had to read from; for a callback None."""
        return self._opened.receiver

    @property
    def dropped(self) -> int:
        """How many items were lost because they were not taken in time."""
        channel = self._opened.channel
        return 0 if channel is None else channel.dropped

    def try_recv(self) -> T | None:
        """The next item, or None if there is none now. Raises ChannelClosed at the end."""
        return self._channel("try_recv").try_recv()

    async def recv(self) -> T:
        """The next item, when there is one. Raises ChannelClosed at the end."""
        return await self._channel("recv").recv()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        channel = self._channel("__anext__")
        try:
            return await channel.recv()
        except ChannelClosed:
            raise StopAsyncIteration from None

    def _channel(self, call: str) -> Channel[T]:
        opened = self._opened
        if opened.channel is None or opened.callback is not None:
            raise ZError(
                f"{self.WHAT}.{call}: this {self.WHAT} has a callback, which gets everything; "
                "declare it without one to read from it"
            )
        return opened.channel
