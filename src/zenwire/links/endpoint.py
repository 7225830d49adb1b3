"""Endpoints as people write them: ``proto/address[?metadata][#config]``, read as zenoh does.

The syntax is zenoh's own, down to the order in which keys are printed. Beyond it, a protocol,
key or value that would have no effect is refused here, where the mistake can be named.
Metadata of a locator that another node has announced is not: it may be newer than we are.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from zenwire.errors import EncodeError
from zenwire.links.errors import EndpointError
from zenwire.wire.locator import EndPoint, Locator

__all__ = [
    "CONFIG",
    "METADATA",
    "PROTOCOLS",
    "Options",
    "check_protocol",
    "host_and_port",
    "options_of",
    "parse_endpoint",
    "priorities_of",
    "reliability_of",
    "shown",
    "without_secrets",
]

Value = bool | int | float | str | tuple[str, ...] | tuple[int, int]
Read = Callable[[str], Value]

# Values. Each reader raises ValueError with what would be valid.


def _text(text: str) -> str:
    if not text:
        raise ValueError("it must not be empty")
    return text


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("it is true or false")
    return text == "true"


def _whole(low: int, high: int) -> Read:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,20}", text) or not low <= int(text) <= high:
            raise ValueError(f"it is a number from {low} to {high}")
        return int(text)

    return read


def _factor(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or float(text) < 1:
        raise ValueError("it is a number from 1.0 up")
    return float(text)


def _dscp(text: str) -> int:
    found = 0
    for number in text.split("|"):
        try:
            found |= int(number, 16) if number[:2] in {"0x", "0X"} else int(number)
        except ValueError:
            found = 256
    if not 0 <= found <= 255:
        raise ValueError("it is one or more numbers joined by |, as in 0x04|0x10, below 256")
    return found


def _address(text: str) -> str:
    host_and_port(text)
    return text


def _groups(text: str) -> tuple[str, ...]:
    groups = tuple(text.split("|"))
    try:
        good = all(ipaddress.ip_address(group).is_multicast for group in groups)
    except ValueError:
        good = False
    if not good:
        raise ValueError("it is one or more multicast addresses joined by |")
    return groups


def _priorities(text: str) -> tuple[int, int]:
    if not re.fullmatch(r"[0-7](-[0-7])?", text) or text[0] > text[-1]:
        raise ValueError("it is a priority from 0 to 7, or a range as in 1-3")
    return int(text[0]), int(text[-1])


_size = _whole(1, 2**31 - 1)
_milliseconds = _whole(0, 2**31 - 1)

_PEM: Final = {"file": _text, "raw": _text, "base64": _text}
_CERTIFICATES: Final[dict[str, Read]] = {
    f"{name}_{form}": read
    for name in (
        "root_ca_certificate",
        "listen_private_key",
        "listen_certificate",
        "connect_private_key",
        "connect_certificate",
    )
    for form, read in _PEM.items()
}
_RETRY: Final[dict[str, Read]] = {
    "exit_on_failure": _flag,
    "retry_period_increase_factor": _factor,
    "retry_period_init_ms": _milliseconds,
    "retry_period_max_ms": _milliseconds,
}
_SOCKET: Final[dict[str, Read]] = {
    "bind": _address,
    "dscp": _dscp,
    "iface": _text,
    "so_rcvbuf": _size,
    "so_sndbuf": _size,
}

CONFIG: Final[Mapping[str, Mapping[str, Read]]] = {
    "tcp": _SOCKET | _RETRY,
    "tls": _SOCKET
    | _RETRY
    | _CERTIFICATES
    | {
        "close_link_on_expiration": _flag,
        "enable_mtls": _flag,
        "tls_handshake_timeout_ms": _milliseconds,
        "verify_name_on_connect": _flag,
    },
    "udp": _SOCKET | _RETRY | {"join": _groups, "ttl": _whole(0, 255)},
    "ws": _SOCKET | _RETRY,
    "unixsock-stream": {"so_rcvbuf": _size, "so_sndbuf": _size} | _RETRY,
    "memory": _RETRY,
}
"""Of each protocol: the keys of its configuration, and how their values are read."""

PROTOCOLS: Final = tuple(CONFIG)
"""The protocols that ``connect`` and ``listen`` know."""

_ELSEWHERE: Final = ("quic", "serial", "unixpipe", "vsock")
"""Protocols of Zenoh for which there is no link here."""

METADATA: Final[Mapping[str, Read]] = {
    "mixed_rel": _whole(0, 1),
    "multistream": _whole(0, 1),
    "prio": _priorities,
    "rel": _whole(0, 1),
}
"""The keys of metadata. The first two concern QUIC."""

_IP: Final = frozenset({"tcp", "tls", "udp", "ws"})
_PORT: Final = re.compile(r"[0-9]{1,5}")
_SECRET: Final = re.compile(r"(?<![^#;])([a-z_]*private_key_(?:raw|base64))=[^;]*")
_LONG: Final = re.compile(r"(?<![^#;])([a-z_]*certificate_(?:raw|base64))=[^;]*")


def parse_endpoint(text: str) -> EndPoint:
    """An endpoint of a person or a configuration. Raises EndpointError.

    Keys of metadata and config come out sorted, as zenoh prints them.
    """
    name = without_secrets(text)
    where, sharp, config = text.partition("#")
    protocol, slash, rest = where.partition("/")
    address, mark, metadata = rest.partition("?")
    if not (protocol and slash and address) or "?" in protocol:
        hint = "as in tcp/127.0.0.1:7447"
        raise EndpointError(name, "endpoint", "it is protocol/address[?metadata][#config]", hint)
    if not mark and "?" in config:
        raise EndpointError(name, "endpoint", "metadata ('?') comes before config ('#')")
    if protocol not in CONFIG:
        raise _unknown_protocol(name, protocol)
    metadata = _sorted(name, "metadata", metadata) if mark else ""
    config = _sorted(name, "config", config) if sharp else ""
    try:
        endpoint = EndPoint(protocol, address, metadata, config)
    except EncodeError as e:
        raise EndpointError(name, "endpoint", str(e)) from None
    _read(endpoint, "metadata", endpoint.metadata, METADATA, strict=True)
    options_of(endpoint)
    return endpoint


class Options:
    """The configuration of an endpoint, read and checked. What is absent has its default."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def __bool__(self) -> bool:
        """Whether anything is set."""
        return bool(self._values)

    def without(self, *keys: str) -> Options:
        """The same, less some keys."""
        return Options({key: value for key, value in self._values.items() if key not in keys})

    def flag(self, key: str, default: bool) -> bool:
        value = self._values.get(key, default)
        assert isinstance(value, bool)
        return value

    def whole(self, key: str) -> int | None:
        value = self._values.get(key)
        assert value is None or isinstance(value, int)
        return value

    def factor(self, key: str) -> float | None:
        value = self._values.get(key)
        assert value is None or isinstance(value, float)
        return value

    def text(self, key: str) -> str | None:
        value = self._values.get(key)
        assert value is None or isinstance(value, str)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._values.get(key, ())
        assert isinstance(value, tuple)
        return tuple(str(item) for item in value)


