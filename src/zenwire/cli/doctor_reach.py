"""Whether endpoints lead to nodes, and if not, what is there instead."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire import aio
from zenwire.cli.info import agreed_line, told_of
from zenwire.links import shown
from zenwire.node.connecting import NotConnected
from zenwire.node.seats import NotOpened
from zenwire.wire.locator import EndPoint
from zenwire.wire.values import CloseReason

if TYPE_CHECKING:
    from zenwire.node.config import Config

__all__ = ["Check", "as_client", "reach", "scouted"]

_HANDSHAKE_MS: Final = 3_000
_ANSWER: Final = 1.0
_GREETINGS: Final = {
    b"HTTP/": "an HTTP server",
    b"SSH-": "an SSH server",
    b"\x15\x03": "a TLS server: try tls/ instead of tcp/",
    b"AMQP": "an AMQP broker",
    b"+": "a Redis server",
    b"-ERR": "a Redis server",
}


class Check(NamedTuple):
    """One finding. ``mark`` is ok, bad, warn or info; ``hint`` is what to try, or empty."""

    step: str
    mark: str
    text: str
    hint: str = ""


def as_client(config: Config, endpoint: str) -> Config:
    """The same configuration for one try to reach one endpoint."""
    made = config.copy()
    for path, value in {
        "mode": "client",
        "connect/endpoints": [endpoint],
        "connect/timeout_ms": 0,
        "connect/exit_on_failure": True,
        "listen/endpoints": [],
        "scouting/multicast/enabled": False,
        "transport/unicast/open_timeout": _HANDSHAKE_MS,
    }.items():
        made.insert_json5(path, json.dumps(value))
    return made


async def reach(config: Config, endpoint: str) -> Check:
    """Try an endpoint as a client does."""
    begin, where = time.monotonic(), shown(EndPoint.parse(endpoint))
    try:
        async with aio.open(as_client(config, endpoint)) as session:
            took = (time.monotonic() - begin) * 1000
            [node, *_] = told_of(session)["nodes"]
            who = f"{node['whatami']} {node['zid']}"
            text = f"{where}: {who} answers, in {took:.0f} ms; {agreed_line(node['agreed'])}"
            return Check("reach", "ok", text)
    except aio.LinkError as e:
        error = next(iter(e.failures.values())) if isinstance(e, NotConnected) else e
        hint = error.hint
        if isinstance(error, NotOpened):
            hint = await _not_opened(endpoint, error)
        elif endpoint.startswith("tls/"):
            plain = f"tcp/{endpoint.removeprefix('tls/').partition('#')[0]}"
            if (await reach(config, plain)).mark == "ok":
                hint = f"there is a Zenoh node without TLS: -e {plain}"
        return Check("reach", "bad", f"{where}: {error.reason}", hint)


async def _not_opened(endpoint: str, error: NotOpened) -> str:
    """The link stands, the session does not: what that means."""
    if error.close_reason is None:
        if "nothing listens there" in error.reason:
            return ""
        found = await _greeting(endpoint)
        if found:
            return f"what answers there is no Zenoh node but {found}"
        return (
            "what answers there may be no Zenoh node: check the port, tcp or tls, and that it is "
            "Zenoh 1.x"
        )
    if "version" in error.reason:
        return "the two speak different versions of the protocol: use Zenoh 1.x on both sides"
    if error.close_reason in (CloseReason.MAX_SESSIONS, CloseReason.MAX_LINKS):
        return "it takes no more: see transport/unicast/max_sessions there"
    return (
        "it is a Zenoh node and refuses us: check user and password (transport/auth/usrpwd), "
        "certificates, and that no other node has our id"
    )


async def _greeting(endpoint: str) -> str:
    """What a program that is no Zenoh node says to a question that many understand."""
    protocol, _, address = endpoint.partition("/")
    host, _, port = address.partition("#")[0].partition("?")[0].rpartition(":")
    if protocol != "tcp" or not port.isdecimal():
        return ""
    said = b""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_ANSWER):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            try:
                writer.write(b"GET / HTTP/1.0\r\n\r\n")
                said = await reader.read(64)
            finally:
                writer.close()
    return next((what for begin, what in _GREETINGS.items() if said.startswith(begin)), "")


async def scouted(config: Config, limit: float) -> Check:
    """Who answers to multicast."""
    multicast = config.effective.scouting.multicast
    where, found = f"udp/{multicast.address}", dict[str, aio.Hello]()
    try:
        async with asyncio.timeout(limit), aio.scout(config=config) as scout:
            async for hello in scout:
                found[str(hello.zid)] = hello
    except TimeoutError:
        pass
    except aio.LinkError as e:
        return Check("scout", "bad", str(e.reason), e.hint)
    if not found:
        return Check(
            "scout",
            "warn",
            f"nobody answers to multicast scouting on {where} within {limit:g} s",
            "multicast is often blocked (Wi-Fi, containers, VPN, firewalls), and both sides must "
            "have it enabled: name a node with -e tcp/HOST:7447",
        )
    told = ", ".join(
        f"{hello.whatami} {zid[:8]} at {' '.join(hello.locators) or 'no endpoint'}"
        for zid, hello in found.items()
    )
    return Check("scout", "ok", f"{len(found)} answered to multicast scouting: {told}")
