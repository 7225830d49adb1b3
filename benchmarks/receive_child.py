"""One process of the receive benchmark: ``python -m benchmarks.receive_child ROLE ...``.

A receiver listens, says ``ready``, and measures for as many seconds as each line of standard input
says: it answers with rows, seconds, and seconds of CPU. A sender connects, says ``ready``, and
sends until its standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from zenwire.transport import LinkFacts, Opened, Sessions, Settings
from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.declare import DeclareKeyExpr
from zenwire.wire.network import Declare, Push
from zenwire.wire.transport import Frame
from zenwire.wire.values import (
    CongestionControl,
    Mapping,
    Priority,
    QoS,
    Resolution,
    WhatAmI,
    WireExpr,
    ZenohId,
)

KEY = "bench/receive"
BATCH_SIZE = 49_150
"""What both sides take, whatever is negotiated."""
ROWS = 4096
"""Of a record batch that a program makes of samples."""
RING = 128
"""Batches after which sequence numbers of 8 bits begin again."""

Measured = tuple[int, float, float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.receive_child")
    parser.add_argument("role", choices=(*RECEIVERS, *SENDERS))
    parser.add_argument("port", type=int)
    parser.add_argument("--size", type=int, default=8)
    args = parser.parse_args()
    if args.role in SENDERS:
        SENDERS[args.role](args.port, args.size)
    else:
        RECEIVERS[args.role](args.port)


def _settings(**ends: int) -> dict[str, Any]:
    """The same for both sides: nobody is found but whom it names."""
    return {
        "mode": "peer",
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        **{
            name: {"endpoints": [f"tcp/127.0.0.1:{ends[name]}"] if name in ends else []}
            for name in ("listen", "connect")
        },
    }


def _say(what: object) -> None:
    print(json.dumps(what), flush=True)


class _Count:
    """Rows that came, and what they took."""

    def __init__(self) -> None:
        self.rows = 0

    def begin(self) -> Callable[[], Measured]:
        rows, wall, cpu = self.rows, time.perf_counter(), time.process_time()
        return lambda: (
            self.rows - rows,
            time.perf_counter() - wall,
            time.process_time() - cpu,
        )


# Receivers.


def _ours(port: int, **how: Any) -> None:
    asyncio.run(_receive(port, how))


async def _receive(port: int, how: dict[str, Any]) -> None:
    aio = import_module("zenwire.aio")
    count = _Count()
    loop = asyncio.get_running_loop()
    async with aio.open(aio.Config.from_dict(_settings(listen=port))) as session:
        if how:
            how.pop("all", None)
            subscriber = await session.declare_subscriber("bench/**", aio.columnar(**how))

            async def read() -> None:
                async for batch in subscriber:
                    count.rows += batch.num_rows

            reading = asyncio.create_task(read())
        else:

            def got(_sample: Any) -> None:
                count.rows += 1

            await session.declare_subscriber(KEY, got)
            reading = asyncio.create_task(asyncio.sleep(0))
        _say("ready")
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            done = count.begin()
            await asyncio.sleep(float(line))
            _say(done())
        reading.cancel()


def _theirs(port: int, *, arrow: bool) -> None:
    zenoh = import_module("zenoh")
    count = _Count()
    got = _to_arrow(count) if arrow else _counting(count)
    with zenoh.open(zenoh.Config.from_json5(json.dumps(_settings(listen=port)))) as session:
        session.declare_subscriber(KEY, got)
        _say("ready")
        for line in sys.stdin:
            done = count.begin()
            time.sleep(float(line))
            _say(done())


def _counting(count: _Count) -> Callable[[Any], None]:
    def got(_sample: Any) -> None:
        count.rows += 1

    return got


def _to_arrow(count: _Count) -> Callable[[Any], None]:
    """Record batches of keys and payloads, as its users make them."""
    pa = import_module("pyarrow")
    schema = pa.schema([("key", pa.string()), ("payload", pa.binary())])
    keys: list[str] = []
    payloads: list[bytes] = []

    def got(sample: Any) -> None:
        keys.append(str(sample.key_expr))
        payloads.append(sample.payload.to_bytes())
        if len(keys) == ROWS:
            batch = pa.record_batch([pa.array(keys), pa.array(payloads)], schema=schema)
            keys.clear()
            payloads.clear()
            count.rows += batch.num_rows

    return got


RECEIVERS: dict[str, Callable[[int], None]] = {
    "ours-arrow": lambda port: _ours(port, all=True),
    "ours-key-payload": lambda port: _ours(port, columns=("key", "payload")),
    "ours-callback": _ours,
    "theirs-arrow": lambda port: _theirs(port, arrow=True),
    "theirs-callback": lambda port: _theirs(port, arrow=False),
}


# Senders.


def _saturate(port: int, size: int) -> None:
    """What was encoded before, again and again: a session as any other, to who receives."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        first = opened_over(sock)
        sock.sendall(frame_stream(declared(first)))
        batches = ring(first, size)
        _say("ready")
        threading.Thread(target=until_told, daemon=True).start()
        while True:
            sock.sendall(batches)


