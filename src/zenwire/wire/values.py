"""The values that messages carry, as Python sees them. Nothing here knows bytes on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag, unique
from functools import cache

from zenwire.errors import EncodeError
from zenwire.wire.limits import KEY_SUFFIX_MAX, ZID_MAX

__all__ = [
    "CloseReason",
    "CongestionControl",
    "ConsolidationMode",
    "InterestMode",
    "Mapping",
    "Priority",
    "QoS",
    "QoSLink",
    "QueryTarget",
    "QueryableInfo",
    "Resolution",
    "UnknownExt",
    "WhatAmI",
    "WhatAmIMatcher",
    "WireExpr",
    "ZenohId",
]


@dataclass(frozen=True, slots=True)
class ZenohId:
    """1 to 16 bytes: an unsigned 128-bit integer, little endian, without its zero high bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        raw = self.raw.rstrip(b"\0")
        if not 0 < len(raw) <= ZID_MAX:
            raise EncodeError(f"a ZenohID has 1 to {ZID_MAX} bytes and is not zero: {self.raw!r}")
        if len(raw) != len(self.raw):
            object.__setattr__(self, "raw", raw)

    @classmethod
    def parse(cls, text: str) -> ZenohId:
        """From lowercase hexadecimal without leading zeros, as the reference prints it."""
        digits = set(text)
        if not text or not digits <= set("0123456789abcdef") or text[0] == "0":
            raise EncodeError(f"a ZenohID is lowercase hexadecimal without leading zeros: {text!r}")
        value = int(text, 16)
        return cls(value.to_bytes((value.bit_length() + 7) // 8, "little"))

    def __int__(self) -> int:
        return int.from_bytes(self.raw, "little")

    def __str__(self) -> str:
        return f"{int(self):x}"


@unique
class WhatAmI(IntEnum):
    """What a node is.

    The numbers are those of SCOUT and link state; INIT, HELLO and JOIN carry the index 0, 1 or 2
    in the order below.
    """

    ROUTER = 1
    PEER = 2
    CLIENT = 4


class WhatAmIMatcher(IntFlag):
    """Which nodes a SCOUT looks for."""

    NONE = 0
    ROUTER = WhatAmI.ROUTER
    PEER = WhatAmI.PEER
    CLIENT = WhatAmI.CLIENT


@unique
class Mapping(IntEnum):
    """Whose table of expression ids a WireExpr's scope refers to (the M flag)."""

    RECEIVER = 0
    SENDER = 1


@dataclass(frozen=True, slots=True)
class WireExpr:
    """A key expression as it travels: the text declared for ``scope``, then ``suffix``.

    Scope 0 stands for the empty text, and its mapping means nothing: the reference writes SENDER.
    The two parts are joined verbatim, no slash comes between them.
    """

    scope: int = 0
    suffix: str = ""
    mapping: Mapping = Mapping.SENDER

    def __post_init__(self) -> None:
        if not 0 <= self.scope <= 0xFFFF:
            raise EncodeError(f"a scope has 16 bits: {self.scope}")
        if len(self.suffix) > KEY_SUFFIX_MAX:
            raise EncodeError(f"a key suffix has at most {KEY_SUFFIX_MAX} bytes")

    def __str__(self) -> str:
        if not self.scope:
            return self.suffix
        return f"{self.mapping.name.lower()}:{self.scope}{self.suffix}"


@unique
class Priority(IntEnum):
    """Eight lanes; lower goes first. CONTROL is the protocol's own."""

    CONTROL = 0
    REAL_TIME = 1
    INTERACTIVE_HIGH = 2
    INTERACTIVE_LOW = 3
    DATA_HIGH = 4
    DATA = 5
    DATA_LOW = 6
    BACKGROUND = 7


@unique
class CongestionControl(IntEnum):
    """What a sender does when the network is full."""

    DROP = 0
    BLOCK = 1
    BLOCK_FIRST = 2


@dataclass(frozen=True, slots=True)
class QoS:
    """The QoS byte of a network message: priority, D (block), E (express), F (block first)."""

    raw: int = 5

    @classmethod
    def of(
        cls,
        priority: Priority = Priority.DATA,
        congestion_control: CongestionControl = CongestionControl.DROP,
        express: bool = False,
    ) -> QoS:
        block = congestion_control is CongestionControl.BLOCK
        first = congestion_control is CongestionControl.BLOCK_FIRST
        return cls(priority | block << 3 | express << 4 | first << 5)

    @property
    def priority(self) -> Priority:
        return Priority(self.raw & 7)

    @property
    def congestion_control(self) -> CongestionControl:
        if self.raw & 0x08:
            return CongestionControl.BLOCK
        return CongestionControl.BLOCK_FIRST if self.raw & 0x20 else CongestionControl.DROP

    @property
    def express(self) -> bool:
        return bool(self.raw & 0x10)

    def __str__(self) -> str:
        express = " express" if self.express else ""
        return f"{self.priority.name} {self.congestion_control.name}{express}"


@dataclass(frozen=True, slots=True)
class QoSLink:
    """The QoSLink extension of INIT: what one link of a session carries."""

    qos: bool = True
    priorities: tuple[Priority, Priority] | None = None
    reliable: bool | None = None

    def __int__(self) -> int:
        value = int(self.qos)
        if self.priorities is not None:
            value |= 2 | self.priorities[0] << 3 | self.priorities[1] << 11
        if self.reliable is not None:
            value |= 4 | self.reliable << 19
        return value

    @classmethod
    def parse(cls, value: int) -> QoSLink:
        """Raises ValueError for a priority that does not exist."""
        start, end = value >> 3 & 0xFF, value >> 11 & 0xFF
        return cls(
            bool(value & 1),
            (Priority(start), Priority(end)) if value & 2 else None,
            bool(value >> 19 & 1) if value & 4 else None,
        )


@dataclass(frozen=True, slots=True)
class Resolution:
    """How many bits sequence numbers and request ids have. Default: 32 and 32."""

    raw: int = 0x0A

    @classmethod
    @cache
    def of(cls, frame_sn: int = 32, request_id: int = 32) -> Resolution:
        """From bits: 8, 16, 32 or 64."""
        index = {8: 0, 16: 1, 32: 2, 64: 3}
        try:
            return cls(index[frame_sn] | index[request_id] << 2)
        except KeyError as e:
            raise EncodeError(f"a resolution has 8, 16, 32 or 64 bits, not {e.args[0]}") from None

    @property
    def frame_sn(self) -> int:
        return 8 << (self.raw & 3)

    @property
    def request_id(self) -> int:
        return 8 << (self.raw >> 2 & 3)

    @property
    def sn_modulus(self) -> int:
        """Sequence numbers count modulo this: as many bits as that many VLE bytes carry."""
        return (1 << 7, 1 << 14, 1 << 28, 1 << 32)[self.raw & 3]


@unique
class QueryTarget(IntEnum):
    """Which queryables a query goes to."""

    BEST_MATCHING = 0
    ALL = 1
    ALL_COMPLETE = 2


@unique
class ConsolidationMode(IntEnum):
    """What the querier does with several replies on one key."""

    AUTO = 0
    NONE = 1
    MONOTONIC = 2
    LATEST = 3


@unique
class InterestMode(IntEnum):
    """Which declarations an INTEREST asks for; FINAL ends it."""

    FINAL = 0
    CURRENT = 1
    FUTURE = 2
    CURRENT_FUTURE = 3


@dataclass(frozen=True, slots=True)
class QueryableInfo:
    """How complete and how far a queryable is."""

    complete: bool = False
    distance: int = 0

    def __int__(self) -> int:
        return self.complete | self.distance << 8

    @classmethod
    def parse(cls, value: int) -> QueryableInfo:
        return cls(bool(value & 1), value >> 8 & 0xFFFF)


@unique
class CloseReason(IntEnum):
    """Why a link or session ends. A CLOSE may carry others: its field is a plain number."""

    GENERIC = 0
    UNSUPPORTED = 1
    INVALID = 2
    MAX_SESSIONS = 3
    MAX_LINKS = 4
    EXPIRED = 5
    UNRESPONSIVE = 6
    CONNECTION_TO_SELF = 7


@dataclass(frozen=True, slots=True)
class UnknownExt:
    """An optional extension that we do not know: its header without Z, and its body."""

    header: int
    body: int | bytes | None

    def __post_init__(self) -> None:
        body = {0x00: type(None), 0x20: int, 0x40: bytes}.get(self.header & 0x60)
        if body is None or type(self.body) is not body or self.header & ~0x6F:
            raise EncodeError(f"no optional extension has header {self.header:#04x} and this body")
