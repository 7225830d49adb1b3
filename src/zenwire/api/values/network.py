"""Other nodes and the ways to them."""

from __future__ import annotations

from dataclasses import dataclass

from zenwire.api.values.enums import Reliability, SampleKind, WhatAmI
from zenwire.api.values.ids import ZenohId

__all__ = ["Hello", "Link", "LinkEvent", "MatchingStatus", "Transport", "TransportEvent"]


@dataclass(frozen=True, slots=True, repr=False)
class Hello:
    """A node that was found, and where it listens."""

    whatami: WhatAmI
    zid: ZenohId
    locators: list[str]

    def __hash__(self) -> int:
        return hash((self.whatami, self.zid, *self.locators))

    def __str__(self) -> str:
        locators = ", ".join(self.locators)
        return f"Hello {{ zid: {self.zid}, whatami: {self.whatami!r}, locators: [{locators}] }}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class MatchingStatus:
    """Whether anyone listens to a publisher, or can answer a querier."""

    matching: bool

    def __repr__(self) -> str:
        return f"MatchingStatus {{ matching: {str(self.matching).lower()} }}"


@dataclass(frozen=True, slots=True, repr=False)
class Transport:
    """A session with another node. There is no shared memory: ``is_shm`` is False."""

    zid: ZenohId
    whatami: WhatAmI
    is_qos: bool
    is_multicast: bool
    is_shm: bool = False

    def __repr__(self) -> str:
        qos, multicast, shm = map(_boolean, (self.is_qos, self.is_multicast, self.is_shm))
        return (
            f"Transport {{ zid: {self.zid}, whatami: {self.whatami!r}, is_qos: {qos}, "
            f"is_multicast: {multicast}, is_shm: {shm} }}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Link:
    """A link of a transport. ``src`` and ``dst`` are locators, seen from this node."""

    zid: ZenohId
    src: str
    dst: str
    group: str | None = None
    mtu: int = 65_535
    is_streamed: bool = True
    interfaces: tuple[str, ...] = ()
    auth_identifier: str | None = None
    priorities: tuple[int, int] | None = None
    reliability: Reliability | None = None

    def __repr__(self) -> str:
        interfaces = ", ".join(f'"{name}"' for name in self.interfaces)
        reliability = self.reliability and self.reliability.name.title().replace("_", "")
        auth = self.auth_identifier and f'"{self.auth_identifier}"'
        return (
            f"Link {{ zid: {self.zid}, src: {self.src}, dst: {self.dst}, "
            f"group: {_option(self.group)}, mtu: {self.mtu}, "
            f"is_streamed: {_boolean(self.is_streamed)}, interfaces: [{interfaces}], "
            f"auth_identifier: {_option(auth)}, priorities: {_option(self.priorities)}, "
            f"reliability: {_option(reliability)} }}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class TransportEvent:
    """A transport came (PUT) or went (DELETE)."""

    kind: SampleKind
    transport: Transport

    def __repr__(self) -> str:
        kind = self.kind.name.capitalize()
        return f"TransportEvent {{ kind: {kind}, transport: {self.transport!r} }}"


@dataclass(frozen=True, slots=True, repr=False)
class LinkEvent:
    """A link came (PUT) or went (DELETE)."""

    kind: SampleKind
    link: Link

    def __repr__(self) -> str:
        return f"LinkEvent {{ kind: {self.kind.name.capitalize()}, link: {self.link!r} }}"


def _boolean(value: bool) -> str:
    return str(value).lower()


def _option(value: object) -> str:
    return "None" if value is None else f"Some({value})"
