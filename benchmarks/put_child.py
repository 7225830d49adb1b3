"""One process of the put benchmark: ``python -m benchmarks.put_child ROLE --port PORT``.

``sink`` listens as a peer that subscribes to everything, and throws away what comes: it looks for
the mark at the end of a turn and does no more. ``drain`` does not even that, and speaks no Zenoh.
The others connect to a sink and do turns: they say ``ready``, read a line for each turn, and
answer with a line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

__all__ = ["PIECE"]

KEY, END = "bench/put", "bench/end"
TIMEOUT = 60.0
"""Seconds after which something is wrong."""
PIECE = 1 << 20
"""Bytes that the sink reads at once."""
TAIL = 4096
"""Bytes of them in which the mark may be: it is the last that is said in a turn."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.put_child")
    parser.add_argument("role", choices=("sink", "drain", "aio", "sync", "theirs"))
    parser.add_argument("--port", type=int)
    args = parser.parse_args()
    if args.role == "sink":
        _Sink().run()
    elif args.role == "drain":
        _drain()
    elif args.role == "aio":
        asyncio.run(_Aio(args.port).run())
    else:
        _Sync("zenwire" if args.role == "sync" else "zenoh", args.port).run()


def _say(what: object) -> None:
    print(json.dumps(what), flush=True)


def _settings(port: int) -> str:
    """The same for both sides: nobody is found but whom it names."""
    return json.dumps(
        {
            "mode": "peer",
            "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
            "listen": {"endpoints": []},
            "connect": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
        }
    )


def _mark(turn: int) -> bytes:
    return b"the end of turn %d" % turn


def _drain() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _say(listener.getsockname()[1])
        sock, _ = listener.accept()
        buffer, size = bytearray(PIECE), 0
        while n := sock.recv_into(buffer):
            size += n
        _say([time.perf_counter(), size])


class _Sink:
    """Speaks the handshake, subscribes, and reads."""

    def __init__(self) -> None:
        routing, transport = import_module("zenwire.routing"), import_module("zenwire.transport")
        values = import_module("zenwire.wire.values")
        self._received = transport.Received
        zid = values.ZenohId(os.urandom(16))
        self._tables = routing.Tables(zid, routing.PEER)
        self._tables.session().declare_subscriber("**")
        settings = transport.Settings(zid=zid, whatami=values.WhatAmI.PEER)
        self._sessions = transport.Sessions(settings, os.urandom(32), os.urandom)
        self._facts = transport.LinkFacts(mtu=65_480)
        self._listener = socket.create_server(("127.0.0.1", 0))

    def run(self) -> None:
        _say(self._listener.getsockname()[1])
        sock, _ = self._listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        machine = self._sessions.accept(self._facts, time.monotonic())
        self._introduce(sock, machine)
        _say("reading")
        sock.settimeout(1.0)
        buffer = bytearray(PIECE)
        view = memoryview(buffer)
        turn, size, kept = 0, 0, 0
        mark = _mark(turn)
        heard = time.monotonic()
        while True:
            if time.monotonic() - heard > 1.0:
                heard = time.monotonic()
                self._stay(sock, machine)
            try:
                n = sock.recv_into(view[kept:])
            except TimeoutError:
                continue
            if not n:
                return
            size += n
            end = kept + n
            if buffer.find(mark, max(end - TAIL, 0), end) >= 0:
                _say([time.perf_counter(), size])
                turn, size, kept = turn + 1, 0, 0
                mark = _mark(turn)
                continue
            # The mark may be cut.
            kept = min(end, len(mark))
            view[:kept] = bytes(view[end - kept : end])

    def _introduce(self, sock: socket.socket, machine: Any) -> None:
        """All that two peers say to each other before the first turn."""
        face = None
        sock.settimeout(0.05)
        stop = time.monotonic() + 1.0
        while face is None or time.monotonic() < stop:
            now = time.monotonic()
            try:
                events = machine.receive(sock.recv(65_536), now)
            except TimeoutError:
                events = machine.tick(now)
            for event in events:
                if face is None and machine.peer is not None:
                    peer = machine.peer
                    face = self._tables.add_face(peer.zid, peer.whatami, now)
                if isinstance(event, self._received):
                    for message in event.messages:
                        self._tables.receive(face, message, now)
            for output in self._tables.outputs():
                if hasattr(output, "message"):
                    machine.send(output.message, now)
            while data := machine.pull(now):
                sock.sendall(data)

    @staticmethod
    def _stay(sock: socket.socket, machine: Any) -> None:
        """Keep-alives; the silence of the other side is no matter."""
        now = time.monotonic()
        machine.receive(b"", now)
        machine.tick(now)
        while data := machine.pull(now):
            sock.sendall(data)


