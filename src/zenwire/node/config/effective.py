"""What holds: the settings in the mode of the node, with the defaults in place of what is not set.

This is also where a configuration that is correct, but that this node cannot follow, is refused;
what has no effect here is said in ``notices``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from zenwire.errors import ConfigError, ConfigProblem
from zenwire.node.config.connection import AutoConnectStrategy, Retry
from zenwire.node.config.notices import notices_of
from zenwire.node.config.terms import EndPoints, ModeDependent, SocketAddress
from zenwire.node.config.transport import ShmMode
from zenwire.node.config.tree import Settings
from zenwire.wire.locator import EndPoint, pairs
from zenwire.wire.values import WhatAmI, WhatAmIMatcher

__all__ = [
    "Effective",
    "EffectiveConnect",
    "EffectiveGossip",
    "EffectiveListen",
    "EffectiveMulticast",
    "EffectiveScouting",
    "RetryPolicy",
    "effective",
]

T = TypeVar("T")

_ALL: Final = WhatAmIMatcher.ROUTER | WhatAmIMatcher.PEER | WhatAmIMatcher.CLIENT
_ROUTER_PEER: Final = WhatAmIMatcher.ROUTER | WhatAmIMatcher.PEER
_AUTOCONNECT: Final = ModeDependent(WhatAmIMatcher.NONE, _ALL, _ALL)
_TARGET: Final = ModeDependent(_ROUTER_PEER, _ROUTER_PEER, WhatAmIMatcher.NONE)
_CONNECT_TIMEOUT: Final = ModeDependent(-1, -1, 0)
_CONNECT_EXIT: Final = ModeDependent(False, False, True)
_TIMESTAMPING: Final = ModeDependent(True, False, False)
_LISTEN_TIMEOUT: Final = ModeDependent.of(0)
_YES: Final = ModeDependent.of(True)
_ALWAYS: Final = ModeDependent.of(AutoConnectStrategy.ALWAYS)
_STRATEGY: Final = ModeDependent.of(_ALWAYS)
_RETRY: Final = Retry()
_MULTICAST_ADDRESS: Final = SocketAddress("224.0.0.224", 7446)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try again. Below 0 milliseconds: never; 0: at once."""

    exit_on_failure: bool
    period_init_ms: int = 1_000
    period_max_ms: int = 4_000
    period_increase_factor: float = 2.0

    def of_endpoint(self, endpoint: EndPoint) -> RetryPolicy:
        """With what the endpoint's own ``#...`` says; what cannot be read there does not count."""
        own = pairs(endpoint.config)
        known = {"true": True, "false": False}
        return RetryPolicy(
            known.get(own.get("exit_on_failure", ""), self.exit_on_failure),
            int(_number(own.get("retry_period_init_ms"), self.period_init_ms)),
            int(_number(own.get("retry_period_max_ms"), self.period_max_ms)),
            _number(own.get("retry_period_increase_factor"), self.period_increase_factor),
        )

    def delay_ms(self, attempt: int) -> float:
        """How long to wait after attempt 0, 1, 2…; infinite for never."""
        if self.period_init_ms < 0:
            return float("inf")
        delay = float(self.period_init_ms)
        # From there on every attempt waits the longest time, or the factor does not grow it.
        for _ in range(min(attempt, 64)):
            delay = float(int(delay * self.period_increase_factor))
            if 0 < self.period_max_ms < delay:
                delay = float(self.period_max_ms)
        return delay


_USUAL: Final = RetryPolicy(exit_on_failure=False)
_PERIOD_INIT: Final = ModeDependent.of(_USUAL.period_init_ms)
_PERIOD_MAX: Final = ModeDependent.of(_USUAL.period_max_ms)
_PERIOD_INCREASE: Final = ModeDependent.of(_USUAL.period_increase_factor)


def _number(text: str | None, default: float) -> float:
    try:
        return default if text is None else float(text)
    except ValueError:
        return default


@dataclass(frozen=True, slots=True)
class EffectiveConnect:
    """Where to connect. ``timeout_ms``: how long to try; -1 is forever, 0 once."""

    endpoints: tuple[EndPoints, ...]
    timeout_ms: int
    retry: RetryPolicy


@dataclass(frozen=True, slots=True)
class EffectiveListen:
    """Where to listen."""

    endpoints: tuple[EndPoint, ...]
    timeout_ms: int
    retry: RetryPolicy


@dataclass(frozen=True, slots=True)
class EffectiveMulticast:
    """Finding others by multicast. ``strategy`` is by the mode of the other node."""

    enabled: bool
    address: SocketAddress
    interface: str
    ttl: int
    autoconnect: WhatAmIMatcher
    strategy: ModeDependent[AutoConnectStrategy]
    listen: bool


@dataclass(frozen=True, slots=True)
class EffectiveGossip:
    """Finding others by gossip. ``strategy`` is by the mode of the other node."""

    enabled: bool
    multihop: bool
    target: WhatAmIMatcher
    autoconnect: WhatAmIMatcher
    strategy: ModeDependent[AutoConnectStrategy]


@dataclass(frozen=True, slots=True)
class EffectiveScouting:
    """Finding others. Times are in milliseconds."""

    timeout: int
    delay: int
    multicast: EffectiveMulticast
    gossip: EffectiveGossip


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Effective:
    """What holds. Everything that does not depend on the mode is in ``settings`` as it stands.

    Times are in milliseconds. ``notices`` tells, in sentences, what has no effect on this node.
    One is equal to itself alone, so that what follows from it is soon found.
    """

    settings: Settings
    mode: WhatAmI
    connect: EffectiveConnect
    listen: EffectiveListen
    scouting: EffectiveScouting
    wait_for_scouted: bool
    wait_for_declares: bool
    timestamping: bool
    drop_future_timestamp: bool
    queries_default_timeout: int
    interests_timeout: int
    notices: tuple[str, ...]


