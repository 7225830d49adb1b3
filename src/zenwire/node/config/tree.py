"""The whole tree of settings, as zenoh names it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from typing import Any, Final, cast

from zenwire.keyexpr import KeyExpr
from zenwire.node.config.connection import Connect, Listen, Open, Scouting
from zenwire.node.config.interceptors import (
    AccessControl,
    Downsampling,
    LowPassFilter,
    Qos,
    Stats,
)
from zenwire.node.config.kinds import (
    ANYTHING,
    BOOL,
    TEXT,
    U64,
    Anything,
    Choice,
    Integer,
    ListOf,
    Nullable,
    Problems,
    Section,
    option,
    required,
    section,
    settings,
)
from zenwire.node.config.nodes import Json, Node
from zenwire.node.config.terms import (
    KEY_EXPR,
    MATCHER,
    MODE,
    MODE_BOOL,
    NAMESPACE,
    REGION_NAME,
    ZENOH_ID,
    ModeDependent,
)
from zenwire.node.config.transport import Transport
from zenwire.wire.values import WhatAmI, WhatAmIMatcher, ZenohId

__all__ = [
    "AdminSpace",
    "Aggregation",
    "Gateway",
    "GatewayFilter",
    "GatewayPreset",
    "GatewaySouth",
    "Interests",
    "Linkstate",
    "Permissions",
    "PluginsLoading",
    "RouterRouting",
    "Routing",
    "Settings",
    "Timestamping",
    "TransportWeight",
]

_TEXTS: Final = Nullable(ListOf(TEXT, not_empty=True))


@unique
class GatewayPreset(Enum):
    """Which nodes are south of a gateway, without naming them."""

    AUTO = "auto"


@settings
class GatewayFilter:
    """Nodes that have all of these properties, or not all if ``negated``."""

    modes: WhatAmIMatcher | None = option(Nullable(MATCHER), default=None)
    interfaces: tuple[str, ...] | None = option(_TEXTS, default=None)
    zids: tuple[ZenohId, ...] | None = option(
        Nullable(ListOf(ZENOH_ID, not_empty=True)), default=None
    )
    region_names: tuple[str, ...] | None = option(
        Nullable(ListOf(REGION_NAME, not_empty=True)), default=None
    )
    negated: bool = option(BOOL, default=False)


@settings
class GatewaySouth:
    """A region south of the gateway: nodes that any of the filters fits, or all without filters."""

    filters: tuple[GatewayFilter, ...] | None = option(
        Nullable(ListOf(Section(GatewayFilter))), default=None
    )


@dataclass(frozen=True, slots=True)
class _South:
    """A preset, or regions."""

    def read(
        self, node: Node, path: str, problems: Problems
    ) -> GatewayPreset | tuple[GatewaySouth, ...]:
        if node.items is None:
            return Choice(GatewayPreset).read(node, path, problems)
        return ListOf(Section(GatewaySouth)).read(node, path, problems)

    def plain(self, value: Any) -> Json:
        if isinstance(value, GatewayPreset):
            return value.value
        return ListOf(Section(GatewaySouth)).plain(value)


@settings
class Gateway:
    """Regions of the network that meet in this node."""

    south: GatewayPreset | tuple[GatewaySouth, ...] | None = option(
        Nullable(_South()), default=None
    )


@settings
class Timestamping:
    """Whether data gets a time when it passes this node."""

    enabled: ModeDependent[bool] | None = option(Nullable(MODE_BOOL), default=None)
    drop_future_timestamp: bool | None = option(Nullable(BOOL), default=None)


@settings
class TransportWeight:
    """What the way to a router costs."""

    dst_zid: ZenohId = required(ZENOH_ID)
    weight: int = required(Integer(1, 65_535))


@settings
class Linkstate:
    """The network of routers."""

    transport_weights: tuple[TransportWeight, ...] = option(
        ListOf(Section(TransportWeight)), default=()
    )


@settings
class RouterRouting:
    """Routing of a router. ``peers_failover_brokering`` is of older versions and does nothing."""

    peers_failover_brokering: bool | None = option(Nullable(BOOL), default=None, shown=False)
    linkstate: Linkstate = section(factory=Linkstate)


@settings
class Interests:
    """How long to wait for the answers to an interest, in milliseconds."""

    timeout: int | None = option(Nullable(U64), default=None)


@settings
class Routing:
    """Routing. ``peer`` is of older versions and does nothing."""

    router: RouterRouting = section(factory=RouterRouting)
    peer: Json = option(ANYTHING, default=None, shown=False)
    interests: Interests = section(factory=Interests)


@settings
class Aggregation:
    """Expressions that are declared in place of those they include."""

    subscribers: tuple[KeyExpr, ...] = option(ListOf(KEY_EXPR), default=())
    publishers: tuple[KeyExpr, ...] = option(ListOf(KEY_EXPR), default=())


@settings
class Permissions:
    """What may be done through the admin space."""

    read: bool = option(BOOL, default=True)
    write: bool = option(BOOL, default=False)


@settings
class AdminSpace:
    """The admin space of this node."""

    enabled: bool = option(BOOL, default=False)
    permissions: Permissions = section(factory=Permissions)


@dataclass(frozen=True, slots=True)
class _SearchDir:
    """A path, or ``{kind, value}``."""

    def read(self, node: Node, path: str, problems: Problems) -> Json:
        if node.entries is None:
            return TEXT.read(node, path, problems)
        found = cast("dict[str, Json]", Anything(objects_only=True).read(node, path, problems))
        if found.keys() - {"kind", "value"} or not isinstance(found.get("kind"), str):
            problems.refuse(path, node, "a directory is text, or an object of kind and value")
        return {"kind": found["kind"], "value": found.get("value")}

    def plain(self, value: Any) -> Json:
        return cast(Json, value)


_DIRS: Final[tuple[Json, ...]] = (
    {"kind": "current_exe_parent", "value": None},
    *(".", "~/.zenoh/lib", "/opt/homebrew/lib", "/usr/local/lib", "/usr/lib"),
)


@settings
class PluginsLoading:
    """Where plugins are looked for. This node cannot load any."""

    enabled: bool = option(BOOL, default=False)
    search_dirs: tuple[Json, ...] = option(ListOf(_SearchDir()), default=_DIRS)


@dataclass(frozen=True, slots=True)
class _Plugins:
    """An object for each plugin. What is called ``private`` in it is never shown."""

    def read(self, node: Node, path: str, problems: Problems) -> dict[str, Json]:
        return cast("dict[str, Json]", Anything(objects_only=True).read(node, path, problems))

    def plain(self, value: Any) -> Json:
        return _without_private(value)


def _without_private(value: Json) -> Json:
    if isinstance(value, dict):
        return {k: _without_private(v) for k, v in value.items() if k != "private"}
    return [_without_private(item) for item in value] if isinstance(value, list) else value


@settings
class Settings:
    """Everything that can be set, as it was set: None where nothing was.

    What holds then, in the mode of the node, is in `zenwire.node.config.effective`.
    """

    id: ZenohId | None = option(Nullable(ZENOH_ID), default=None)
    metadata: Json = option(ANYTHING, default=None)
    mode: WhatAmI | None = option(Nullable(MODE), default=None)
    region_name: str | None = option(Nullable(REGION_NAME), default=None)
    gateway: Gateway = section(factory=Gateway, addressed=False)
    connect: Connect = section(factory=Connect)
    listen: Listen = section(factory=Listen)
    open: Open = section(factory=Open)
    scouting: Scouting = section(factory=Scouting)
    timestamping: Timestamping = section(factory=Timestamping)
    queries_default_timeout: int | None = option(Nullable(U64), default=None)
    routing: Routing = section(factory=Routing)
    aggregation: Aggregation = section(factory=Aggregation)
    qos: Qos = section(factory=Qos)
    transport: Transport = section(factory=Transport)
    adminspace: AdminSpace = section(factory=AdminSpace)
    namespace: KeyExpr | None = option(Nullable(NAMESPACE), default=None)
    downsampling: tuple[Downsampling, ...] = option(ListOf(Section(Downsampling)), default=())
    access_control: AccessControl = section(factory=AccessControl)
    low_pass_filter: tuple[LowPassFilter, ...] = option(ListOf(Section(LowPassFilter)), default=())
    stats: Stats = section(factory=Stats)
    plugins_loading: PluginsLoading = section(factory=PluginsLoading)
    plugins: dict[str, Json] = option(_Plugins(), default={})
