"""Peers that mean harm, or nothing: a listener outlives them all, and counts them."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from tests.unit.links.ends import TIMEOUT, End, Ends, listening, make_certificates, until
from zenwire.links import Link, LinkError, Listener, connect
from zenwire.links import stream as stream_module
from zenwire.links.stream import HANDSHAKES_MAX
from zenwire.links.udp import PEERS_MAX, PENDING_MAX


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


def port_of(listener: Listener) -> int:
    return int(listener.endpoint.address.rpartition(":")[2])


def tls_on(certificates: Path, timeout: int) -> str:
    return (
        f"tls/127.0.0.1:0#listen_certificate_file={certificates}/server.pem;"
        f"listen_private_key_file={certificates}/server.key;tls_handshake_timeout_ms={timeout}"
    )


@asynccontextmanager
async def raw(listener: Listener) -> AsyncIterator[socket.socket]:
    """A client that does what it wants."""
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        sock.setblocking(False)
        async with asyncio.timeout(TIMEOUT):
            await loop.sock_connect(sock, ("127.0.0.1", port_of(listener)))
            yield sock


async def end_of(sock: socket.socket) -> bytes:
    """Everything until the other side ends it."""
    loop = asyncio.get_running_loop()
    data = b""
    try:
        while piece := await loop.sock_recv(sock, 65_536):
            data += piece
    except ConnectionResetError:
        pass
    return data


# Accepting.


def test_running_out_of_files_does_not_end_a_listener() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):
            clients = [socket.socket() for _ in range(20)]
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            lowest = os.dup(0)
            os.close(lowest)
            try:
                # The system takes the connections before anyone accepts them.
                for client in clients:
                    client.setblocking(False)
                    client.connect_ex(("127.0.0.1", port_of(listener)))
                resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
                try:
                    await until(lambda: listener.counters.errors >= 2)
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                assert "ulimit -n" in str(listener.last_error)
                await there.get(19)
                assert listener.counters.accepted == 20
            finally:
                for client in clients:
                    client.close()

    asyncio.run(scenario())


def test_a_handshake_of_tls_gives_its_file_to_who_waits(certificates: Path) -> None:
    async def scenario() -> None:
        async with listening(tls_on(certificates, 60_000)) as (listener, there):
            clients = [socket.socket() for _ in range(20)]
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            spare = [os.dup(0) for _ in range(8)]
            for file in spare:
                os.close(file)
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (spare[-1] + 1, hard))
                for client in clients:
                    client.setblocking(False)
                    client.connect_ex(("127.0.0.1", port_of(listener)))
                # Each that waits takes the file of the oldest.
                await until(lambda: listener.counters.evicted == 20 - len(spare))
                assert await end_of(clients[0]) == b""
                # Nobody waits: nobody else has to go.
                await asyncio.sleep(0.3)
                assert listener.counters.evicted == 20 - len(spare)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for client in clients:
                    client.close()
            here = Ends()
            ca = f"#root_ca_certificate_file={certificates}/ca.pem"
            await connect(f"{listener.endpoint.locator}{ca}", here.attach)
            await there.get()
            await here.close()

    asyncio.run(scenario())


def test_a_flood_of_connections_is_served() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):
            clients = []
            for _ in range(500):
                client = socket.socket()
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", port_of(listener)))
                clients.append(client)
            # Half of them are gone before they are accepted, by reset.
            for client in clients[::2]:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
            here = Ends()
            link = await connect(listener.endpoint, here.attach)
            link.write(b"honest")
            await until(lambda: any(there[i].data == b"honest" for i in range(len(there))))
            counters = listener.counters
            await until(lambda: counters.accepted + counters.failed + counters.errors == 501)
            assert counters.accepted >= 251
            for client in clients:
                client.close()
            await here.close()

    asyncio.run(scenario())


def test_silent_handshakes_give_way_to_honest_ones(certificates: Path) -> None:
    async def scenario() -> None:
        async with listening(tls_on(certificates, 60_000)) as (listener, there):
            silent = []
            for _ in range(HANDSHAKES_MAX + 5):
                client = socket.socket()
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", port_of(listener)))
                silent.append(client)
            await until(lambda: listener.counters.evicted == 5)
            # The oldest are those that were cut off.
            assert await end_of(silent[0]) == b""
            here = Ends()
            ca = f"#root_ca_certificate_file={certificates}/ca.pem"
            await connect(f"{listener.endpoint.locator}{ca}", here.attach)
            await there.get()
            assert listener.counters.evicted == 6
            await here.close()
            for client in silent:
                client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 5000])
def test_a_tls_handshake_that_is_none_ends(certificates: Path, sent: bytes) -> None:
    async def scenario() -> None:
        async with listening(tls_on(certificates, 200)) as (listener, there):
            async with raw(listener) as client:
                await asyncio.get_running_loop().sock_sendall(client, sent)
                await end_of(client)
            await until(lambda: listener.counters.failed == 1)
            assert len(there) == 0
            assert listener.last_error is not None

    asyncio.run(scenario())


def test_a_tls_server_that_never_answers(certificates: Path) -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, _):
            where = f"tls/{listener.endpoint.address}#tls_handshake_timeout_ms=100"
            with pytest.raises(LinkError, match="no answer in time"):
                await connect(where, Ends().attach)

    asyncio.run(scenario())


# A link that stands.


def test_a_peer_that_resets_is_an_error() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):
            async with raw(listener) as client:
                end = await there.get()
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            error = await end.end()
            assert error is not None
            assert "reset" in error.reason.lower()

    asyncio.run(scenario())


def test_a_half_open_peer_ends_the_link() -> None:
    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there), raw(listener) as client:
            end = await there.get()
            client.shutdown(socket.SHUT_WR)
            assert await end.end() is None
            assert await end_of(client) == b""

    asyncio.run(scenario())


@pytest.mark.parametrize("protocol", ["tcp", "ws"])
def test_a_peer_that_never_reads_does_not_hold_a_closed_link(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "CLOSE_TIMEOUT", 0.1)

    async def scenario() -> None:
        async with (
            listening(f"{protocol}/127.0.0.1:0") as (listener, there),
            raw(listener) as client,
        ):
            if protocol == "ws":
                await upgrade(client, listener)
            end = await there.get()
            while end.link.writable:
                end.link.write(bytes(60_000))
            end.link.close()
            error = await end.end()
            assert error is not None
            assert "could not be sent" in error.reason

    asyncio.run(scenario())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", ["attach", "received"])
def test_a_receiver_with_a_bug_loses_its_link_alone(where: str) -> None:
    async def scenario() -> None:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: told.append(context.get("exception"))
        )

        class Buggy(End):
            def received(self, data: bytes) -> None:
                raise ZeroDivisionError

        ends: list[Buggy] = []

        def attach(link: Link) -> End:
            if where == "attach":
                raise ZeroDivisionError
            ends.append(Buggy(link))
            return ends[-1]

        from zenwire.links import listen

        listener = await listen("tcp/127.0.0.1:0", attach)
        for _ in range(2):
            async with raw(listener) as client:
                await asyncio.get_running_loop().sock_sendall(client, b"x")
                assert await end_of(client) == b""
        await until(lambda: len(told) == 2)
        assert all(isinstance(error, ZeroDivisionError) for error in told)
        for end in ends:
            assert await end.end() is not None
        await listener.close()

    asyncio.run(scenario())


# WebSocket.


async def upgrade(client: socket.socket, listener: Listener) -> ClientProtocol:
    loop = asyncio.get_running_loop()
    protocol = ClientProtocol(parse_uri(f"ws://{listener.endpoint.address}/"))
    protocol.send_request(protocol.connect())
    await loop.sock_sendall(client, b"".join(protocol.data_to_send()))
    while not protocol.events_received():
        protocol.receive_data(await loop.sock_recv(client, 4096))
    return protocol


def frame(opcode: Opcode, data: bytes, *, fin: bool = True, mask: bool = True) -> bytes:
    return Frame(opcode, data, fin=fin).serialize(mask=mask)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (frame(Opcode.TEXT, b"hello"), "binary messages only"),
        (frame(Opcode.BINARY, bytes(65_536)), "65536"),
        # Only the header of one that would be 2^62 bytes long.
        (b"\x82\xff" + (2**62).to_bytes(8, "big") + b"mask", ""),
        (frame(Opcode.BINARY, b"x" * 65_000, fin=False) + frame(Opcode.CONT, b"x" * 600), ""),
        (frame(Opcode.BINARY, b"x", mask=False), "masking"),
        (frame(Opcode.CONT, b"x"), "continuation"),
        (b"\x8f\x80mask", "opcode"),
        (b"\xf2\x81maskx", "reserved"),
        (b"\x89\xfe\x01\x00mask" + bytes(256), "control frame"),
    ],
    ids=["text", "large", "huge", "parts", "unmasked", "cont", "opcode", "reserved", "long-ping"],
)
def test_a_frame_that_must_not_be_ends_the_link(sent: bytes, said: str) -> None:
    async def scenario() -> None:
        async with listening("ws/127.0.0.1:0") as (listener, there), raw(listener) as client:
            await upgrade(client, listener)
            end = await there.get()
            await asyncio.get_running_loop().sock_sendall(client, sent)
            answer = await end_of(client)
            error = await end.end()
            assert error is not None
            assert said in error.reason
            assert end.pieces == []
            # A close frame comes before the end.
            assert answer[:1] in {b"\x88", b""}

    asyncio.run(scenario())


def test_empty_parts_without_end_cost_nothing() -> None:
    async def scenario() -> None:
        async with listening("ws/127.0.0.1:0") as (listener, there), raw(listener) as client:
            await upgrade(client, listener)
            end = await there.get()
            empty = frame(Opcode.CONT, b"", fin=False)
            sent = frame(Opcode.BINARY, b"a", fin=False) + empty * 20_000
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(client, sent + frame(Opcode.CONT, b"b"))
            await end.size(2)
            assert end.pieces == [b"ab"]
            assert end.link._parts == []  # type: ignore[attr-defined] # that of a WsLink

    asyncio.run(scenario())


def test_pings_whose_answers_are_not_read_end_the_link() -> None:
    async def scenario() -> None:
        async with listening("ws/127.0.0.1:0") as (listener, there), raw(listener) as client:
            await upgrade(client, listener)
            end = await there.get()
            loop = asyncio.get_running_loop()
            pings = frame(Opcode.PING, bytes(125)) * 1000

            async def send() -> None:
                while True:
                    await loop.sock_sendall(client, pings)

            task = asyncio.ensure_future(send())
            await until(lambda: end.link._closing)  # type: ignore[attr-defined] # of a StreamLink
            task.cancel()
            await asyncio.wait([task])
            await end_of(client)
            assert "does not read" in str(await end.end())

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\1\2\3\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1000,
        b"\x0a\x00\x01\x09\x12\x01\xcc",
    ],
    ids=["plain", "garbage", "long-line", "many-lines", "zenoh"],
)
def test_an_upgrade_that_is_none_is_refused(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zenwire.links.ws.HANDSHAKE_TIMEOUT", 0.3)

    async def scenario() -> None:
        async with listening("ws/127.0.0.1:0") as (listener, there):
            async with raw(listener) as client:
                loop = asyncio.get_running_loop()
                with suppress(BrokenPipeError, ConnectionResetError):
                    await loop.sock_sendall(client, sent)
                await end_of(client)
            await until(lambda: listener.counters.failed == 1)
            assert len(there) == 0

    asyncio.run(scenario())


# UDP.


def test_strangers_do_not_push_out_those_who_have_a_session() -> None:
    async def scenario() -> None:
        async with listening("udp/127.0.0.1:0") as (listener, there):
            here = Ends()
            link = await connect(listener.endpoint, here.attach)
            link.write(b"hello")
            friend = await there.get()
            friend.link.established()
            strangers = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(PENDING_MAX + 20)]
            for index, stranger in enumerate(strangers):
                stranger.sendto(b"\xff" * 10, ("127.0.0.1", port_of(listener)))
                await there.get(index + 1)
            assert listener.counters.evicted == 20
            # In the order they came.
            for index in range(1, 21):
                assert "too many peers" in str(await there[index].end())
            assert there[21].ends == []
            link.write(b"still here")
            await friend.size(15)
            for stranger in strangers:
                stranger.close()
            await here.close()

    asyncio.run(scenario())


def test_a_listener_has_a_largest_number_of_peers() -> None:
    async def scenario() -> None:
        async with listening("udp/127.0.0.1:0") as (listener, there):
            peers = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(PEERS_MAX + 5)]
            for index, peer in enumerate(peers):
                peer.sendto(b"x", ("127.0.0.1", port_of(listener)))
                if index < PEERS_MAX:
                    (await there.get(index)).link.established()
            await until(lambda: listener.counters.dropped == 5)
            assert len(there) == PEERS_MAX
            # A place that is left can be taken.
            there[0].link.close()
            peers[-1].sendto(b"x", ("127.0.0.1", port_of(listener)))
            await there.get(PEERS_MAX)
            for peer in peers:
                peer.close()

    asyncio.run(scenario())