def effective(settings: Settings, written: Iterable[str] = ()) -> Effective:
    """What holds. Raises ConfigError for what this node cannot do.

    ``written`` has the paths that the configuration sets, for `notices_of`.
    """
    _refuse_impossible(settings)
    mode = settings.mode or WhatAmI.PEER
    conditions = settings.open.return_conditions
    return Effective(
        settings=settings,
        mode=mode,
        connect=_connect(settings, mode),
        listen=_listen(settings, mode),
        scouting=_scouting(settings, mode),
        wait_for_scouted=_or(conditions.connect_scouted, True),
        wait_for_declares=_or(conditions.declares, True),
        timestamping=_pick(settings.timestamping.enabled, _TIMESTAMPING, mode),
        drop_future_timestamp=_or(settings.timestamping.drop_future_timestamp, False),
        queries_default_timeout=_or(settings.queries_default_timeout, 10_000),
        interests_timeout=_or(settings.routing.interests.timeout, 10_000),
        notices=tuple(notices_of(settings, written)),
    )


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _pick(value: ModeDependent[T] | None, default: ModeDependent[T], mode: WhatAmI) -> T:
    """What is set for the mode, or the default, which has a value for every mode."""
    set_ = value.get(mode) if value is not None else None
    found = default.get(mode) if set_ is None else set_
    assert found is not None
    return found


def _retry(retry: Retry | None, mode: WhatAmI, *, exit_on_failure: bool) -> RetryPolicy:
    set_ = retry or _RETRY
    return RetryPolicy(
        exit_on_failure,
        _pick(set_.period_init_ms, _PERIOD_INIT, mode),
        _pick(set_.period_max_ms, _PERIOD_MAX, mode),
        _pick(set_.period_increase_factor, _PERIOD_INCREASE, mode),
    )


def _connect(settings: Settings, mode: WhatAmI) -> EffectiveConnect:
    connect = settings.connect
    leave = _pick(connect.exit_on_failure, _CONNECT_EXIT, mode)
    return EffectiveConnect(
        _or(connect.endpoints.get(mode), ()),
        _pick(connect.timeout_ms, _CONNECT_TIMEOUT, mode),
        _retry(connect.retry, mode, exit_on_failure=leave),
    )


def _listen(settings: Settings, mode: WhatAmI) -> EffectiveListen:
    listen = settings.listen
    leave = _pick(listen.exit_on_failure, _YES, mode)
    return EffectiveListen(
        _or(listen.endpoints.get(mode), ()),
        _pick(listen.timeout_ms, _LISTEN_TIMEOUT, mode),
        _retry(listen.retry, mode, exit_on_failure=leave),
    )


def _scouting(settings: Settings, mode: WhatAmI) -> EffectiveScouting:
    multicast, gossip = settings.scouting.multicast, settings.scouting.gossip
    return EffectiveScouting(
        timeout=_or(settings.scouting.timeout, 3_000),
        delay=_or(settings.scouting.delay, 500),
        multicast=EffectiveMulticast(
            enabled=_or(multicast.enabled, True),
            address=_or(multicast.address, _MULTICAST_ADDRESS),
            interface=_or(multicast.interface, "auto"),
            ttl=_or(multicast.ttl, 1),
            autoconnect=_pick(multicast.autoconnect, _AUTOCONNECT, mode),
            strategy=_complete(_pick(multicast.autoconnect_strategy, _STRATEGY, mode)),
            listen=_pick(multicast.listen, _YES, mode),
        ),
        gossip=EffectiveGossip(
            enabled=_or(gossip.enabled, True),
            multihop=_or(gossip.multihop, False),
            target=_pick(gossip.target, _TARGET, mode),
            autoconnect=_pick(gossip.autoconnect, _AUTOCONNECT, mode),
            strategy=_complete(_pick(gossip.autoconnect_strategy, _STRATEGY, mode)),
        ),
    )


def _complete(strategy: ModeDependent[AutoConnectStrategy]) -> ModeDependent[AutoConnectStrategy]:
    """With a value for each mode of the other node."""
    return ModeDependent(
        _pick(strategy, _ALWAYS, WhatAmI.ROUTER),
        _pick(strategy, _ALWAYS, WhatAmI.PEER),
        _pick(strategy, _ALWAYS, WhatAmI.CLIENT),
    )


def _refuse_impossible(settings: Settings) -> None:
    found = []
    memory = settings.transport.shared_memory
    if memory.enabled and memory.mode is ShmMode.INIT:
        reason = "zenwire has no shared memory, and this asks for it before anything else"
        hint = "set mode to 'lazy', or enabled to false"
        found.append(ConfigProblem("transport/shared_memory/mode", reason, hint))
    for name, plugin in settings.plugins.items():
        if isinstance(plugin, dict) and plugin.get("__required__") is True:
            reason = "zenwire cannot load plugins, and this one is required"
            hint = "remove __required__, or run zenohd for the plugin"
            found.append(ConfigProblem(f"plugins/{name}", reason, hint))
    reason = settings.transport.auth.usrpwd.check()
    if reason:
        found.append(ConfigProblem("transport/auth/usrpwd", reason))
    if found:
        raise ConfigError(tuple(found))
