"""What queries bring back, and how replies are put together."""

from __future__ import annotations

from typing import ClassVar

from zenwire.api.values.encoding import Encoding
from zenwire.api.values.enums import ConsolidationMode
from zenwire.api.values.ids import EntityGlobalId, ZenohId
from zenwire.api.values.sample import Sample
from zenwire.api.values.stack import TimestampStack
from zenwire.api.values.zbytes import ZBytes
from zenwire.wire import structs
from zenwire.wire.data import Err

__all__ = ["QueryConsolidation", "Reply", "ReplyError"]


class QueryConsolidation:
    """What happens to several replies on one key. Immutable; equal to one of the same mode."""

    __slots__ = ("_mode",)

    AUTO: ClassVar[QueryConsolidation]
    DEFAULT: ClassVar[QueryConsolidation]

    def __init__(self, mode: ConsolidationMode | None = None, /) -> None:
        if mode is not None and not isinstance(mode, ConsolidationMode):
            raise TypeError(f"consolidation is a ConsolidationMode, not {type(mode).__name__}")
        self._mode = mode or ConsolidationMode.DEFAULT

    @classmethod
    def of(cls, value: QueryConsolidation | ConsolidationMode | None) -> QueryConsolidation:
        """The QueryConsolidation that an argument stands for."""
        return value if isinstance(value, QueryConsolidation) else cls(value)

    def mode(self) -> ConsolidationMode:
        """A method, as in the package that runs; its stub calls it a property."""
        return self._mode

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QueryConsolidation):
            return NotImplemented
        return self._mode is other._mode

    def __hash__(self) -> int:
        return hash(self._mode)

    def __repr__(self) -> str:
        return f"QueryConsolidation({self._mode})"


QueryConsolidation.AUTO = QueryConsolidation(ConsolidationMode.AUTO)
QueryConsolidation.DEFAULT = QueryConsolidation(ConsolidationMode.DEFAULT)


class ReplyError:
    """A queryable could not answer."""

    __slots__ = ("_body", "_stack")

    def __init__(self, body: Err, timestamp_stack: structs.TimestampStack | None = None) -> None:
        self._body = body
        self._stack = timestamp_stack

    @property
    def payload(self) -> ZBytes:
        """What the queryable said about the error, mostly text."""
        return ZBytes(self._body.payload)

    @property
    def encoding(self) -> Encoding:
        """Encoding of the error's payload."""
        return Encoding.from_wire(self._body.encoding)

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along the route of an instrumented reply, or None."""
        return None if self._stack is None else TimestampStack(self._stack)

    def __repr__(self) -> str:
        return f"ReplyError({self.payload!r}, encoding={str(self.encoding)!r})"


class Reply:
    """An answer to a query: a sample, or an error."""

    __slots__ = ("_replier", "result")

    def __init__(
        self,
        result: Sample | ReplyError,
        replier_id: EntityGlobalId | structs.ResponderId | None = None,
    ) -> None:
        self.result = result
        self._replier = replier_id

    @property
    def replier_id(self) -> EntityGlobalId | None:
        """Who has answered."""
        who = self._replier
        if isinstance(who, structs.ResponderId):
            who = self._replier = EntityGlobalId(ZenohId.from_wire(who.zid), who.eid)
        return who

    @property
    def ok(self) -> Sample | None:
        """The sample, or None if the reply is an error."""
        return self.result if isinstance(self.result, Sample) else None

    @property
    def err(self) -> ReplyError | None:
        """The error, or None if the reply is a sample."""
        return self.result if isinstance(self.result, ReplyError) else None

    def __repr__(self) -> str:
        return f"Reply({self.result!r}, replier_id={self.replier_id!r})"
