"""One process of the router benchmark: ``python -m benchmarks.router_child ROLE PORT ...``.

``ours`` and ``theirs`` are routers that listen there; to each line of standard input they answer with
their seconds of CPU and their bytes of memory. The others are clients. ``saturate`` sends what was
encoded before until its input ends. ``subscribers`` are as many sessions: to each line it answers
with the messages that came so far, and the time. ``declare`` are sessions that declare and publish,
as many keys as each line says. ``queryables`` and ``get`` are eclipse-zenoh's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.receive_child import BATCH_SIZE, KEY, RING, declared, discard, ring, until_told
from zenwire.transport import LinkFacts, Opened, Received, Sessions, Settings, Unicast
from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.declare import DeclareKeyExpr, DeclareSubscriber
from zenwire.wire.network import Declare, NetworkMessage, Push
from zenwire.wire.objects import encode
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

ROOM = 1 << 18
"""Bytes that a subscriber reads at once."""
LEASE = 600.0
"""Seconds that a router has patience with clients that say nothing."""
PER_SESSION = 50_000
"""Keys that a session declares: a router bounds what one neighbour may cost."""
ASKED = "bench/query"
TIMEOUT = 120.0
CONTROL = QoS.of(Priority.CONTROL, CongestionControl.BLOCK)
BLOCK = QoS.of(Priority.DATA, CongestionControl.BLOCK)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.router_child")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("port", type=int)
    parser.add_argument("--size", type=int, default=8, help="bytes of a payload")
    parser.add_argument("--sessions", type=int, default=1)
    args = parser.parse_args()
    ROLES[args.role](args)


def _say(what: object) -> None:
    print(json.dumps(what), flush=True)


# Routers.


def _settings(mode: str, **ends: int) -> dict[str, Any]:
    """The same for both sides: nobody is found but whom it names."""
    return {
        "mode": mode,
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        **{
            name: {"endpoints": [f"tcp/127.0.0.1:{ends[name]}"] if name in ends else []}
            for name in ("listen", "connect")
        },
    }


def _cost() -> tuple[float, int]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return time.process_time(), pages * resource.getpagesize()


def _ours(args: argparse.Namespace) -> None:
    settings = _settings("router", listen=args.port)

    async def run() -> None:
        node = import_module("zenwire.node")
        config = import_module("zenwire.node.config").Config.from_dict(settings)
        router = await node.open_node(config)
        _say("ready")
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            _say(_cost())
        await router.close()

    asyncio.run(run())


def _theirs(args: argparse.Namespace) -> None:
    zenoh = import_module("zenoh")
    settings = _settings("router", listen=args.port)
    with zenoh.open(zenoh.Config.from_json5(json.dumps(settings))):
        _say("ready")
        for _ in sys.stdin:
            _say(_cost())


# Clients that say what was encoded before.


class Client:
    """A session with a router, and its socket."""

    def __init__(self, port: int, bits: int = 32) -> None:
        settings = Settings(
            zid=ZenohId(os.urandom(16)),
            whatami=WhatAmI.CLIENT,
            lease=LEASE,
            resolution=Resolution.of(bits, 32),
        )
        self.machine: Unicast = Sessions(settings, os.urandom(32), os.urandom).connect(
            LinkFacts(), time.monotonic()
        )
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        events: list[Any] = []
        while not events:
            while data := self.machine.pull(time.monotonic()):
                self.sock.sendall(data)
            answer = self.sock.recv(65_536)
            if not answer:
                raise ConnectionError("there is no session")
            events = self.machine.receive(answer, time.monotonic())
        opened = events[0]
        assert isinstance(opened, Opened), opened
        self.peer = opened.peer
        self.first_sn = opened.session.counters.next[0]
        self.mask = opened.session.counters.mask
        self._next = {Priority.CONTROL: self.first_sn, Priority.DATA: self.first_sn}

    def batches(self, messages: Iterator[NetworkMessage], priority: Priority) -> Iterator[bytes]:
        """Of one lane, as full as they may be."""
        limit = min(self.peer.batch_size - 2, BATCH_SIZE)
        batch = bytearray()
        for message in messages:
            data = encode(message)
            if batch and len(batch) + len(data) > limit:
                yield frame_stream(bytes(batch))
                batch.clear()
            if not batch:
                sn = self._next[priority]
                self._next[priority] = sn + 1 & self.mask
                batch += encode_batch([Frame(reliable=True, sn=sn, priority=priority)])
            batch += data
        if batch:
            yield frame_stream(bytes(batch))

    def say(self, messages: list[NetworkMessage], priority: Priority) -> None:
        for batch in self.batches(iter(messages), priority):
            self.sock.sendall(batch)


def _saturate(args: argparse.Namespace) -> None:
    client = Client(args.port, 8)
    assert client.peer.resolution.sn_modulus == RING
    assert client.peer.batch_size - 2 >= BATCH_SIZE, client.peer
    threading.Thread(target=discard, args=(client.sock,), daemon=True).start()
    client.sock.sendall(frame_stream(declared(client.first_sn)))
    data = ring(client.first_sn, args.size)
    _say("ready")
    threading.Thread(target=until_told, daemon=True).start()
    while True:
        client.sock.sendall(data)


class _Stream:
    """What one subscriber receives: as many messages as a scan finds."""

    def __init__(self, client: Client) -> None:
        self.sock = client.sock
        self._room = bytearray(ROOM)
        self._left = 0

    def read(self, scanner: Any, scan: Any) -> int:
        view = memoryview(self._room)
        n = self.sock.recv_into(view[self._left :])
        if not n:
            raise ConnectionError("the router has closed a session")
        buffer = scan.as_buffer(view[: self._left + n])
        spans, rest = scan.split(buffer)
        count: int = sum(one.network.count for one in scanner.scan(buffer, spans))
        self._left = len(buffer) - rest
        view[: self._left] = view[rest : rest + self._left]
        return count


def _subscribers(args: argparse.Namespace) -> None:
    scan = import_module("zenwire.columns.scan")
    scanner = scan.Scanner()
    clients = [Client(args.port) for _ in range(args.sessions)]
    with selectors.DefaultSelector() as ready:
        for client in clients:
            # As a subscriber of the reference does.
            client.say(
                [
                    Declare(qos=CONTROL, body=DeclareKeyExpr(expr_id=1, key=WireExpr(0, KEY))),
                    Declare(
                        qos=CONTROL,
                        body=DeclareSubscriber(id=1, key=WireExpr(1, "", Mapping.SENDER)),
                    ),
                ],
                Priority.CONTROL,
            )
            ready.register(client.sock, selectors.EVENT_READ, _Stream(client))
        ready.register(sys.stdin, selectors.EVENT_READ, None)
        _say("ready")
        count = 0
        while True:
            for key, _ in ready.select():
                if key.data is not None:
                    count += key.data.read(scanner, scan)
                elif not os.read(sys.stdin.fileno(), 1):
                    return
                else:
                    _say((count, time.perf_counter()))


# Many keys.


def _key(at: int) -> str:
    """Of a fleet: robots with parts that measure."""
    return f"bench/fleet/robot{at // 100}/part{at % 100 // 10}/value{at % 10}"


class _Marks:
    """A subscriber of what is published last: when it comes, all before it was heard."""

    KEY = "bench/mark"

    def __init__(self, port: int) -> None:
        self._client = Client(port)
        key = WireExpr(0, self.KEY)
        self._client.say(
            [Declare(qos=CONTROL, body=DeclareSubscriber(id=1, key=key))], Priority.CONTROL
        )

    def push(self) -> Push:
        return Push(key=WireExpr(0, self.KEY), qos=BLOCK, body=Put(payload=b"mark"))

    def wait(self, count: int) -> None:
        """Until so many have come since the last time."""
        self._client.sock.settimeout(TIMEOUT)
        while count > 0:
            events = self._client.machine.receive(self._client.sock.recv(65_536), time.monotonic())
            for event in events:
                messages = event.messages if isinstance(event, Received) else []
                count -= sum(isinstance(one, Push) for one in messages)


def _declare(args: argparse.Namespace) -> None:
    """Lines: ``declare N`` more keys, and ``publish N`` of them, each on a session of its own."""
    marks = _Marks(args.port)
    clients: list[Client] = []
    known = 0
    _say("ready")
    for line in sys.stdin:
        what, number = line.split()
        count = int(number)
        if what == "declare":
            spans = [
                range(start, min(start + PER_SESSION, known + count))
                for start in range(known, known + count, PER_SESSION)
            ]
            said = []
            for span in spans:
                client = Client(args.port)
                threading.Thread(target=discard, args=(client.sock,), daemon=True).start()
                clients.append(client)
                declarations = (
                    Declare(qos=CONTROL, body=DeclareSubscriber(id=at, key=WireExpr(0, _key(at))))
                    for at in span
                )
                batches = [*client.batches(declarations, Priority.CONTROL)]
                batches += client.batches(iter([marks.push()]), Priority.DATA)
                said.append(batches)
            known += count
            start = time.perf_counter()
            for client, batches in zip(clients[-len(spans) :], said, strict=True):
                for batch in batches:
                    client.sock.sendall(batch)
            marks.wait(len(spans))
        else:
            client = Client(args.port)
            step = max(known // count, 1)
            pushes = (
                Push(key=WireExpr(0, _key(at * step)), qos=BLOCK, body=Put(payload=b"12345678"))
                for at in range(count)
            )
            batches = [*client.batches(pushes, Priority.DATA)]
            batches += client.batches(iter([marks.push()]), Priority.DATA)
            start = time.perf_counter()
            for batch in batches:
                client.sock.sendall(batch)
            marks.wait(1)
            clients.append(client)
        _say((time.perf_counter() - start,))


# Queries.


def _zenoh(port: int) -> Any:
    zenoh = import_module("zenoh")
    settings = _settings("client", connect=port)
    return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))


def _queryables(args: argparse.Namespace) -> None:
    sessions = [_zenoh(args.port) for _ in range(args.sessions)]
    for session in sessions:
        session.declare_queryable(ASKED, lambda query: query.reply(ASKED, b"12345678"))
    time.sleep(0.5)
    _say("ready")
    sys.stdin.read()
    for session in sessions:
        session.close()


def _get(args: argparse.Namespace) -> None:
    """Lines: how many times to ask. Answers with the replies, and seconds."""
    zenoh = import_module("zenoh")
    with _zenoh(args.port) as session:
        querier = session.declare_querier(
            ASKED, target=zenoh.QueryTarget.ALL, consolidation=zenoh.ConsolidationMode.NONE
        )
        time.sleep(0.5)
        _say("ready")
        for line in sys.stdin:
            start, replies = time.perf_counter(), 0
            for _ in range(int(line)):
                replies += sum(1 for _ in querier.get())
            _say((replies, time.perf_counter() - start))


ROLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "ours": _ours,
    "theirs": _theirs,
    "saturate": _saturate,
    "subscribers": _subscribers,
    "declare": _declare,
    "queryables": _queryables,
    "get": _get,
}

if __name__ == "__main__":
    main()
