"""What publishers, subscribers and the others have in common: they are declared, then not."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from zenwire.api import declared as aio
from zenwire.api.core import GRACE
from zenwire.api.values import EntityGlobalId
from zenwire.errors import ZError
from zenwire.sync.handler import Handler

if TYPE_CHECKING:
    from zenwire.keyexpr import KeyExpr
    from zenwire.sync.handler import Reading
    from zenwire.sync.session import Session
    from zenwire.sync.workers import Strand

__all__ = ["Declared", "Entity", "Receiving"]

T = TypeVar("T")


class Declared:
    """Declared until it is undeclared, let go, or its session closed; ``with`` undeclares it.

    What has a callback stays declared when it is let go.
    """

    _strand: Strand[Any] | None = None
    _background = False
    _declared = True

    def __init__(self, session: Session, inner: aio.Declared) -> None:
        self._session = session
        self._inner = inner

    def undeclare(self) -> None:
        """Take the declaration back. Once more, or after the end of the session, is no matter.

        A callback takes what waits for it, and is not called any more then.
        """
        session, strand = self._session, self._strand
        session.loop.run(self._inner.undeclare)
        self._declared = False
        if strand is not None:
            strand.close(0 if session.loop.here else GRACE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undeclare()

    def __del__(self) -> None:
        inner = getattr(self, "_inner", None)
        if inner is not None and self._declared and not self._background:
            self._session.loop.later(inner.undeclare)

    def __repr__(self) -> str:
        return repr(self._inner)


class Entity(Declared):
    """Something with a key that other nodes, or routing, know of."""

    _inner: aio.Entity

    @property
    def id(self) -> EntityGlobalId:
        """Id of this entity: the node's ZenohId, and a number unique within the node."""
        return self._inner.id

    @property
    def key_expr(self) -> KeyExpr:
        """Canonical key expression that was declared."""
        return self._inner.key_expr


class Receiving(Declared, Generic[T]):
    """What a program reads from: ``for``, ``recv``, ``try_recv``; or what calls it."""

    def __init__(self, session: Session, inner: Any, reading: Reading[T]) -> None:
        super().__init__(session, inner)
        self._handler, self._strand = session.access.attach(reading, inner.handler)
        if not isinstance(self._handler, Handler):
            # Others get what comes, whether this is let go or not.
            self._background = True

    @property
    def dropped(self) -> int:
        """How many items were lost because they were not taken in time."""
        dropped: int = self._inner.dropped  # type: ignore[attr-defined] # of those that receive
        return dropped

    def try_recv(self) -> T | None:
        """The next item, or None if there is none now. Raises ChannelClosed at the end."""
        item: T | None = self._readable("try_recv").try_recv()
        return item

    def recv(self) -> T:
        """The next item, when there is one. Raises ChannelClosed at the end."""
        item: T = self._readable("recv").recv()
        return item

    def __iter__(self) -> Handler[T]:
        handler = self._readable("__iter__")
        return handler.of(self) if isinstance(handler, Handler) else iter(handler)

    def _readable(self, call: str) -> Any:
        if self._handler is None:
            what: str = self._inner.WHAT
            raise ZError(
                f"{what}.{call}: this {what} has a callback, which gets everything; "
                "declare it without one to read from it"
            )
        return self._handler