def opened_over(sock: socket.socket) -> int:
    """A session as any other, with few numbers: what was encoded can be said again and again.

    Gives the first number. Nobody needs what is answered, but it must not fill the link.
    """
    settings = Settings(
        zid=ZenohId(os.urandom(16)), whatami=WhatAmI.PEER, resolution=Resolution.of(8, 32)
    )
    machine = Sessions(settings, os.urandom(32), os.urandom).connect(LinkFacts(), time.monotonic())
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    events: list[Any] = []
    while not events:
        while data := machine.pull(time.monotonic()):
            sock.sendall(data)
        answer = sock.recv(65_536)
        if not answer:
            raise ConnectionError("there is no session")
        events = machine.receive(answer, time.monotonic())
    opened = events[0]
    assert isinstance(opened, Opened), opened
    assert opened.peer.resolution.sn_modulus == RING
    assert opened.peer.batch_size - 2 >= BATCH_SIZE, opened.peer
    threading.Thread(target=discard, args=(sock,), daemon=True).start()
    return opened.session.counters.next[0]


def declared(sn: int, keys: Sequence[str] = (KEY,)) -> bytes:
    """Aliases of keys, from 1 on."""
    said = [
        Declare(
            qos=QoS.of(Priority.CONTROL, CongestionControl.BLOCK),
            body=DeclareKeyExpr(expr_id=i, key=WireExpr(0, key)),
        )
        for i, key in enumerate(keys, 1)
    ]
    return encode_batch([Frame(reliable=True, sn=sn, priority=Priority.CONTROL), *said])


def ring(first: int, size: int) -> bytes:
    """As many full batches as there are sequence numbers, as the reference's publisher fills them."""
    push = encode_batch(
        [
            Push(
                key=WireExpr(1, "", Mapping.SENDER),
                qos=QoS.of(Priority.DATA, CongestionControl.BLOCK),
                body=Put(payload=bytes(size)),
            )
        ]
    )
    heads = [encode_batch([Frame(reliable=True, sn=(first + at) % RING)]) for at in range(RING)]
    return b"".join(
        frame_stream(head + push * ((BATCH_SIZE - len(head)) // len(push))) for head in heads
    )


def discard(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while sock.recv(65_536):
            pass


def until_told() -> None:
    sys.stdin.read()
    os._exit(0)


def _publish(port: int, size: int) -> None:
    """eclipse-zenoh's publisher, as fast as it goes."""
    zenoh = import_module("zenoh")
    payload = bytes(size)
    with zenoh.open(zenoh.Config.from_json5(json.dumps(_settings(connect=port)))) as session:
        publisher = session.declare_publisher(KEY, congestion_control=zenoh.CongestionControl.BLOCK)
        time.sleep(0.3)
        _say("ready")
        threading.Thread(target=until_told, daemon=True).start()
        while True:
            publisher.put(payload)


SENDERS: dict[str, Callable[[int, int], None]] = {"saturate": _saturate, "publish": _publish}

if __name__ == "__main__":
    main()
