"""Recorded logins sent again: a cookie is valid only on the connection that it was issued for."""

from __future__ import annotations

import asyncio
import socket
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.processes import TIMEOUT, RawSocket, router_process
from tests.ports import free_port
from tests.unit.api.reference import reference
from zenwire import aio
from zenwire.wire.batch import split_stream
from zenwire.wire.transport import InitAck, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason

KEYS = tomllib.loads(Path("tests/vectors/transport_keys.toml").read_text())


class Proxy:
    """A proxy on loopback that records everything that connectors send."""

    def __init__(self, target: int) -> None:
        self.sent: list[bytearray] = []
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self._socks: list[socket.socket] = []
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._server.accept()
                there = socket.create_connection(("127.0.0.1", self._target))
                record = bytearray()
                self.sent.append(record)
                self._socks += [here, there]
                for way in ((here, there, record), (there, here, None)):
                    threading.Thread(target=self._copy, args=way, daemon=True).start()

    def _copy(self, here: socket.socket, there: socket.socket, record: bytearray | None) -> None:
        with suppress(OSError):
            while data := here.recv(65_536):
                if record is not None:
                    record += data
                there.sendall(data)
            there.shutdown(socket.SHUT_WR)

    def handshake(self) -> tuple[bytes, bytes]:
        """The InitSyn and the OpenSyn of the first connection."""
        recorded = bytes(self.sent[0])
        (one, two, *_) = (recorded[start:end] for start, end in split_stream(recorded))
        return one, two

    def close(self) -> None:
        self._server.close()
        for sock in self._socks:
            sock.close()


@contextmanager
def recorded(target: int) -> Iterator[Proxy]:
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()


def client_config(port: int, transport: dict[str, Any]) -> dict[str, Any]:
    return {
        "mode": "client",
        "connect": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
        "scouting": {"multicast": {"enabled": False}},
        "transport": transport,
    }


def login(port: int, transport: dict[str, Any]) -> None:
    """Open a session and close it."""

    async def scenario() -> None:
        async with aio.open(aio.Config.from_dict(client_config(port, transport))):
            pass

    asyncio.run(asyncio.wait_for(scenario(), TIMEOUT))


def replay(port: int, init_syn: bytes, open_syn: bytes) -> int | None:
    """Send a recorded handshake on a new socket: the reason of the CLOSE."""
    with RawSocket(port) as thief:
        thief.send(init_syn)
        thief.expect(InitAck)
        thief.send(open_syn)
        return thief.close_reason()


def logins(directory: Path) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """By the kind of proof: the router's and the client's ``transport``."""
    users = directory / "users.txt"
    users.write_text("alice:secret\n")
    key = {"auth": {"pubkey": {"private_key_pem": KEYS["pkcs8"]}}}
    many = {"unicast": {"max_links": 2}}
    return {
        "user and password": (
            {"auth": {"usrpwd": {"dictionary_file": str(users)}}},
            {"auth": {"usrpwd": {"user": "alice", "password": "secret"}}},
        ),
        "public key": (key, key),
        "MultiLink": (many, many),
    }


@pytest.mark.parametrize("proof", ["user and password", "public key", "MultiLink"])
def test_a_recorded_login_is_refused(proof: str, tmp_path: Path) -> None:
    ours, theirs = logins(tmp_path)[proof]
    with router_process(tmp_path, transport=ours) as router, recorded(router.port) as proxy:
        login(proxy.port, theirs)
        assert replay(router.port, *proxy.handshake()) == CloseReason.INVALID
        login(proxy.port, theirs)


def test_a_recorded_link_does_not_join_a_session_of_several_links(tmp_path: Path) -> None:
    many, _ = logins(tmp_path)["MultiLink"]

    async def scenario(port: int, proxy: Proxy) -> None:
        async with aio.open(aio.Config.from_dict(client_config(proxy.port, many))):
            stolen = await asyncio.to_thread(replay, port, *proxy.handshake())
            assert stolen == CloseReason.INVALID

    with router_process(tmp_path, transport=many) as router, recorded(router.port) as proxy:
        asyncio.run(asyncio.wait_for(scenario(router.port, proxy), TIMEOUT))


@pytest.mark.interop
@pytest.mark.parametrize("acceptor", ["zenwire", "reference"])
def test_both_acceptors_answer_a_replay_with_the_same_reason(acceptor: str, tmp_path: Path) -> None:
    ours, theirs = logins(tmp_path)["user and password"]
    told = {f"transport__auth__usrpwd__{k}": v for k, v in ours["auth"]["usrpwd"].items()}
    with acceptor_of(acceptor, tmp_path, ours, told) as port, recorded(port) as proxy:
        mine = {f"transport__auth__usrpwd__{k}": v for k, v in theirs["auth"]["usrpwd"].items()}
        with reference("client", connect=proxy.port, **mine):
            pass
        assert replay(port, *proxy.handshake()) == CloseReason.INVALID


@pytest.mark.interop
@pytest.mark.parametrize("acceptor", ["zenwire", "reference"])
def test_a_cookie_of_another_connection_is_refused(acceptor: str, tmp_path: Path) -> None:
    with (
        acceptor_of(acceptor, tmp_path, {}, {}) as port,
        RawSocket(port) as owner,
        RawSocket(port) as thief,
    ):
        thief.zid = owner.zid
        cookies = [owner.init().cookie, thief.init().cookie]
        thief.send(OpenSyn(lease=10_000, initial_sn=0, cookie=cookies[0]))
        assert thief.close_reason() == CloseReason.INVALID
        owner.send(OpenSyn(lease=10_000, initial_sn=0, cookie=cookies[0]))
        owner.expect(OpenAck)


@contextmanager
def acceptor_of(
    kind: str, directory: Path, transport: dict[str, Any], told: dict[str, Any]
) -> Iterator[int]:
    """The port of a router, ours in its own process or the reference's."""
    if kind == "zenwire":
        with router_process(directory, transport=transport) as router:
            yield router.port
    else:
        port = free_port()
        with reference("router", listen=port, **told):
            yield port
