"""The same exchange with the reference over every kind of link, with certificates and in groups."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.interop.exchange import ROLES, Settings, exchange, meeting, node_settings, opened
from tests.ports import free_port
from tests.unit.api.nodes import run, until
from tests.unit.api.reference import Taker
from tests.unit.links.ends import make_certificates
from zenwire import aio

pytestmark = pytest.mark.interop

LARGE = bytes(range(251)) * 1_000


def place(protocol: str, folder: Path) -> str:
    """A free one."""
    if protocol == "unixsock-stream":
        return f"unixsock-stream/{folder / 'zenoh.sock'}"
    port = free_port(socket.SOCK_DGRAM) if "udp" in protocol else free_port()
    if protocol.endswith("6"):
        return f"{protocol.removesuffix('6')}/[::1]:{port}"
    return f"{protocol}/127.0.0.1:{port}"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("protocol", ["tcp", "tcp6", "udp", "udp6", "unixsock-stream", "ws", "ws6"])
def test_every_protocol(protocol: str, role: str, tmp_path: Path) -> None:
    async def main() -> None:
        where = place(protocol, tmp_path)
        async with meeting(role, where) as (ours, theirs):
            [link] = ours.info.links()
            name = where.partition("/")[0]
            assert link.dst.startswith(f"{name}/")
            assert link.is_streamed is (name not in {"udp", "ws"})
            [their_link] = theirs.info.links()
            assert their_link.is_streamed is link.is_streamed
            if role in {"router", "peer"} and name != "unixsock-stream":
                assert link.dst == where
                assert link.src == their_link.dst
            # Of datagrams, no more at once than the buffer of a socket takes.
            await exchange(ours, theirs, LARGE[:70_000] if name == "udp" else LARGE)
            [neighbour] = ours.info.stats().neighbours
            assert not neighbour.dropped

    run(main())


# Certificates.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


FILES = {
    "root_ca_certificate": "ca.pem",
    "listen_certificate": "server.pem",
    "listen_private_key": "server.key",
    "connect_certificate": "client.pem",
    "connect_private_key": "client.key",
}


def tls(folder: Path, form: str, *, mtls: bool, **files: str) -> Settings:
    """What the configuration says of TLS, of files or of what is in them."""
    chosen = {name: file for name, file in (FILES | files).items() if file}
    if form == "file":
        values: Settings = {name: str(folder / file) for name, file in chosen.items()}
    else:
        values = {
            f"{name}_base64": base64.b64encode((folder / file).read_bytes()).decode()
            for name, file in chosen.items()
        }
    return {"transport": {"link": {"tls": values | {"enable_mtls": mtls}}}}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("mtls", [False, True], ids=["tls", "mtls"])
@pytest.mark.parametrize("form", ["file", "base64"])
def test_certificates(role: str, mtls: bool, form: str, certificates: Path) -> None:
    how = tls(certificates, form, mtls=mtls)

    async def main() -> None:
        where = f"tls/localhost:{free_port()}"
        async with meeting(role, where, how, how) as (ours, theirs):
            [link] = ours.info.links()
            dials = role in {"router", "peer"}
            expected = "the-server" if dials else "the-client" if mtls else None
            assert link.auth_identifier == expected
            await exchange(ours, theirs, LARGE)

    run(main())


@pytest.mark.parametrize("role", ["peer", "client"])
@pytest.mark.parametrize("protocol", ["tcp", "unixsock-stream", "ws", "tls"])
def test_what_was_put_before_the_end_arrives_at_one_that_is_busy(
    protocol: str, role: str, certificates: Path, tmp_path: Path
) -> None:
    """And that talks itself meanwhile: of a socket that is closed, the system forgets the rest."""
    how = tls(certificates, "file", mtls=False) if protocol == "tls" else None

    async def main() -> None:
        where = place(protocol, tmp_path).replace("tls/127.0.0.1", "tls/localhost")
        async with meeting(role, where, how, how) as (ours, theirs):
            got: list[int] = []

            def busy(sample: zenoh.Sample) -> None:
                if len(got) < 200:
                    time.sleep(0.002)
                got.append(int(sample.payload.to_bytes()[:8]))

            theirs.declare_subscriber("last/words", busy)
            talk = theirs.declare_publisher("small/talk")
            await ours.declare_subscriber("small/talk", lambda _: None)
            async with ours.declare_publisher(
                "last/words", congestion_control=aio.CongestionControl.BLOCK
            ) as publisher:
                await until(lambda: publisher.matching_status.matching)
                for number in range(3000):
                    await publisher.put(b"%08d" % number + bytes(1000))
            closing = asyncio.create_task(ours.close())
            while not closing.done():
                await asyncio.to_thread(talk.put, bytes(1000))
            await until(lambda: len(got) == 3000)
            assert got == list(range(3000))

    run(main())


@pytest.mark.parametrize("role", ["router", "client"])
@pytest.mark.parametrize("form", ["file", "base64"])
def test_certificates_that_the_endpoint_names(role: str, form: str, certificates: Path) -> None:
    """In the endpoint of ours; theirs has them in its configuration."""
    values = {
        f"{name}_{form}": str(certificates / file)
        if form == "file"
        else base64.b64encode((certificates / file).read_bytes()).decode()
        for name, file in FILES.items()
    }
    text = ";".join(f"{name}={value}" for name, value in values.items())

    async def main() -> None:
        plain = f"tls/localhost:{free_port()}"
        mine = f"{plain}#{text};enable_mtls=true"
        theirs_has = tls(certificates, "file", mtls=True)
        async with meeting(role, plain, None, theirs_has, our_where=mine) as (ours, theirs):
            await exchange(ours, theirs, LARGE)

    run(main())


def test_we_refuse_a_stranger_who_listens(certificates: Path) -> None:
    """And one whose certificate is for another place."""

    async def main() -> None:
        for files, hint in (
            ({"listen_certificate": "other.pem", "listen_private_key": "other.key"}, "self-signed"),
            (
                {"listen_certificate": "elsewhere.pem", "listen_private_key": "elsewhere.key"},
                "name",
            ),
        ):
            where = f"tls/localhost:{free_port()}"
            theirs_has = tls(certificates, "file", mtls=False, **files)
            async with opened(node_settings("router", listen=where, **theirs_has)):
                ours_has = tls(certificates, "file", mtls=False)
                config = aio.Config.from_dict(node_settings("client", connect=where, **ours_has))
                with pytest.raises(aio.LinkError, match=hint):
                    await aio.open(config)

    run(main())


@pytest.mark.parametrize(
    "files",
    [
        {"connect_certificate": "", "connect_private_key": ""},
        {"connect_certificate": "other.pem", "connect_private_key": "other.key"},
        {"root_ca_certificate": "other.pem"},
    ],
    ids=["none", "unknown", "wary"],
)
def test_strangers_who_dial_are_refused(files: dict[str, str], certificates: Path) -> None:
    """By us, and by them: without a certificate, with a foreign one, or not trusting ours."""
    good = tls(certificates, "file", mtls=True)
    mtls = bool(files.get("connect_certificate", "x"))
    bad = tls(certificates, "file", mtls=mtls, **files)

    async def main() -> None:
        where = f"tls/localhost:{free_port()}"
        config = aio.Config.from_dict(node_settings("peer", listen=where, **good))
        async with aio.open(config) as ours:
            with pytest.raises(zenoh.ZError):
                async with opened(node_settings("client", connect=where, **bad)):
                    pass
            assert ours.info.transports() == []
        where = f"tls/localhost:{free_port()}"
        async with opened(node_settings("router", listen=where, **good)) as theirs:
            with pytest.raises(aio.LinkError):
                await aio.open(aio.Config.from_dict(node_settings("client", connect=where, **bad)))
            assert list(theirs.info.transports()) == []

    run(main())


# Groups.


def multicast_works() -> bool:
    """Whether datagrams to a group come back on loopback."""
    group, port = "224.0.0.225", free_port(socket.SOCK_DGRAM)
    with (
        socket.socket(type=socket.SOCK_DGRAM) as hears,
        socket.socket(type=socket.SOCK_DGRAM) as speaks,
    ):
        member = socket.inet_aton(group) + socket.inet_aton("127.0.0.1")
        try:
            hears.bind(("", port))
            hears.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            loopback = socket.inet_aton("127.0.0.1")
            speaks.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
            speaks.sendto(b"x", (group, port))
            hears.settimeout(1.0)
            return hears.recv(1) == b"x"
        except OSError:
            return False


in_groups = pytest.mark.skipif(not multicast_works(), reason="no multicast on loopback here")


@asynccontextmanager
async def group(
    as_listener: bool, how: Settings
) -> AsyncIterator[tuple[aio.Session, zenoh.Session]]:
    """A peer of each kind, which know of each other."""
    often = {"join_interval": 50} | how.get("multicast", {})
    # Who leaves says so, but not always; then it is time that tells.
    soon = {"tx": {"lease": 2_000} | how.get("link", {}).get("tx", {})}
    # In groups the reference does not ask whether others can read its shared memory.
    how = {"multicast": often, "link": soon, "shared_memory": {"enabled": False}}
    where = f"udp/224.0.0.225:{free_port(socket.SOCK_DGRAM)}#iface=lo"
    mine = {"listen": where} if as_listener else {"connect": where}
    async with opened(node_settings("peer", listen=where, transport=how)) as theirs:
        settings = node_settings("peer", **mine, transport=how)
        async with aio.open(aio.Config.from_dict(settings)) as ours:
            await until(lambda: theirs.info.transports() and _members(ours))
            assert _members(ours) == [str(theirs.zid())]
            [transport] = theirs.info.transports()
            assert str(transport.zid) == str(ours.zid())
            assert transport.is_multicast
            yield ours, theirs


def _members(session: aio.Session) -> list[str]:
    return [str(zid) for group in session.info.stats().groups for zid in group.members]


async def _arrives(
    payload: bytes | None, send: Callable[[], Awaitable[None]], take: Callable[[], Awaitable[Any]]
) -> Any:
    """The sample, when it comes. The system may lose a datagram, but not one after the other."""
    for _ in range(4):
        await send()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                while True:
                    sample = await take()
                    gone = str(sample.kind) == "SampleKind.DELETE"
                    if gone if payload is None else sample.payload.to_bytes() == payload:
                        return sample
    raise AssertionError(f"{payload!r} never came")


GROUPS: dict[str, Settings] = {
    "plain": {},
    "qos": {"multicast": {"qos": {"enabled": True}}},
    "compression": {"multicast": {"compression": {"enabled": True}}},
    "qos and compression": {
        "multicast": {"qos": {"enabled": True}, "compression": {"enabled": True}}
    },
    "small batches": {"link": {"tx": {"batch_size": 256}}},
}


@in_groups
@pytest.mark.parametrize("as_listener", [True, False], ids=["listen", "connect"])
@pytest.mark.parametrize("name", list(GROUPS))
def test_a_group(name: str, as_listener: bool) -> None:
    """Samples only: there are no queries and no tokens in groups, nor is matching known."""
    large = LARGE[:20_000]

    async def main() -> None:
        async with group(as_listener, GROUPS[name]) as (ours, theirs):
            got: Taker[zenoh.Sample] = Taker()
            theirs.declare_subscriber("g/*", got)
            subscriber = await ours.declare_subscriber("h/*")
            # Their node must have heard of our subscriber; nothing says when.
            while subscriber.try_recv() is None:
                await asyncio.to_thread(theirs.put, "h/0", "anybody")
                await asyncio.sleep(0.01)

            block, their_block = aio.CongestionControl.BLOCK, zenoh.CongestionControl.BLOCK
            we_put = functools.partial(ours.put, "g/1", attachment="more", congestion_control=block)
            they_put = functools.partial(
                theirs.put, "h/1", attachment="more", congestion_control=their_block
            )
            # One at a time: nothing else keeps datagrams from being lost.
            for payload in [*(b"%d" % n for n in range(20)), large, b"end"]:
                we_do = functools.partial(we_put, payload)
                sample = await _arrives(payload, we_do, got.get)
                assert sample.attachment.to_string() == "more"
                they_do = functools.partial(asyncio.to_thread, they_put, payload)
                mine = await _arrives(payload, they_do, subscriber.recv)
                assert mine.attachment == "more"
            await _arrives(None, lambda: ours.delete("g/1"), got.get)
            await _arrives(None, lambda: asyncio.to_thread(theirs.delete, "h/1"), subscriber.recv)
            await asyncio.to_thread(theirs.close)
            await until(lambda: not _members(ours))

    run(main())