def options_of(endpoint: Locator) -> Options:
    """The configuration of an endpoint, and whether its protocol and address are good.

    Raises EndpointError. A Locator has no configuration.
    """
    check_protocol(endpoint.protocol, shown(endpoint))
    keys = CONFIG[endpoint.protocol]
    config = endpoint.config if isinstance(endpoint, EndPoint) else ""
    values = _read(endpoint, "config", config, keys, strict=True) if config else {}
    if "iface" in values and "bind" in values:
        reason = "iface and bind exclude each other"
        raise EndpointError(shown(endpoint), "config", reason, "drop one")
    if endpoint.protocol in _IP:
        try:
            host_and_port(endpoint.address)
        except ValueError as e:
            raise EndpointError(shown(endpoint), "address", str(e)) from None
    if endpoint.protocol == "udp" and reliability_of(endpoint) is True:
        reason = "udp with rel=1 runs over QUIC, for which there is no link here"
        raise EndpointError(shown(endpoint), "metadata", reason, "use tcp, or rel=0")
    return Options(values)


def priorities_of(locator: Locator) -> tuple[int, int] | None:
    """The first and last priority that ``prio`` gives to a link, or None. Raises EndpointError."""
    value = _read(locator, "metadata", locator.metadata, METADATA).get("prio")
    assert value is None or (isinstance(value, tuple) and len(value) == 2)
    return None if value is None else (int(value[0]), int(value[1]))


