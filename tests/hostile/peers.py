"""A node under attack, the friends it has, and peers that say what they want."""

from __future__ import annotations

import asyncio
import os
import socket
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Self

from tests.unit.api.nodes import TIMEOUT, until
from tests.unit.api.reference import reference
from zenwire import aio
from zenwire.errors import DecodeError
from zenwire.node import Node, open_node
from zenwire.routing import Limits
from zenwire.wire.batch import (
    compress_batch,
    decode_batch,
    encode_batch,
    expand_batch,
    frame_stream,
)
from zenwire.wire.data import Put
from zenwire.wire.locator import EndPoint
from zenwire.wire.network import NetworkMessage, Push
from zenwire.wire.objects import encode
from zenwire.wire.transport import Close, Frame, InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import CongestionControl, QoS, WhatAmI, WireExpr, ZenohId

__all__ = [
    "BLOCK",
    "FIRST_SN",
    "TIMEOUT",
    "Peer",
    "Victim",
    "allocated",
    "attacked",
    "config",
    "dialled",
    "opened",
    "put",
    "until",
]

BLOCK = QoS.of(congestion_control=CongestionControl.BLOCK)
FIRST_SN = 1000
"""Where the numbers of our peers start."""


def config(mode: str = "peer", listen: list[str] | None = None, **more: Any) -> aio.Config:
    """Without scouting, so that nobody is found but by name."""
    endpoints = listen if listen is not None else ["tcp/127.0.0.1:0"]
    scouting = {"multicast": {"enabled": False}}
    return aio.Config.from_dict(
        {
            "mode": mode,
            "listen": {"endpoints": [] if mode == "client" else endpoints},
            "scouting": scouting,
        }
        | more
    )


def put(payload: bytes = b"x", key: str = "rogue/x") -> Push:
    return Push(key=WireExpr(0, key), qos=BLOCK, body=Put(payload=payload))


