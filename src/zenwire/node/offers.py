"""What the configuration means for transports, links and routing."""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from zenwire.errors import ConfigError, ConfigProblem, ZError
from zenwire.links import PROTOCOLS, Facts, priorities_of, reliability_of
from zenwire.node.config.transport import Auth, QueueSize
from zenwire.routing import Aggregates, RoutingOptions
from zenwire.transport import (
    Credentials,
    LinkFacts,
    PrivateKey,
    PublicKey,
    Settings,
    read_private_key,
    read_public_keys,
)
from zenwire.wire.locator import EndPoint, pairs
from zenwire.wire.values import Priority, Resolution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zenwire.keyexpr import KeyExpr
    from zenwire.node.config import Effective
    from zenwire.wire.locator import Locator
    from zenwire.wire.values import ZenohId

__all__ = [
    "Together",
    "allowed",
    "facts_of",
    "group_settings",
    "routing_options",
    "transport_settings",
    "with_defaults",
]

T = TypeVar("T")

_TLS_FILES = (
    "root_ca_certificate",
    "listen_private_key",
    "listen_certificate",
    "connect_private_key",
    "connect_certificate",
)
_TLS_FLAGS = ("enable_mtls", "verify_name_on_connect", "close_link_on_expiration")
_BUFFERS = ("so_sndbuf", "so_rcvbuf")
_SIZES = attrgetter(*(field.name for field in dataclasses.fields(QueueSize)))
_NO_AUTH = Auth()
_ALL = frozenset(PROTOCOLS)
_OFFERED: WeakKeyDictionary[Effective, Settings] = WeakKeyDictionary()
"""By their configuration, the settings of a node; those of others differ in their ids alone."""


class Together:
    """Whoever has several mistakes in a configuration hears of all of them at once."""

    def __init__(self) -> None:
        self._problems: list[ConfigProblem] = []

    def get(self, made: Callable[[], T]) -> T | None:
        """What is made; None, until ``check`` tells why, if that cannot be."""
        try:
            return made()
        except ConfigError as e:
            self._problems += e.problems
            return None

    def check(self) -> None:
        """Raises ConfigError if there were any problems."""
        if self._problems:
            raise ConfigError(tuple(self._problems))


def transport_settings(config: Effective, zid: ZenohId) -> Settings:
    """What this node offers to others. Raises ConfigError for all files that cannot be read."""
    same = _OFFERED.get(config)
    if same is not None:
        return same.of_node(zid)
    if config.settings.transport.auth != _NO_AUTH:
        # There may be files, and these may change.
        return _settings(config, zid, *_known(config))
    made = _OFFERED[config] = _settings(config, zid, None, None, None)
    return made


def _settings(
    config: Effective,
    zid: ZenohId,
    users: dict[bytes, bytes] | None,
    private_key: PrivateKey | None,
    known_keys: frozenset[PublicKey] | None,
) -> Settings:
    transport = config.settings.transport
    unicast, tx = transport.unicast, transport.link.tx
    waits = tx.queue.congestion_control
    usrpwd = transport.auth.usrpwd
    credentials = None
    if usrpwd.user is not None and usrpwd.password is not None:
        credentials = Credentials(usrpwd.user.encode(), usrpwd.password.encode())
    return Settings(
        zid=zid,
        whatami=config.mode,
        lease=tx.lease / 1000,
        keep_alive=tx.keep_alive,
        batch_size=tx.batch_size,
        resolution=Resolution.of(tx.sequence_number_resolution.bits, 32),
        qos=unicast.qos.enabled,
        lowlatency=unicast.lowlatency,
        compression=unicast.compression.enabled,
        batching=tx.queue.batching.enabled,
        region_name=config.settings.region_name,
        credentials=credentials,
        users=users,
        private_key=private_key,
        known_keys=known_keys,
        max_sessions=unicast.max_sessions,
        max_links=unicast.max_links,
        max_pending=unicast.accept_pending,
        max_lease=unicast.max_lease / 1000,
        max_message_size=transport.link.rx.max_message_size,
        max_reassembly=transport.link.rx.max_reassembly,
        reassembly_timeout=transport.link.rx.reassembly_timeout / 1000,
        queue_batches=_SIZES(tx.queue.size),
        open_timeout=unicast.open_timeout / 1000,
        accept_timeout=unicast.accept_timeout / 1000,
        wait_before_drop=waits.drop.wait_before_drop / 1e6,
        wait_before_drop_fragments=waits.drop.max_wait_before_drop_fragments / 1e6,
        wait_before_close=waits.block.wait_before_close / 1e6,
    )


def group_settings(config: Effective, settings: Settings) -> Settings:
    """The same for multicast, where nothing is negotiated."""
    multicast = config.settings.transport.multicast
    return dataclasses.replace(
        settings,
        qos=multicast.qos.enabled,
        compression=multicast.compression.enabled,
        lowlatency=False,
        join_interval=(
            settings.join_interval
            if multicast.join_interval is None
            else multicast.join_interval / 1000
        ),
        max_sessions=(
            settings.max_sessions if multicast.max_sessions is None else multicast.max_sessions
        ),
    )


