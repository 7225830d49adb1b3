"""Kinds of settings that speak of the protocol: ids, keys, endpoints, addresses, modes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, unique
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, Final, Generic, TypeVar, cast

from zenwire.errors import EncodeError, KeyExprError
from zenwire.keyexpr import KeyExpr
from zenwire.links import EndpointError, check_protocol
from zenwire.node.config.kinds import (
    BOOL,
    FLOAT,
    I64,
    TEXT,
    U64,
    Choice,
    Integer,
    Kind,
    ListOf,
    Problems,
    Refused,
    nearest,
    number_of,
    sub,
)
from zenwire.node.config.nodes import Json, Node
from zenwire.wire.limits import REGION_NAME_MAX
from zenwire.wire.locator import EndPoint, pairs
from zenwire.wire.values import WhatAmI, WhatAmIMatcher, ZenohId

__all__ = [
    "CONNECT_TO",
    "ENDPOINT",
    "KEY_EXPR",
    "MATCHER",
    "MODE",
    "MODE_BOOL",
    "MODE_FLOAT",
    "MODE_I64",
    "NAMESPACE",
    "PAYLOAD_RANGE",
    "PRIORITY_UPDATE",
    "PROTOCOL",
    "REGION_NAME",
    "SOCKET_ADDRESS",
    "ZENOH_ID",
    "ByMode",
    "EndPoints",
    "ModeDependent",
    "PayloadRange",
    "Priority",
    "SocketAddress",
    "Strategy",
]

T = TypeVar("T")


@unique
class Priority(Enum):
    """Priorities that an application may use, by the names of the configuration."""

    REAL_TIME = "real_time"
    INTERACTIVE_HIGH = "interactive_high"
    INTERACTIVE_LOW = "interactive_low"
    DATA_HIGH = "data_high"
    DATA = "data"
    DATA_LOW = "data_low"
    BACKGROUND = "background"


@unique
class Strategy(Enum):
    """Whether a node reaches all of several endpoints, or one."""

    ALL_OF = "allOf"
    ONE_OF = "oneOf"


@dataclass(frozen=True, slots=True)
class ModeDependent(Generic[T]):
    """A value for each mode. ``uniform``: it was written once, for all of them."""

    router: T | None = None
    peer: T | None = None
    client: T | None = None
    uniform: bool = False

    @classmethod
    def of(cls, value: T) -> ModeDependent[T]:
        """The same for all modes."""
        return ModeDependent(value, value, value, uniform=True)

    def get(self, mode: WhatAmI) -> T | None:
        """The value for a mode, if there is one."""
        if mode is WhatAmI.ROUTER:
            return self.router
        return self.peer if mode is WhatAmI.PEER else self.client


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """An IP address and a port. The scope of an IPv6 address is part of its host."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class EndPoints:
    """Where to connect: one endpoint, or several with a strategy.

    ``strategy`` is None for one endpoint that was written alone.
    """

    locators: tuple[EndPoint, ...]
    strategy: Strategy | None = None


@dataclass(frozen=True, slots=True)
class PayloadRange:
    """Sizes of payloads, both ends included. None leaves an end open."""

    start: int | None = None
    end: int | None = None

    def __contains__(self, size: int) -> bool:
        return (self.start or 0) <= size and (self.end is None or size <= self.end)


@dataclass(frozen=True, slots=True)
class _Id:
    def read(self, node: Node, path: str, problems: Problems) -> ZenohId:
        text = TEXT.read(node, path, problems)
        try:
            return ZenohId.parse(text)
        except EncodeError as e:
            problems.refuse(path, node, str(e))

    def plain(self, value: Any) -> Json:
        return str(value)


@dataclass(frozen=True, slots=True)
class _Key:
    wild: bool = True

    def read(self, node: Node, path: str, problems: Problems) -> KeyExpr:
        text = TEXT.read(node, path, problems)
        try:
            key = KeyExpr(text)
        except KeyExprError as e:
            problems.refuse(path, node, str(e))
        if key.is_wild and not self.wild:
            problems.refuse(path, node, f"{text!r} has a wildcard", "a namespace is one key")
        return key

    def plain(self, value: Any) -> Json:
        return str(value)


@dataclass(frozen=True, slots=True)
class _RegionName:
    def read(self, node: Node, path: str, problems: Problems) -> str:
        text = TEXT.read(node, path, problems)
        if not 0 < len(text.encode(errors="replace")) <= REGION_NAME_MAX:
            problems.refuse(path, node, f"a region name has 1 to {REGION_NAME_MAX} bytes")
        return text

    def plain(self, value: Any) -> Json:
        return cast(str, value)