class _Sync:
    """A program without a loop, with either package."""

    def __init__(self, package: str, port: int) -> None:
        self._zenoh = zenoh = import_module(package)
        self._config = zenoh.Config.from_json5(_settings(port))

    def run(self) -> None:
        zenoh = self._zenoh
        block = {"congestion_control": zenoh.CongestionControl.BLOCK}
        with zenoh.open(self._config) as session:
            publisher = session.declare_publisher(KEY, **block)
            last = session.declare_publisher(END, **block)
            stop = time.monotonic() + TIMEOUT
            while not (publisher.matching_status.matching and last.matching_status.matching):
                if time.monotonic() > stop:
                    raise TimeoutError("nobody is there")
                time.sleep(0.01)
            _say("ready")
            for turn, line in enumerate(sys.stdin):
                what, size, count = line.split()
                payload, times = bytes(int(size)), range(int(count))
                batch = _column(payload, len(times)) if what.startswith("batch") else None
                start = time.perf_counter()
                if what == "publisher":
                    put = publisher.put
                    for _ in times:
                        put(payload)
                elif what == "session":
                    put = session.put
                    for _ in times:
                        put(KEY, payload, **block)
                else:
                    publisher.put_batch(batch)
                last.put(_mark(turn))
                _say([start, time.perf_counter()])


class _Aio:
    """zenwire.aio."""

    def __init__(self, port: int) -> None:
        self._aio = aio = import_module("zenwire.aio")
        self._config = aio.Config.from_json5(_settings(port))

    async def run(self) -> None:
        aio = self._aio
        block = {"congestion_control": aio.CongestionControl.BLOCK}
        async with aio.open(self._config) as session:
            publisher = await session.declare_publisher(KEY, **block)
            last = await session.declare_publisher(END, **block)
            async with asyncio.timeout(TIMEOUT):
                # As the other side waits.
                while not (  # noqa: ASYNC110
                    publisher.matching_status.matching and last.matching_status.matching
                ):
                    await asyncio.sleep(0.01)
            _say("ready")
            loop = asyncio.get_running_loop()
            turn = 0
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                what, size, count = line.split()
                payload, times = bytes(int(size)), int(count)
                do = await self._turn(session, publisher, what, payload, times)
                start = time.perf_counter()
                await do()
                await last.put(_mark(turn))
                _say([start, time.perf_counter()])
                turn += 1

    async def _turn(
        self, session: Any, publisher: Any, what: str, payload: bytes, count: int
    ) -> Callable[[], Awaitable[object]]:
        times = range(count)
        block = {"congestion_control": self._aio.CongestionControl.BLOCK}

        async def of_publisher() -> None:
            put = publisher.put
            for _ in times:
                await put(payload)

        async def of_session() -> None:
            put = session.put
            for _ in times:
                await put(KEY, payload, **block)

        if what == "publisher":
            return of_publisher
        if what == "session":
            return of_session
        table = _column(payload, count)
        return lambda: publisher.put_batch(table)


def _column(payload: bytes, count: int) -> Any:
    """So many payloads as Arrow has them, all in one piece."""
    pyarrow, numpy = import_module("pyarrow"), import_module("numpy")
    size = len(payload)
    offsets = numpy.arange(0, (count + 1) * size, size, dtype=numpy.int32)
    data = pyarrow.py_buffer(payload * count)
    return pyarrow.BinaryArray.from_buffers(
        pyarrow.binary(), count, [None, pyarrow.py_buffer(offsets), data]
    )


if __name__ == "__main__":
    main()