def reliability_of(locator: Locator) -> bool | None:
    """Whether ``rel`` asks for a reliable link, or None. Raises EndpointError."""
    value = _read(locator, "metadata", locator.metadata, METADATA).get("rel")
    return None if value is None else value == 1


@lru_cache(256)
def host_and_port(address: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port``. Raises ValueError with what would be valid."""
    host, colon, port = address.rpartition(":")
    if not colon or not host:
        raise ValueError("it is host:port, as in 127.0.0.1:7447, [::1]:7447 or name:7447")
    if not _PORT.fullmatch(port) or int(port) > 65_535:
        raise ValueError(f"the port {port!r} is not a number from 0 to 65535")
    if host.startswith("[") or host.endswith("]"):
        host = host[1:-1] if host[0] == "[" and host[-1] == "]" else ""
        if not _is_ipv6(host):
            raise ValueError("between brackets is an IPv6 address, as in [::1]:7447")
    return host, int(port)


def shown(endpoint: Locator) -> str:
    """An endpoint's text for messages and logs, without secrets."""
    return without_secrets(str(endpoint))


def without_secrets(text: str) -> str:
    """The text of an endpoint with private keys and inline certificates left out."""
    where, sharp, config = text.partition("#")
    if not config:
        return text
    return where + sharp + _LONG.sub(r"\1=...", _SECRET.sub(r"\1=***", config))


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


def _entries(text: str) -> list[tuple[str, str]]:
    found = (entry.partition("=") for entry in text.split(";") if entry)
    return [(key, value) for key, _, value in found]


def _sorted(name: str, part: str, text: str) -> str:
    entries = sorted(_entries(text), key=lambda entry: entry[0])
    if not entries or not all(key for key, _ in entries):
        raise EndpointError(name, part, "it is key=value, several joined by ';'")
    return ";".join(f"{key}={value}" if value else key for key, value in entries)


def _read(
    endpoint: Locator, part: str, text: str, keys: Mapping[str, Read], *, strict: bool = False
) -> dict[str, Value]:
    """The values of known keys. Of a key that comes twice the first counts, as for zenoh."""
    values: dict[str, Value] = {}
    for key, value in _entries(text):
        read = keys.get(key)
        if read is None:
            if strict:
                hint = _nearest(key, keys)
                reason = f"{endpoint.protocol} has no key {key!r}"
                raise EndpointError(shown(endpoint), part, reason, hint)
        elif key not in values:
            try:
                values[key] = read(value)
            except ValueError as e:
                secret = "private_key" in key
                said = key if secret else f"{key}={value}"
                raise EndpointError(shown(endpoint), part, f"{said}: {e}") from None
    return values


def _nearest(word: str, words: Iterable[str]) -> str:
    known = sorted(words)
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else "there are " + ", ".join(known)


def check_protocol(protocol: str, endpoint: str) -> None:
    """Raise EndpointError for a protocol without links here; ``endpoint`` is for the message."""
    if protocol not in CONFIG:
        raise _unknown_protocol(endpoint, protocol)


def _unknown_protocol(name: str, protocol: str) -> EndpointError:
    supported = "supported are " + ", ".join(PROTOCOLS)
    if protocol in _ELSEWHERE:
        reason = f"{protocol} is a protocol of Zenoh for which there is no link here"
        return EndpointError(name, "protocol", reason, supported)
    near = difflib.get_close_matches(protocol, PROTOCOLS, 1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return EndpointError(name, "protocol", f"{protocol!r} is unknown", meant + supported)
