"""Choices of the API. Their numbers are the protocol's, where it has any."""

from __future__ import annotations

from enum import Enum, nonmember
from typing import ClassVar

from zenwire.errors import EncodeError
from zenwire.wire import values as wire

__all__ = [
    "Choice",
    "CongestionControl",
    "ConsolidationMode",
    "Locality",
    "Priority",
    "QueryTarget",
    "Reliability",
    "ReplyKeyExpr",
    "SampleKind",
    "WhatAmI",
    "WhatAmIMatcher",
]


class Choice(Enum):
    """A member is shown as ``Class.NAME``, has a number, and is equal to itself alone."""

    def __int__(self) -> int:
        return int(self.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__


class Priority(Choice):
    """Which lane a message takes; lower numbers go first."""

    REAL_TIME = wire.Priority.REAL_TIME
    INTERACTIVE_HIGH = wire.Priority.INTERACTIVE_HIGH
    INTERACTIVE_LOW = wire.Priority.INTERACTIVE_LOW
    DATA_HIGH = wire.Priority.DATA_HIGH
    DATA = wire.Priority.DATA
    DATA_LOW = wire.Priority.DATA_LOW
    BACKGROUND = wire.Priority.BACKGROUND
    DEFAULT = DATA
    MIN = BACKGROUND
    MAX = REAL_TIME
    NUM = nonmember(7)


class CongestionControl(Choice):
    """What a sender does when the network is full."""

    DROP = wire.CongestionControl.DROP
    BLOCK = wire.CongestionControl.BLOCK
    BLOCK_FIRST = wire.CongestionControl.BLOCK_FIRST
    DEFAULT = DROP


class Reliability(Choice):
    """Whether messages that are lost are sent again."""

    BEST_EFFORT = 0
    RELIABLE = 1
    DEFAULT = BEST_EFFORT


class Locality(Choice):
    """Where a publication or query goes, or comes from."""

    SESSION_LOCAL = 0
    REMOTE = 1
    ANY = 2
    DEFAULT = ANY


class SampleKind(Choice):
    """Whether a sample is a value, or the end of one."""

    PUT = 0
    DELETE = 1


class QueryTarget(Choice):
    """Which queryables a query goes to."""

    BEST_MATCHING = wire.QueryTarget.BEST_MATCHING
    ALL = wire.QueryTarget.ALL
    ALL_COMPLETE = wire.QueryTarget.ALL_COMPLETE
    DEFAULT = BEST_MATCHING


class ConsolidationMode(Choice):
    """What happens to several replies on one key."""

    AUTO = wire.ConsolidationMode.AUTO
    NONE = wire.ConsolidationMode.NONE
    MONOTONIC = wire.ConsolidationMode.MONOTONIC
    LATEST = wire.ConsolidationMode.LATEST
    DEFAULT = AUTO


class ReplyKeyExpr(Choice):
    """Which keys replies may have."""

    ANY = 0
    MATCHING_QUERY = 1
    DEFAULT = MATCHING_QUERY


class WhatAmI(Choice):
    """What a node is. ``WhatAmI("peer")`` reads its text; ``|`` makes a WhatAmIMatcher."""

    ROUTER = wire.WhatAmI.ROUTER
    PEER = wire.WhatAmI.PEER
    CLIENT = wire.WhatAmI.CLIENT

    @classmethod
    def _missing_(cls, value: object) -> WhatAmI | None:
        for member in cls:
            if str(member) == value:
                return member
        if isinstance(value, str):
            raise EncodeError(f"{value!r} is not a mode; one of router, peer, client")
        return None

    def __or__(self, other: WhatAmI | str) -> WhatAmIMatcher:
        if not isinstance(other, WhatAmI | str):
            return NotImplemented
        return WhatAmIMatcher(f"{self}|{WhatAmI(other)}")

    def __repr__(self) -> str:
        return self.name.capitalize()

    def __str__(self) -> str:
        return self.name.lower()


class WhatAmIMatcher:
    """Some of the modes, as in ``peer|router``; none without an argument. Immutable."""

    __slots__ = ("_bits",)

    _ALL: ClassVar = (WhatAmI.ROUTER, WhatAmI.PEER, WhatAmI.CLIENT)

    def __init__(self, matcher: str | None = None) -> None:
        if matcher is not None and not isinstance(matcher, str):
            raise TypeError(f"matcher is a str, not {type(matcher).__name__}")
        bits = 0
        for word in (matcher or "").split("|"):
            if word.strip():
                try:
                    bits |= int(WhatAmI(word.strip()))
                except EncodeError:
                    raise EncodeError(
                        f"{matcher!r} does not name modes; write it as in 'router|peer|client'"
                    ) from None
        self._bits = bits

    @classmethod
    def empty(cls) -> WhatAmIMatcher:
        """None of them."""
        return cls()

    @classmethod
    def of(cls, matcher: WhatAmIMatcher | WhatAmI | str) -> WhatAmIMatcher:
        """The matcher that an argument stands for."""
        if isinstance(matcher, WhatAmIMatcher):
            return matcher
        return cls(str(matcher) if isinstance(matcher, WhatAmI) else matcher)

    @property
    def wire(self) -> wire.WhatAmIMatcher:
        """As it travels in SCOUT."""
        return wire.WhatAmIMatcher(self._bits)

    def _with(self, mode: WhatAmI) -> WhatAmIMatcher:
        return WhatAmIMatcher(f"{self}|{mode}")

    def router(self) -> WhatAmIMatcher:
        """With routers."""
        return self._with(WhatAmI.ROUTER)

    def peer(self) -> WhatAmIMatcher:
        """With peers."""
        return self._with(WhatAmI.PEER)

    def client(self) -> WhatAmIMatcher:
        """With clients."""
        return self._with(WhatAmI.CLIENT)

    def is_empty(self) -> bool:
        """Return True if it matches no kind of node."""
        return not self._bits

    def matches(self, whatami: WhatAmI | str) -> bool:
        """Whether a mode is among them."""
        return bool(self._bits & int(WhatAmI(whatami)))

    __contains__ = matches

    def __or__(self, other: WhatAmI | WhatAmIMatcher | str) -> WhatAmIMatcher:
        if not isinstance(other, WhatAmI | WhatAmIMatcher | str):
            return NotImplemented
        return WhatAmIMatcher(f"{self}|{other}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WhatAmIMatcher):
            return NotImplemented
        return self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    def __str__(self) -> str:
        return "|".join(str(mode) for mode in self._ALL if self._bits & int(mode))

    def __repr__(self) -> str:
        # The reference keeps a bit that is always set.
        return f"WhatAmIMatcher({self._bits | 0x80})"
