"""Sessions that declare and undeclare as fast as a router reads: a process that starves others.

``python -m tests.hostile.starving PORT SESSIONS`` opens so many sessions, prints ``ready``, floods
until its standard input ends, and prints how many bytes the router has read.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count

from zenwire.wire.batch import decode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.declare import DeclareSubscriber, UndeclareSubscriber
from zenwire.wire.network import Declare, NetworkMessage, Push
from zenwire.wire.objects import encode
from zenwire.wire.transport import Frame, InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import (
    CongestionControl,
    Priority,
    QoS,
    Resolution,
    WhatAmI,
    WireExpr,
    ZenohId,
)

__all__ = ["Client", "floods", "round_trips"]

_CYCLE = 1 << 7
"""Sequence numbers of eight bits repeat after so many FRAMEs: a flood is the same bytes again."""
_LEASE = 600_000
_CONTROL = QoS.of(Priority.CONTROL, CongestionControl.BLOCK)
_BLOCK = QoS.of(congestion_control=CongestionControl.BLOCK)


class Client:
    """A client over a blocking socket. ``cycle``: with sequence numbers of eight bits."""

    def __init__(self, port: int, *, cycle: bool = False, timeout: float = 60.0) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._held = b""
        self._sn = 0
        resolution = Resolution.of(8) if cycle else Resolution()
        zid = ZenohId(os.urandom(16))
        self._say(
            InitSyn(
                version=9,
                zid=zid,
                whatami=WhatAmI.CLIENT,
                qos=False,
                patch=1,
                resolution=resolution,
            )
        )
        (ack,) = self.hear()
        assert isinstance(ack, InitAck), ack
        self._say(OpenSyn(lease=_LEASE, initial_sn=0, cookie=ack.cookie))
        (ack,) = self.hear()
        assert isinstance(ack, OpenAck), ack

    def _say(self, message: object) -> None:
        self.sock.sendall(frame_stream(encode(message)))

    def send(self, *messages: NetworkMessage) -> None:
        head = encode(Frame(reliable=True, sn=self._sn))
        self._sn += 1
        self.sock.sendall(frame_stream(head + b"".join(map(encode, messages))))

    def hear(self) -> list[object]:
        """The messages of the next batch."""
        while True:
            size = 2 + int.from_bytes(self._held[:2], "little")
            if 2 <= size <= len(self._held):
                batch, self._held = self._held[2:size], self._held[size:]
                return [*decode_batch(batch)]
            more = self.sock.recv(65_536)
            if not more:
                raise EOFError("the router has closed the link")
            self._held += more

    def close(self) -> None:
        self.sock.close()


@contextmanager
def _clients(port: int, number: int) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Client(port))) for _ in range(number)]


def round_trips(port: int, seconds: float, pause: float = 0.005) -> Iterator[float]:
    """Seconds from a put of one client to its arrival at another, again and again."""
    with _clients(port, 2) as (source, sink):
        key = WireExpr(0, "victim/x")
        sink.send(Declare(body=DeclareSubscriber(id=1, key=key), qos=_CONTROL))
        ends, number = time.perf_counter() + seconds, count()
        sink.sock.settimeout(0.2)
        while time.perf_counter() < ends:
            payload = next(number).to_bytes(8, "big")
            began = time.perf_counter()
            source.send(Push(key=key, qos=_BLOCK, body=Put(payload=payload)))
            try:
                while not _arrived(sink.hear(), payload):
                    pass
            except TimeoutError:
                # Before the router has heard of the subscriber, a put is lost.
                if sink.sock.gettimeout() == 0.2 and payload != bytes(8):
                    sink.sock.settimeout(60.0)
                continue
            sink.sock.settimeout(60.0)
            yield time.perf_counter() - began
            time.sleep(pause)


def _arrived(messages: list[object], payload: bytes) -> bool:
    return any(
        isinstance(one, Push) and isinstance(one.body, Put) and one.body.payload == payload
        for one in messages
    )


def floods(session: int, size: int = 8_000) -> bytes:
    """A whole cycle of FRAMEs that declare and undeclare subscribers of one session."""
    body = bytearray()
    for number in count(1):
        key = WireExpr(0, f"flood/{session}/{number}")
        body += encode(Declare(body=DeclareSubscriber(id=number, key=key), qos=_CONTROL))
        body += encode(Declare(body=UndeclareSubscriber(id=number), qos=_CONTROL))
        if len(body) >= size:
            break
    frames = (encode(Frame(reliable=True, sn=sn)) + bytes(body) for sn in range(_CYCLE))
    return b"".join(map(frame_stream, frames))


def _main(port: int, sessions: int) -> None:
    clients = [Client(port, cycle=True) for _ in range(sessions)]
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    left: dict[Client, memoryview] = {}
    whole = {client: memoryview(floods(at)) for at, client in enumerate(clients)}
    for client in clients:
        client.sock.setblocking(False)
        selector.register(client.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, client)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sent = 0
    while True:
        for key, events in selector.select():
            if key.data is None:
                sys.stdout.write(f"{sent}\n")
                return
            client = key.data
            if events & selectors.EVENT_READ and not client.sock.recv(65_536):
                raise SystemExit("the router has closed a link")
            if events & selectors.EVENT_WRITE:
                rest = left.get(client) or whole[client]
                done = client.sock.send(rest)
                sent += done
                left[client] = rest[done:]


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
