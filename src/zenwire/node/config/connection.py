"""Settings of finding other nodes and staying connected: connect, listen, open, scouting."""

from __future__ import annotations

from enum import Enum, unique
from typing import Final

from zenwire.node.config.kinds import (
    BOOL,
    TEXT,
    U32,
    U64,
    Choice,
    ListOf,
    Nullable,
    Section,
    option,
    section,
    settings,
)
from zenwire.node.config.terms import (
    CONNECT_TO,
    ENDPOINT,
    MATCHER,
    MODE_BOOL,
    MODE_FLOAT,
    MODE_I64,
    SOCKET_ADDRESS,
    ByMode,
    EndPoints,
    ModeDependent,
    SocketAddress,
)
from zenwire.wire.locator import EndPoint
from zenwire.wire.values import WhatAmIMatcher

__all__ = [
    "AutoConnectStrategy",
    "Connect",
    "Gossip",
    "Listen",
    "Multicast",
    "Open",
    "Retry",
    "ReturnConditions",
    "Scouting",
]


@unique
class AutoConnectStrategy(Enum):
    """Who connects when two nodes find each other."""

    ALWAYS = "always"
    GREATER_ZID = "greater-zid"


_STRATEGY: Final = Nullable(ByMode(ByMode(Choice(AutoConnectStrategy), prefix="to_")))
_MATCHERS: Final = Nullable(ByMode(MATCHER))


@settings
class Retry:
    """How long to wait between attempts. None: the default."""

    period_init_ms: ModeDependent[int] | None = option(Nullable(MODE_I64), default=None)
    period_max_ms: ModeDependent[int] | None = option(Nullable(MODE_I64), default=None)
    period_increase_factor: ModeDependent[float] | None = option(Nullable(MODE_FLOAT), default=None)


@settings
class Connect:
    """Nodes to connect to."""

    timeout_ms: ModeDependent[int] | None = option(Nullable(MODE_I64), default=None)
    endpoints: ModeDependent[tuple[EndPoints, ...]] = option(
        ByMode(ListOf(CONNECT_TO)), default=ModeDependent.of(())
    )
    exit_on_failure: ModeDependent[bool] | None = option(Nullable(MODE_BOOL), default=None)
    retry: Retry | None = option(Nullable(Section(Retry)), default=None)


@settings
class Listen:
    """Where to listen."""

    timeout_ms: ModeDependent[int] | None = option(Nullable(MODE_I64), default=None)
    endpoints: ModeDependent[tuple[EndPoint, ...]] = option(
        ByMode(ListOf(ENDPOINT)),
        default=ModeDependent(
            router=(EndPoint("tcp", "[::]:7447"),),
            peer=(EndPoint("tcp", "[::]:0"),),
        ),
    )
    exit_on_failure: ModeDependent[bool] | None = option(Nullable(MODE_BOOL), default=None)
    retry: Retry | None = option(Nullable(Section(Retry)), default=None)


@settings
class ReturnConditions:
    """What opening a session waits for."""

    connect_scouted: bool | None = option(Nullable(BOOL), default=None)
    declares: bool | None = option(Nullable(BOOL), default=None)


@settings
class Open:
    """Opening a session."""

    return_conditions: ReturnConditions = section(factory=ReturnConditions)


@settings
class Multicast:
    """Finding others by multicast."""

    enabled: bool | None = option(Nullable(BOOL), default=None)
    address: SocketAddress | None = option(Nullable(SOCKET_ADDRESS), default=None)
    interface: str | None = option(Nullable(TEXT), default=None)
    ttl: int | None = option(Nullable(U32), default=None)
    autoconnect: ModeDependent[WhatAmIMatcher] | None = option(_MATCHERS, default=None)
    autoconnect_strategy: ModeDependent[ModeDependent[AutoConnectStrategy]] | None = option(
        _STRATEGY, default=None
    )
    listen: ModeDependent[bool] | None = option(Nullable(MODE_BOOL), default=None)


@settings
class Gossip:
    """Finding others by what those already known tell."""

    enabled: bool | None = option(Nullable(BOOL), default=None)
    multihop: bool | None = option(Nullable(BOOL), default=None)
    target: ModeDependent[WhatAmIMatcher] | None = option(_MATCHERS, default=None)
    autoconnect: ModeDependent[WhatAmIMatcher] | None = option(_MATCHERS, default=None)
    autoconnect_strategy: ModeDependent[ModeDependent[AutoConnectStrategy]] | None = option(
        _STRATEGY, default=None
    )


@settings
class Scouting:
    """Finding others. ``timeout`` and ``delay`` are in milliseconds."""

    timeout: int | None = option(Nullable(U64), default=None)
    delay: int | None = option(Nullable(U64), default=None)
    multicast: Multicast = section(factory=Multicast)
    gossip: Gossip = section(factory=Gossip)