@contextmanager
def allocated() -> Iterator[Callable[[], int]]:
    """The bytes that were allocated at most since the start, as far as Python knows."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class Victim:
    """A session under attack, and what came in on ``rogue/**``."""

    def __init__(self, session: aio.Session) -> None:
        self.session = session
        self.payloads: list[bytes] = []
        self.peers: list[Peer] = []

    @property
    def node(self) -> Node:
        return self.session._core.node

    @property
    def stats(self) -> Any:
        return self.node.stats()

    @property
    def port(self) -> int:
        return int(self.node.locators()[0].address.rpartition(":")[2])

    def take(self, sample: aio.Sample) -> None:
        self.payloads.append(bytes(sample.payload))

    def of(self, peer: Peer) -> Any:
        """The counters of the session with a peer."""
        (one,) = (each for each in self.stats.neighbours if each.zid == peer.zid)
        return one


def _into(numbers: list[int]) -> aio.Callback[aio.Sample]:
    return aio.Callback(lambda sample: numbers.append(int(bytes(sample.payload))))


class Exchange:
    """Numbered samples from the node to a friend and back, without a gap, as long as it lasts."""

    def __init__(self, victim: Victim, more: dict[str, Any]) -> None:
        self._victim = victim
        self._more = more
        self._sent = 0
        self._down: list[int] = []
        self._up: list[int] = []

    @asynccontextmanager
    async def running(self, friend: str) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            send = await getattr(self, f"_{friend}")(stack)
            node = self._victim.session
            up = _into(self._up)
            await stack.enter_async_context(node.declare_subscriber("friend/up", up))
            task = asyncio.create_task(self._run(send))
            try:
                await until(lambda: self._down and self._up)
                yield
                reached = self._sent
                await until(lambda: task.done() or min(self._down[-1], self._up[-1]) > reached + 3)
            finally:
                task.cancel()
                await asyncio.wait([task])
            assert task.cancelled(), task.exception()
        for numbers in (self._down, self._up):
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))

    async def _run(self, send: Callable[[str], Any]) -> None:
        node = self._victim.session
        while True:
            self._sent += 1
            await node.put(
                "friend/down", str(self._sent), congestion_control=aio.CongestionControl.BLOCK
            )
            await send(str(self._sent))
            await asyncio.sleep(0.005)

    async def _zenwire(self, stack: AsyncExitStack) -> Callable[[str], Any]:
        where = {"endpoints": [f"tcp/127.0.0.1:{self._victim.port}"]}
        chosen = config("client", connect=where, **self._more)
        friend = await stack.enter_async_context(aio.open(chosen))
        down = _into(self._down)
        await stack.enter_async_context(friend.declare_subscriber("friend/down", down))

        async def send(text: str) -> None:
            block = aio.CongestionControl.BLOCK
            await friend.put("friend/up", text, congestion_control=block)

        return send

    async def _reference(self, stack: AsyncExitStack) -> Callable[[str], Any]:
        import zenoh

        opening = reference("client", connect=self._victim.port)
        friend = await asyncio.to_thread(opening.__enter__)
        stack.push_async_callback(asyncio.to_thread, opening.__exit__, None, None, None)
        loop = asyncio.get_running_loop()

        def heard(sample: zenoh.Sample) -> None:
            number = int(sample.payload.to_string())
            loop.call_soon_threadsafe(self._down.append, number)

        friend.declare_subscriber("friend/down", heard)

        async def send(text: str) -> None:
            block = zenoh.CongestionControl.BLOCK
            await asyncio.to_thread(friend.put, "friend/up", text, congestion_control=block)

        return send


@asynccontextmanager
async def attacked(
    friend: str = "zenwire",
    *,
    limits: Limits | None = None,
    listen: list[str] | None = None,
    friendly: dict[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[Victim]:
    """A node that listens, and talks with a friend all the time; no sample may get lost.

    ``friend`` is ``zenwire`` (``friendly`` is its configuration), ``reference``, or nobody. With
    ``limits``, those of routing.
    """
    chosen = config("peer", listen, **more)
    if limits is None:
        session = await aio.open(chosen)
    else:
        session = aio.Session(await open_node(chosen, limits=limits), chosen)
    async with session:
        victim = Victim(session)
        callback = aio.Callback(victim.take, capacity=10_000)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(session.declare_subscriber("rogue/**", callback))
            if friend:
                talk = Exchange(victim, friendly or {}).running(friend)
                await stack.enter_async_context(talk)
            try:
                yield victim
            finally:
                for peer in victim.peers:
                    await peer.close()


class Peer:
    """A node of which only the bytes are real: what it says is what a test wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.zid = ZenohId(os.urandom(16))
        self.whatami = WhatAmI.PEER
        self.heard: list[Any] = []
        self.compression = False
        self.sn = FIRST_SN
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, victim: Victim, rcvbuf: int | None = None) -> Self:
        """Over a link that was dialled to the victim."""
        sock = socket.socket()
        if rcvbuf is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", victim.port))
        limit = 65_536 if rcvbuf is None else 1_024
        peer = cls(*await asyncio.open_connection(sock=sock, limit=limit))
        victim.peers.append(peer)
        return peer

    # What it says.

    def raw(self, data: bytes) -> None:
        self._writer.write(data)

    def say(self, batch: bytes | object) -> None:
        """A batch, or one message as a batch."""
        content = batch if isinstance(batch, bytes) else encode(batch)
        self.raw(frame_stream(compress_batch(content) if self.compression else content))

    def frame(self, *messages: NetworkMessage | bytes, **fields: Any) -> bytes:
        """A FRAME with the next number; of messages that are bytes, as they are."""
        head = encode(Frame(**{"reliable": True, "sn": self.next_sn()} | fields))
        return head + b"".join(m if isinstance(m, bytes) else encode_batch([m]) for m in messages)

    def next_sn(self) -> int:
        sn, self.sn = self.sn, self.sn + 1
        return sn

    def send(self, *messages: NetworkMessage) -> None:
        self.say(self.frame(*messages))

    def flood(self, messages: Iterable[NetworkMessage], size: int = 30_000) -> None:
        """Many messages, in FRAMEs of about so many bytes."""
        held = bytearray()
        for message in messages:
            held += encode(message)
            if len(held) >= size:
                self.say(self.frame(bytes(held)))
                held.clear()
        if held:
            self.say(self.frame(bytes(held)))

    async def drain(self) -> None:
        async with asyncio.timeout(TIMEOUT):
            await self._writer.drain()

    # What it hears.

    async def hear(self) -> list[Any]:
        """The messages of the next batch; nothing at the end."""
        async with asyncio.timeout(TIMEOUT):
            try:
                prefix = await self._reader.readexactly(2)
                batch = await self._reader.readexactly(int.from_bytes(prefix, "little"))
            except (asyncio.IncompleteReadError, ConnectionError):
                return []
        try:
            content = expand_batch(batch) if self.compression else batch
            messages: list[Any] = [*decode_batch(content)]
        except DecodeError:
            # Low latency has other lengths, which nobody here looks into.
            messages = [batch]
        self.heard += messages
        return messages

    async def expect(self, kind: type[Any]) -> Any:
        """One message of this kind, alone in the next batch."""
        (message,) = await self.hear()
        assert isinstance(message, kind), message
        return message

    async def end(self) -> int | None:
        """Listen until the link ends: the reason of its CLOSE, or None."""
        while await self.hear():
            pass
        closes = [message for message in self.heard if isinstance(message, Close)]
        assert len(closes) <= 1
        return int(closes[0].reason) if closes else None

    # Handshakes.

    def init_syn(self, **fields: Any) -> InitSyn:
        chosen: dict[str, Any] = {
            "version": 9,
            "zid": self.zid,
            "whatami": self.whatami,
            "qos": True,
            "patch": 1,
        }
        return InitSyn(**chosen | fields)

    async def init(self, **fields: Any) -> InitAck:
        self.say(self.init_syn(**fields))
        ack = await self.expect(InitAck)
        assert isinstance(ack, InitAck)
        return ack

    async def open(self, syn: dict[str, Any] | None = None, **fields: Any) -> Self:
        """All of the connector's part: ``syn`` is for InitSyn, the rest for OpenSyn."""
        offer = syn or {}
        cookie = (await self.init(**offer)).cookie
        chosen: dict[str, Any] = {"lease": 10_000, "initial_sn": FIRST_SN, "cookie": cookie}
        self.say(OpenSyn(**chosen | fields))
        await self.expect(OpenAck)
        self.compression = bool(offer.get("compression"))
        return self

    def init_ack(self, **fields: Any) -> InitAck:
        chosen: dict[str, Any] = {
            "version": 9,
            "zid": self.zid,
            "whatami": self.whatami,
            "qos": True,
            "patch": 1,
        }
        return InitAck(**chosen | {"cookie": b"cookie"} | fields)

    async def accept(self, ack: dict[str, Any] | None = None, **fields: Any) -> Self:
        """All of the acceptor's part: ``ack`` is for InitAck, the rest for OpenAck."""
        await self.expect(InitSyn)
        self.say(self.init_ack(**(ack or {})))
        await self.expect(OpenSyn)
        self.say(OpenAck(**{"lease": 10_000, "initial_sn": FIRST_SN} | fields))
        return self

    async def close(self) -> None:
        self._writer.transport.abort()
        await asyncio.sleep(0)


@asynccontextmanager
async def opened(victim: Victim, role: str, **offer: Any) -> AsyncIterator[Peer]:
    """A peer with a session: the victim has ``accepted`` or ``dialled`` it."""
    async with AsyncExitStack() as stack:
        if role == "accepted":
            peer = await Peer.connect(victim)
            stack.push_async_callback(peer.close)
            await peer.open(offer)
        else:
            peer, attempt = await stack.enter_async_context(dialled(victim))
            await peer.accept(offer)
            await asyncio.wait_for(asyncio.shield(attempt), TIMEOUT)
        await until(lambda: victim.node.find(peer.zid) is not None)
        yield peer


@asynccontextmanager
async def dialled(victim: Victim) -> AsyncIterator[tuple[Peer, asyncio.Task[Any]]]:
    """A listener that the victim dials: the link, and the attempt of the victim."""
    came: asyncio.Queue[Peer] = asyncio.Queue()
    server = await asyncio.start_server(
        lambda reader, writer: came.put_nowait(Peer(reader, writer)), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    attempt = asyncio.create_task(victim.node.connect(EndPoint("tcp", f"127.0.0.1:{port}")))
    peer = await asyncio.wait_for(came.get(), TIMEOUT)
    try:
        yield peer, attempt
    finally:
        await peer.close()
        attempt.cancel()
        await asyncio.wait([attempt])
        server.close()