@dataclass(frozen=True, slots=True)
class _Mode:
    def read(self, node: Node, path: str, problems: Problems) -> WhatAmI:
        text = TEXT.read(node, path, problems)
        if text not in _MODES:
            problems.refuse(path, node, f"{text!r} is not a mode", nearest(text, _MODES))
        return _MODES[text]

    def plain(self, value: Any) -> Json:
        return cast(str, value.name.lower())


_MODES: Final = {mode.name.lower(): mode for mode in WhatAmI}


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Modes in an array, in any order."""

    def read(self, node: Node, path: str, problems: Problems) -> WhatAmIMatcher:
        matcher = WhatAmIMatcher.NONE
        for mode in ListOf(_Mode()).read(node, path, problems):
            matcher |= WhatAmIMatcher(mode)
        return matcher

    def plain(self, value: Any) -> Json:
        return [name for name, mode in _MODES.items() if mode & value]


_ENDPOINT_FORM: Final = re.compile(r"[^/?#]+/[^?#]+(?:\?[^#]+(?:#.+)?|#[^?]+)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _EndPoint:
    """``protocol/address[?metadata][#config]``; the parameters are kept in the order of names."""

    def read(self, node: Node, path: str, problems: Problems) -> EndPoint:
        text = TEXT.read(node, path, problems)
        hint = "write it as tcp/192.168.0.1:7447"
        if _ENDPOINT_FORM.fullmatch(text) is None:
            reason = f"{text!r} is not protocol/address[?metadata][#config]"
            problems.refuse(path, node, reason, hint)
        try:
            found = EndPoint.parse(text)
        except EncodeError as e:
            problems.refuse(path, node, str(e), hint)
        for part in (found.metadata, found.config):
            if part and (not pairs(part) or "" in pairs(part)):
                problems.refuse(path, node, f"{text!r} has a parameter without a name")
        _supported(found.protocol, node, path, problems)
        metadata, config = _ordered(found.metadata), _ordered(found.config)
        return EndPoint(found.protocol, found.address, metadata, config)

    def plain(self, value: Any) -> Json:
        return str(value)


@dataclass(frozen=True, slots=True)
class _Protocol:
    """A protocol for which this node has links."""

    def read(self, node: Node, path: str, problems: Problems) -> str:
        text = TEXT.read(node, path, problems)
        _supported(text, node, path, problems)
        return text

    def plain(self, value: Any) -> Json:
        return cast(str, value)


def _supported(protocol: str, node: Node, path: str, problems: Problems) -> None:
    try:
        check_protocol(protocol, path)
    except EndpointError as e:
        problems.refuse(path, node, e.reason, e.hint)


def _ordered(parameters: str) -> str:
    split = (pair.partition("=") for pair in parameters.split(";") if pair)
    found = sorted(((key, value) for key, _, value in split), key=lambda pair: pair[0])
    return ";".join(f"{key}={value}" if value else key for key, value in found)


@dataclass(frozen=True, slots=True)
class _EndPoints:
    """An endpoint, or ``{strategy, locators}``."""

    def read(self, node: Node, path: str, problems: Problems) -> EndPoints:
        if node.entries is None:
            return EndPoints((ENDPOINT.read(node, path, problems),))
        parts: dict[str, Node] = {}
        bad = False
        for entry in node.entries:
            if entry.key not in {"strategy", "locators"} or entry.key in parts:
                at = Node(line=entry.line, column=entry.column)
                hint = nearest(entry.key, ("strategy", "locators"))
                problems.add(sub(path, entry.key), at, "no such setting, or twice", hint)
                bad = True
            parts[entry.key] = entry.node
        for name in ("strategy", "locators"):
            if name not in parts:
                problems.refuse(path, node, f"{name!r} is missing")
        if bad:
            raise Refused
        strategy = Choice(Strategy).read(parts["strategy"], sub(path, "strategy"), problems)
        locators = ListOf(ENDPOINT).read(parts["locators"], sub(path, "locators"), problems)
        return EndPoints(locators, strategy)

    def plain(self, value: Any) -> Json:
        if value.strategy is None:
            return str(value.locators[0])
        return {"strategy": value.strategy.value, "locators": [str(e) for e in value.locators]}


@dataclass(frozen=True, slots=True)
class _SocketAddress:
    def read(self, node: Node, path: str, problems: Problems) -> SocketAddress:
        text = TEXT.read(node, path, problems)
        split = re.fullmatch(r"(?:\[([^\[\]]*)\]|([^:\[\]]*)):([0-9]{1,5})", text, re.ASCII)
        hint = "write it as 224.0.0.224:7446 or [ff02::224]:7446"
        if split is None or int(split[3]) > 0xFFFF:
            problems.refuse(path, node, f"{text!r} is not an IP address and a port", hint)
        try:
            host = IPv6Address(split[1]) if split[1] is not None else IPv4Address(split[2])
        except AddressValueError:
            problems.refuse(path, node, f"{text!r} is not an IP address and a port", hint)
        return SocketAddress(str(host), int(split[3]))

    def plain(self, value: Any) -> Json:
        return str(value)


@dataclass(frozen=True, slots=True)
class _PayloadRange:
    def read(self, node: Node, path: str, problems: Problems) -> PayloadRange:
        text = TEXT.read(node, path, problems)
        split = re.fullmatch(r"(\+?[0-9]{1,20})?\.\.(\+?[0-9]{1,20})?", text, re.ASCII)
        if split is None:
            hint = "write it as 0..1024, 1024.. or ..1024"
            problems.refuse(path, node, f"{text!r} is not a range of sizes", hint)
        ends = [None if end is None else int(end) for end in split.groups()]
        if any(end is not None and end > U64.high for end in ends):
            problems.refuse(path, node, f"a size has 64 bits: {text!r}")
        return PayloadRange(*ends)

    def plain(self, value: Any) -> Json:
        start = "" if value.start is None else value.start
        end = "" if value.end is None else value.end
        return f"{start}..{end}"


@dataclass(frozen=True, slots=True)
class _PriorityUpdate:
    """A priority, or how many steps to go down."""

    def read(self, node: Node, path: str, problems: Problems) -> Priority | int:
        if number_of(node) is not None:
            return Integer(-7, 7, exact=True).read(node, path, problems)
        return Choice(Priority).read(node, path, problems)

    def plain(self, value: Any) -> Json:
        return value if isinstance(value, int) else cast(str, value.value)


@dataclass(frozen=True, slots=True)
class ByMode(Generic[T]):
    """One value for all modes, or an object with a value for each (`ModeDependent`).

    Values that are objects themselves are told from it by their keys. ``alone`` reads the one
    value, where it has another form than in the object; ``prefix`` is what names start with.
    """

    kind: Kind[T]
    alone: Kind[T] | None = None
    prefix: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.prefix + name for name in _MODES)

    def read(self, node: Node, path: str, problems: Problems) -> ModeDependent[T]:
        if node.entries is None or self._is_value(node.entries):
            return ModeDependent.of((self.alone or self.kind).read(node, path, problems))
        values: dict[str, T] = {}
        seen: set[str] = set()
        bad = False
        for entry in node.entries:
            where = sub(path, entry.key)
            at = Node(line=entry.line, column=entry.column)
            if entry.key not in self.names or entry.key in seen:
                reason = "comes twice" if entry.key in seen else "no such mode"
                problems.add(where, at, reason, nearest(entry.key, self.names))
                bad = True
                continue
            seen.add(entry.key)
            if entry.node.kind == "null":
                continue
            try:
                name = entry.key.removeprefix(self.prefix)
                values[name] = self.kind.read(entry.node, where, problems)
            except Refused:
                bad = True
        if bad:
            raise Refused
        return ModeDependent(values.get("router"), values.get("peer"), values.get("client"))

    def _is_value(self, entries: Iterable[Any]) -> bool:
        kind: object = self.kind
        inner = kind.names if isinstance(kind, ByMode) else ()
        keys = [entry.key for entry in entries]
        return bool(keys) and all(key in inner for key in keys)

    def plain(self, value: Any) -> Json:
        if value.uniform:
            return self.kind.plain(value.peer)
        named = ((name, getattr(value, name)) for name in _MODES)
        return {self.prefix + name: self.kind.plain(v) for name, v in named if v is not None}


ZENOH_ID: Final = _Id()
KEY_EXPR: Final = _Key()
NAMESPACE: Final = _Key(wild=False)
REGION_NAME: Final = _RegionName()
MODE: Final = _Mode()
MATCHER: Final = _Matcher()
ENDPOINT: Final = _EndPoint()
PROTOCOL: Final = _Protocol()
CONNECT_TO: Final = _EndPoints()
SOCKET_ADDRESS: Final = _SocketAddress()
PAYLOAD_RANGE: Final = _PayloadRange()
PRIORITY_UPDATE: Final[Kind[Priority | int]] = _PriorityUpdate()
MODE_BOOL: Final = ByMode(BOOL)
MODE_FLOAT: Final = ByMode(FLOAT)
# As in the reference, which takes 1.0 for 1 in the object, but not alone.
MODE_I64: Final = ByMode(I64, alone=Integer(I64.low, I64.high, exact=True))