def routing_options(config: Effective) -> RoutingOptions:
    """Return what the configuration says of routing."""
    settings = config.settings
    prefix = "" if settings.namespace is None else f"{settings.namespace}/"

    def outward(keys: Iterable[KeyExpr]) -> tuple[str, ...]:
        return tuple(f"{prefix}{key}" for key in keys)

    aggregation = settings.aggregation
    aggregates = Aggregates(outward(aggregation.subscribers), outward(aggregation.publishers))
    gossip = config.scouting.gossip
    return RoutingOptions(
        aggregates=aggregates,
        interest_timeout=config.interests_timeout / 1000,
        gossip_target=gossip.target,
        multihop=gossip.enabled and gossip.multihop,
    )


def facts_of(facts: Facts, endpoint: Locator) -> LinkFacts:
    """What a transport must know of a link."""
    if not endpoint.metadata:
        return LinkFacts(facts.streamed, facts.reliable, facts.mtu)
    priorities = priorities_of(endpoint)
    return LinkFacts(
        stream=facts.streamed,
        reliable=facts.reliable,
        mtu=facts.mtu,
        priorities=priorities and (Priority(priorities[0]), Priority(priorities[1])),
        only=reliability_of(endpoint),
    )


def allowed(config: Effective) -> frozenset[str]:
    """The protocols that may be used."""
    chosen = config.settings.transport.link.protocols
    return _ALL if chosen is None else frozenset(chosen)


def with_defaults(endpoint: Locator, config: Effective) -> EndPoint:
    """The endpoint with what the configuration says for all of its protocol; its own goes first."""
    link = config.settings.transport.link
    values: dict[str, str] = {}
    if endpoint.protocol == "tls":
        for name in _TLS_FILES:
            for suffix, form in (("", "file"), ("_base64", "base64")):
                value = getattr(link.tls, name + suffix)
                if value is not None:
                    values[f"{name}_{form}"] = value
        for name in _TLS_FLAGS:
            flag = getattr(link.tls, name)
            if flag is not None:
                values[name] = "true" if flag else "false"
    if endpoint.protocol in {"tcp", "tls"}:
        buffers = link.tls if endpoint.protocol == "tls" else link.tcp
        for name in _BUFFERS:
            size = getattr(buffers, name)
            if size is not None:
                values[name] = str(size)
    if not values and isinstance(endpoint, EndPoint):
        return endpoint
    values |= pairs(endpoint.config) if isinstance(endpoint, EndPoint) else {}
    text = ";".join(f"{name}={value}" for name, value in sorted(values.items()))
    return EndPoint(endpoint.protocol, endpoint.address, endpoint.metadata, text)


_Known = tuple[dict[bytes, bytes] | None, PrivateKey | None, frozenset[PublicKey] | None]
"""Users with their passwords, the own key, and those of others."""


def _known(config: Effective) -> _Known:
    """Raises ConfigError for all files that cannot be read."""
    together = Together()
    users = together.get(lambda: _users(config.settings.transport.auth.usrpwd.dictionary_file))
    private_key = together.get(lambda: _private_key(config))
    known_keys = together.get(lambda: _known_keys(config))
    together.check()
    return users, private_key, known_keys


def _users(name: str | None) -> dict[bytes, bytes] | None:
    """The file of users: ``user:password`` in each line."""
    if name is None:
        return None
    path = "transport/auth/usrpwd/dictionary_file"
    users: dict[bytes, bytes] = {}
    for number, line in enumerate(_content(name, path).splitlines(), 1):
        if not line.strip():
            continue
        user, colon, password = line.strip().partition(b":")
        if not (user and colon and password):
            raise _problem(path, f"line {number} of {name} is not user:password")
        users[user] = password
    return users


def _private_key(config: Effective) -> PrivateKey | None:
    keys = config.settings.transport.auth.pubkey
    path = "transport/auth/pubkey/private_key_file"
    if keys.private_key_file is not None:
        pem = _content(keys.private_key_file, path).decode(errors="replace")
    elif keys.private_key_pem is not None:
        pem, path = keys.private_key_pem, "transport/auth/pubkey/private_key_pem"
    else:
        return None
    try:
        return read_private_key(pem)
    except ZError as e:
        raise _problem(path, str(e)) from None


def _known_keys(config: Effective) -> frozenset[PublicKey] | None:
    name = config.settings.transport.auth.pubkey.known_keys_file
    if name is None:
        return None
    path = "transport/auth/pubkey/known_keys_file"
    try:
        return frozenset(read_public_keys(_content(name, path).decode(errors="replace")))
    except ZError as e:
        raise _problem(path, str(e)) from None


def _content(name: str, path: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as e:
        raise _problem(path, f"{name}: {e.strerror or e}") from None


def _problem(path: str, reason: str) -> ConfigError:
    return ConfigError((ConfigProblem(path, reason),))
