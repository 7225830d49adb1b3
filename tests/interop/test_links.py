"""Our links against the reference: each protocol it offers, in both directions."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.ports import free_port
from tests.unit.links.ends import TIMEOUT, Ends, listening, make_certificates
from zenwire.links import Link, connect, open_multicast, parse_endpoint
from zenwire.wire import VERSION, decode, encode, frame_stream, split_stream
from zenwire.wire.scouting import Hello, Scout
from zenwire.wire.transport import Close, InitAck, InitSyn, Join, OpenAck, OpenSyn
from zenwire.wire.values import WhatAmI, WhatAmIMatcher, ZenohId

pytestmark = pytest.mark.interop

SYN = InitSyn(version=VERSION, zid=ZenohId.parse("cc77"), whatami=WhatAmI.CLIENT, qos=True, patch=1)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@contextmanager
def reference(mode: str, tls: dict[str, Any] | None = None, **config: Any) -> Iterator[Any]:
    settings = {
        "mode": mode,
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": {"shared_memory": {"enabled": False}, "link": {"tls": tls or {}}},
    }
    session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings | config)))
    try:
        yield session
    finally:
        session.close()  # type: ignore[no-untyped-call] # its package has no annotation there


def tls_settings(folder: Path, *, mtls: bool) -> dict[str, Any]:
    return {
        "root_ca_certificate": str(folder / "ca.pem"),
        "listen_certificate": str(folder / "server.pem"),
        "listen_private_key": str(folder / "server.key"),
        "connect_certificate": str(folder / "client.pem"),
        "connect_private_key": str(folder / "client.key"),
        "enable_mtls": mtls,
    }


def our_tls(folder: Path, *, mtls: bool) -> str:
    text = ";".join(
        f"{name}_file={folder / file}"
        for name, file in (
            ("root_ca_certificate", "ca.pem"),
            ("listen_certificate", "server.pem"),
            ("listen_private_key", "server.key"),
            ("connect_certificate", "client.pem"),
            ("connect_private_key", "client.key"),
        )
    )
    return f"#{text};enable_mtls={'true' if mtls else 'false'}"


PROTOCOLS = ["tcp", "tcp6", "tls", "mtls", "udp", "unixsock-stream", "ws"]


def place(protocol: str, folder: Path) -> str:
    """Where the reference shall listen."""
    if protocol == "unixsock-stream":
        return f"unixsock-stream/{folder / 'zenoh.sock'}"
    port = free_port(socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM)
    if protocol == "tcp6":
        return f"tcp/[::1]:{port}"
    host = "localhost" if protocol in {"tls", "mtls"} else "127.0.0.1"
    return f"{protocol.removeprefix('m')}/{host}:{port}"


def write_batch(link: Link, batch: bytes) -> None:
    link.write(frame_stream(batch) if link.facts.streamed else batch)


def batches(link: Link, data: bytes, pieces: list[bytes]) -> list[bytes]:
    if not link.facts.streamed:
        return pieces
    return [data[start:end] for start, end in split_stream(data)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_we_connect_to_the_reference(protocol: str, certificates: Path, tmp_path: Path) -> None:
    where = place(protocol, tmp_path)
    mtls = protocol == "mtls"
    ours = our_tls(certificates, mtls=mtls) if "tls" in protocol else ""

    async def scenario(zid: str) -> None:
        ends = Ends()
        link = await connect(f"{where}{ours}", ends.attach)
        end = ends[0]

        async def answer(index: int) -> Any:
            await end.until(lambda e: len(batches(link, bytes(e.data), e.pieces)) > index)
            return decode(batches(link, bytes(end.data), end.pieces)[index], "transport")

        write_batch(link, encode(SYN))
        init = await answer(0)
        assert isinstance(init, InitAck)
        assert str(init.zid) == zid
        write_batch(link, encode(OpenSyn(lease=10_000, initial_sn=7, cookie=init.cookie)))
        assert isinstance(await answer(1), OpenAck)
        assert link.facts.common_name == ("the-server" if "tls" in protocol else None)
        assert str(link.dst).startswith(where.partition("/")[0])
        link.close()
        assert await end.end() is None

    tls = tls_settings(certificates, mtls=mtls)
    with reference("router", tls, listen={"endpoints": [where]}) as session:
        asyncio.run(scenario(str(session.info.zid())))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_reference_connects_to_us(protocol: str, certificates: Path, tmp_path: Path) -> None:
    where = place(protocol, tmp_path)
    mtls = protocol == "mtls"
    ours = our_tls(certificates, mtls=mtls) if "tls" in protocol else ""
    tls = tls_settings(certificates, mtls=mtls)

    def dial() -> None:
        """A peer tries for as long as it is open; it is closed by the end of the scenario."""
        dialling = {"connect": {"endpoints": [where], "timeout_ms": 0, "exit_on_failure": False}}
        with reference("peer", tls, listen={"endpoints": []}, **dialling):
            opened.set()
            done.wait(TIMEOUT)

    async def scenario() -> None:
        async with listening(f"{where}{ours}") as (listener, ends):
            thread.start()
            end = await ends.get()
            link = end.link
            await end.until(lambda e: bool(batches(link, bytes(e.data), e.pieces)))
            init = decode(batches(link, bytes(end.data), end.pieces)[0], "transport")
            assert isinstance(init, InitSyn)
            assert init.whatami is WhatAmI.PEER
            assert link.facts.common_name == ("the-client" if mtls else None)
            assert listener.counters.accepted >= 1
            # Nothing else tells it that a UDP link has ended.
            write_batch(link, encode(Close(reason=0)))

    opened, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=dial)
    try:
        asyncio.run(scenario())
    finally:
        done.set()
        thread.join(TIMEOUT)
    assert opened.is_set()


def test_a_batch_is_as_long_as_the_reference_thinks(tmp_path: Path) -> None:
    """The size it offers is its configured one, cut to the mtu that both compute alike."""
    where = place("udp", tmp_path)

    async def scenario() -> tuple[int, int]:
        ends = Ends()
        link = await connect(where, ends.attach)
        link.write(encode(SYN))
        init = decode(await ends[0].size(1), "transport")
        assert isinstance(init, InitAck)
        # Closed within an opening over UDP it waits ten seconds for the rest, and may then fail:
        # from its listener's end on it hears nothing, not even that we have gone.
        link.write(encode(OpenSyn(lease=10_000, initial_sn=7, cookie=init.cookie)))
        await ends[0].until(lambda end: len(end.pieces) > 1)
        link.close()
        await ends[0].end()
        return link.facts.mtu, init.batch_size

    with reference("router", listen={"endpoints": [where]}):
        mtu, offered = asyncio.run(scenario())
    assert mtu == offered


def test_mtls_without_a_certificate_is_refused_with_a_hint(
    certificates: Path, tmp_path: Path
) -> None:
    where = place("mtls", tmp_path)

    async def scenario() -> None:
        ends = Ends()
        ca = f"#root_ca_certificate_file={certificates / 'ca.pem'}"
        link = await connect(f"{where}{ca}", ends.attach)
        write_batch(link, encode(SYN))
        error = await ends[0].end()
        assert error is not None
        assert "CERTIFICATE_REQUIRED" in error.reason
        assert "enable_mtls=true" in error.hint

    tls = tls_settings(certificates, mtls=True)
    with reference("router", tls, listen={"endpoints": [where]}):
        asyncio.run(scenario())


@pytest.mark.parametrize(
    "text",
    [
        "tcp/a:1?rel=1;prio=1-2",
        "tcp/a:1?;;rel=1;;",
        "tcp/a:1#so_sndbuf=10;so_rcvbuf=20",
        "tcp/a:1#so_sndbuf=10;dscp=4;so_sndbuf=20",
        "tls/a:1?prio=2#verify_name_on_connect=true;enable_mtls=false",
        "udp/224.0.0.1:7447#ttl=2;iface=lo;join=224.0.0.2|224.0.0.3",
        "unixsock-stream//tmp/a/b",
        "tcp/[::1]:7447",
    ],
)
def test_endpoints_are_printed_as_the_reference_does(text: str) -> None:
    config = zenoh.Config.from_json5(json.dumps({"connect": {"endpoints": [text]}}))
    assert json.loads(config.get_json("connect/endpoints")) == [str(parse_endpoint(text))]


@pytest.mark.parametrize(
    "text",
    ["", "/", "?", "#", "tcp", "tcp/", "/a:1", "tcp/a:1?", "tcp/a:1#", "tcp/a:1?#", "tcp/a:1#?",
     "tcp?a:1/", "tcp#a:1/", "tcp/a:1?rel=1#", "tcp/a:1?;;", "tcp/a:1#;", "tcp/a:1?=1", "tcp/a:1#=1",
     "tcp/a:1#iface=a?rel=1"],
)  # fmt: skip
def test_what_the_reference_refuses_we_refuse(text: str) -> None:
    with pytest.raises(zenoh.ZError):
        zenoh.Config.from_json5(json.dumps({"connect": {"endpoints": [text]}}))
    with pytest.raises(ValueError, match=r"protocol/address|key=value|comes before"):
        parse_endpoint(text)


def test_scouting_finds_the_reference() -> None:
    port = free_port(socket.SOCK_DGRAM)
    group = f"udp/224.0.0.224:{port}"
    config = {
        "mode": "peer",
        "listen": {"endpoints": ["tcp/127.0.0.1:0"]},
        "scouting": {
            "multicast": {"enabled": True, "address": f"224.0.0.224:{port}", "interface": "lo"},
        },
    }

    async def scenario(zid: str) -> None:
        found: asyncio.Queue[tuple[bytes, str]] = asyncio.Queue()
        multicast = await open_multicast(
            parse_endpoint(group),
            lambda data, source: found.put_nowait((data, str(source))),
            ifaces=["lo"],
        )
        try:
            what = Scout(version=VERSION, what=WhatAmIMatcher(7))
            async with asyncio.timeout(TIMEOUT):
                while True:
                    multicast.send(encode(what))
                    data, source = await found.get()
                    message = decode(data, "scouting")
                    if isinstance(message, Hello):
                        break
            assert str(message.zid) == zid
            assert source.startswith("udp/127.0.0.1:")
        finally:
            await multicast.close()

    session = zenoh.open(zenoh.Config.from_json5(json.dumps(config)))
    try:
        asyncio.run(scenario(str(session.info.zid())))
    finally:
        session.close()  # type: ignore[no-untyped-call] # its package has no annotation there


def test_the_multicast_transport_of_the_reference_is_heard() -> None:
    port = free_port(socket.SOCK_DGRAM)
    where = f"udp/224.0.0.225:{port}#iface=lo"

    async def scenario() -> Any:
        found: asyncio.Queue[bytes] = asyncio.Queue()
        multicast = await open_multicast(
            parse_endpoint(where), lambda data, _: found.put_nowait(data)
        )
        try:
            loop = asyncio.get_running_loop()
            opened = await loop.run_in_executor(None, enter)
            try:
                async with asyncio.timeout(TIMEOUT):
                    data = await found.get()
            finally:
                await loop.run_in_executor(None, opened.close)
            return decode(data, "transport")
        finally:
            await multicast.close()

    def enter() -> Any:
        settings = {
            "mode": "peer",
            "listen": {"endpoints": [where]},
            "scouting": {"multicast": {"enabled": False}},
        }
        return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))

    assert isinstance(asyncio.run(scenario()), Join)
