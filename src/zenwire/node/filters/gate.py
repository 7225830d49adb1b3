"""The filters of one session and direction, in a row: what does not pass is counted, and answered."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, unique
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from zenwire.keyexpr import is_canonical
from zenwire.node.config.interceptors import AclMessage, Flow
from zenwire.node.filters.messages import size, told
from zenwire.wire.declare import DeclareFinal
from zenwire.wire.network import Declare, Interest, Request, ResponseFinal
from zenwire.wire.values import CongestionControl, Mapping, Priority, QoS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from zenwire.node.filters.access import Access, Subject
    from zenwire.node.filters.downsampling import Rates
    from zenwire.node.filters.low_pass import Sizes
    from zenwire.node.filters.messages import Told
    from zenwire.node.filters.qos import Overwriting
    from zenwire.routing import Face
    from zenwire.wire.network import NetworkMessage
    from zenwire.wire.values import WireExpr

__all__ = ["AccessStep", "Cause", "Filtered", "Gate", "QosStep", "RateStep", "SizeStep", "Step"]

_KEYS: Final = 4_096
"""Keys, for each filter, of which is remembered what it says about them."""
_UNTOLD: Final = 16_384
"""Refused declarations whose ends are refused too. The end of something unknown does no harm, and
not every declaration has one: who loses interest is not told of it."""
_CONTROL: Final = QoS.of(Priority.CONTROL, CongestionControl.BLOCK)


@unique
class Cause(Enum):
    """What kept a message from passing: the names of the configuration."""

    DOWNSAMPLING = "downsampling"
    ACCESS_CONTROL = "access_control"
    LOW_PASS_FILTER = "low_pass_filter"  # noqa: S105 # no password


class Filtered(NamedTuple):
    """What is counted apart of messages that did not pass."""

    cause: Cause
    flow: Flow
    message: AclMessage

    def __str__(self) -> str:
        return f"{self.cause.value}/{self.flow.value}/{self.message.value}"


class Step(Protocol):
    """One filter. It gives a message back, perhaps another one; None if it may not pass.

    A key that cannot be read, or that an interest does without, is None.
    """

    @property
    def cause(self) -> Cause | None: ...

    def __call__(
        self, message: NetworkMessage, what: Told, key: str | None, reliable: bool, now: float
    ) -> NetworkMessage | None: ...


class RateStep:
    """Downsampling."""

    cause = Cause.DOWNSAMPLING

    def __init__(self, rates: Rates) -> None:
        self._kinds = rates.kinds
        self._rate = lru_cache(_KEYS)(rates.rate)

    def __call__(
        self, message: NetworkMessage, what: Told, key: str | None, reliable: bool, now: float
    ) -> NetworkMessage | None:
        if what.kind not in self._kinds or key is None:
            return message
        rate = self._rate(key)
        return message if rate is None or rate.passes(now) else None


class AccessStep:
    """Access control."""

    cause = Cause.ACCESS_CONTROL

    def __init__(self, access: Access, subjects: tuple[Subject, ...], flow: Flow) -> None:
        def allows(kind: AclMessage, key: str) -> bool:
            return access.allows(subjects, flow, kind, key)

        self._allows = lru_cache(_KEYS)(allows)

    def __call__(
        self, message: NetworkMessage, what: Told, key: str | None, reliable: bool, now: float
    ) -> NetworkMessage | None:
        if key is None:
            # An end is known by its id; of something that was refused, routing knows nothing.
            return None if what.ends is None else message
        return message if self._allows(what.kind, key) else None


class QosStep:
    """QoS overwrite: everything passes."""

    cause = None

    def __init__(self, overwriting: Overwriting) -> None:
        self._overwriting = overwriting
        self._about = lru_cache(_KEYS)(overwriting.about)

    def __call__(
        self, message: NetworkMessage, what: Told, key: str | None, reliable: bool, now: float
    ) -> NetworkMessage | None:
        overwriting = self._overwriting
        if what.kind not in overwriting.kinds or not self._about(key):
            return message
        if not overwriting.means(message, reliable):
            return message
        return replace(message, qos=overwriting.qos(message.qos))


class SizeStep:
    """The low-pass filter."""

    cause = Cause.LOW_PASS_FILTER

    def __init__(self, sizes: Sizes) -> None:
        self._kinds = sizes.kinds
        self._limit = lru_cache(_KEYS)(sizes.limit)

    def __call__(
        self, message: NetworkMessage, what: Told, key: str | None, reliable: bool, now: float
    ) -> NetworkMessage | None:
        if what.kind not in self._kinds:
            return message
        limit = 0 if key is None else self._limit(what.kind, key)
        return message if limit is None or size(message) <= limit else None


class Gate:
    """What one session says, or is told, goes through here.

    ``answer`` takes the final of what was refused and waits for one: it is for the other side, or
    stands for what that would have said. ``filtered`` is where refusals are counted.
    """

    __slots__ = (
        "_aliases",
        "_answer",
        "_canonical",
        "_flow",
        "_key_length",
        "_steps",
        "_untold",
        "filtered",
    )

    def __init__(
        self,
        flow: Flow,
        steps: Sequence[Step],
        face: Face,
        *,
        answer: Callable[[NetworkMessage], None],
        filtered: Counter[Filtered],
        key_length: int,
    ) -> None:
        self._flow = flow
        self._steps = tuple(steps)
        self._aliases = face.aliases
        self._answer = answer
        self._key_length = key_length
        self._canonical = lru_cache(_KEYS)(is_canonical)
        self._untold: dict[int, None] = {}
        """Declarations and interests of ours that the other side was not told of, oldest first."""
        self.filtered = filtered

    def __call__(
        self, message: NetworkMessage, reliable: bool, now: float
    ) -> NetworkMessage | None:
        """The message as it may go on, or None. Takes messages in the order in which they go."""
        what = told(message)
        if what is None:
            return message
        if what.ends is not None and what.ends in self._untold:
            del self._untold[what.ends]
            self.filtered[Filtered(Cause.ACCESS_CONTROL, self._flow, what.kind)] += 1
            return None
        key = None if what.key is None else self._key(what.key)
        passed: NetworkMessage | None = message
        for step in self._steps:
            passed = step(message, what, key, reliable, now)
            if passed is None:
                self._refuse(step.cause, message, what)
                return None
            message = passed
        return message

    def _key(self, expr: WireExpr) -> str | None:
        scope, key = expr.scope, expr.suffix
        if scope:
            aliases = self._aliases
            own = (expr.mapping is Mapping.SENDER) is (self._flow is Flow.EGRESS)
            prefix = (aliases.ours if own else aliases.theirs).get(scope)
            if prefix is None:
                return None
            key = prefix + key
        return key if len(key) <= self._key_length and self._canonical(key) else None

    def _refuse(self, cause: Cause | None, message: NetworkMessage, what: Told) -> None:
        if cause is not None:
            self.filtered[Filtered(cause, self._flow, what.kind)] += 1
        if self._flow is Flow.EGRESS and what.id:
            if len(self._untold) >= _UNTOLD:
                del self._untold[next(iter(self._untold))]
            self._untold[what.id] = None
        if isinstance(message, Request):
            self._answer(ResponseFinal(request_id=message.request_id, qos=message.qos))
        elif isinstance(message, Interest):
            final = DeclareFinal()
            self._answer(Declare(interest_id=message.id, qos=_CONTROL, body=final))
