"""One process of the live benchmark: ``python -m benchmarks.live_child ROLE PORT ...``.

Senders connect, say ``ready``, and send when their standard input has a line: as many rows as it
says, and how many a second at most (0: as fast as they are taken). They answer with how many they
have sent, and end with their standard input. ``alternative`` is what people write without zenwire.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.receive_child import BATCH_SIZE, RING, declared, opened_over
from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.network import Push
from zenwire.wire.transport import Close, Frame, KeepAlive
from zenwire.wire.values import (
    CongestionControl,
    Mapping,
    Priority,
    QoS,
    WireExpr,
)

__all__ = ["KEYS", "sent"]

KEYS = tuple(f"bench/robot{i:02}/pose" for i in range(16))
CHUNK_ROWS = 65_536
CHUNK_BYTES = 64 << 20
"""Of a file of the alternative: so many rows, or so many bytes of payloads."""
TURN = 0.01
"""Seconds between two looks at the clock, if there is a rate."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_child")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("port", type=int)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--to", type=Path, help="where the alternative writes")
    args = parser.parse_args()
    ROLES[args.role](args)


def _say(what: object) -> None:
    print(json.dumps(what), flush=True)


def _asked() -> Iterator[tuple[int, float]]:
    """What to send: rows, and how many in a second."""
    for line in sys.stdin:
        rows, rate = json.loads(line)
        yield rows, rate


def _settings(**ends: int) -> str:
    """Nobody is found but whom it names."""
    return json.dumps(
        {
            "mode": "peer",
            "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
            **{
                name: {"endpoints": [f"tcp/127.0.0.1:{ends[name]}"] if name in ends else []}
                for name in ("listen", "connect")
            },
        }
    )


# Rows. Payloads are at random: what compresses them gains nothing.


def _payloads(size: int) -> Iterator[bytes]:
    """Those of the batches, which begin anew with each round of them."""
    count = _rows_of_batch(size) * RING
    data = random.Random(size).randbytes(count * size)
    return cycle([data[at : at + size] for at in range(0, count * size, size)])


def sent(size: int, rows: int) -> list[tuple[str, bytes]]:
    """The first keys and payloads that a sender sends."""
    return list(islice(zip(cycle(KEYS), _payloads(size), strict=False), rows))


# Senders.


def _saturate(args: argparse.Namespace) -> None:
    """What was encoded before, again and again: a session as any other, to who receives."""
    with socket.create_connection(("127.0.0.1", args.port)) as sock:
        first = opened_over(sock)
        sock.sendall(frame_stream(declared(first, KEYS)))
        lock = threading.Lock()
        threading.Thread(target=_stay, args=(sock, lock), daemon=True).start()
        batches = cycle(_ring(first, args.size))
        each = _rows_of_batch(args.size)
        _say("ready")
        for rows, rate in _asked():
            many = -(-rows // each)
            for wanted in _paced(many, rate / each):
                with lock:
                    for batch in islice(batches, wanted):
                        sock.sendall(batch)
            _say(many * each)
        with lock:
            sock.sendall(frame_stream(encode_batch([Close(session=True, reason=0)])))


def _paced(many: int, rate: float) -> Iterator[int]:
    """How many to send now, until it is ``many``."""
    begun, done = time.monotonic(), 0
    while done < many:
        due = min(int((time.monotonic() - begun) * rate) + 1, many) if rate else many
        # In small steps, since others want to send too.
        step = min(max(due - done, 0), 64)
        if step:
            yield step
            done += step
        else:
            time.sleep(TURN)


def _stay(sock: socket.socket, lock: threading.Lock) -> None:
    """Whoever says nothing is gone."""
    alive = frame_stream(encode_batch([KeepAlive()]))
    while True:
        time.sleep(1.0)
        with lock:
            try:
                sock.sendall(alive)
            except OSError:
                return


def _push(number: int, payload: bytes) -> bytes:
    return encode_batch(
        [
            Push(
                key=WireExpr(number, "", Mapping.SENDER),
                qos=QoS.of(Priority.DATA, CongestionControl.BLOCK),
                body=Put(payload=payload),
            )
        ]
    )


def _rows_of_batch(size: int) -> int:
    """Whole rounds of the keys, if there is room for one."""
    rows = (BATCH_SIZE - len(_head(0))) // len(_push(1, bytes(size)))
    return rows - rows % len(KEYS) if rows >= len(KEYS) else 1 << (rows.bit_length() - 1)


def _head(sn: int) -> bytes:
    return encode_batch([Frame(reliable=True, sn=sn)])


def _ring(first: int, size: int) -> list[bytes]:
    """As many batches as there are sequence numbers, full as those of the reference's publisher."""
    # A message is what is before its payload, and that.
    before = [_push(i, bytes(size))[:-size] for i in range(1, len(KEYS) + 1)]
    messages = (
        head + payload for head, payload in zip(cycle(before), _payloads(size), strict=False)
    )
    each = _rows_of_batch(size)
    return [
        frame_stream(_head((first + at) % RING) + b"".join(islice(messages, each)))
        for at in range(RING)
    ]


def _publish(args: argparse.Namespace) -> None:
    """eclipse-zenoh's publishers, one for each key, as fast as they go."""
    zenoh = import_module("zenoh")
    with zenoh.open(zenoh.Config.from_json5(_settings(connect=args.port))) as session:
        block = zenoh.CongestionControl.BLOCK
        puts = cycle([session.declare_publisher(key, congestion_control=block).put for key in KEYS])
        payloads = _payloads(args.size)
        time.sleep(0.5)
        _say("ready")
        for rows, rate in _asked():
            for wanted in _paced(rows, rate):
                for put, payload in islice(zip(puts, payloads, strict=False), wanted):
                    put(payload)
            _say(rows)


def _stamp(args: argparse.Namespace) -> None:
    """eclipse-zenoh's publisher; a payload is the time of its put."""
    zenoh = import_module("zenoh")
    with zenoh.open(zenoh.Config.from_json5(_settings(connect=args.port))) as session:
        publisher = session.declare_publisher(
            KEYS[0], congestion_control=zenoh.CongestionControl.BLOCK, express=True
        )
        time.sleep(0.5)
        _say("ready")
        for rows, rate in _asked():
            due = time.monotonic()
            for _ in range(rows):
                due += random.uniform(0, 2 / rate)
                time.sleep(max(due - time.monotonic(), 0))
                publisher.put(struct.pack("<q", time.time_ns()))
            _say(rows)


# The other receiver.


def _alternative(args: argparse.Namespace) -> None:
    """eclipse-zenoh's subscriber with a callback that collects rows, and PyArrow to write them.

    Standard input: ``count`` asks how many came, ``flush`` writes what waits and asks the same.
    """
    zenoh = import_module("zenoh")
    rows = _Rows(args.to)
    with zenoh.open(zenoh.Config.from_json5(_settings(listen=args.port))) as session:
        session.declare_subscriber("bench/**", rows.got)
        _say("ready")
        for line in sys.stdin:
            if line.strip() == "flush":
                # Only asked when nothing comes any more.
                rows.write()
            _say(rows.count)


class _Rows:
    """Columns of Python's lists, until they are a file."""

    def __init__(self, to: Path) -> None:
        self._pa = import_module("pyarrow")
        self._pq = import_module("pyarrow.parquet")
        self._to = to
        self.count = 0
        self._files = 0
        self._clear()

    def _clear(self) -> None:
        self._keys: list[str] = []
        self._payloads: list[bytes] = []
        self._times: list[int] = []
        self._bytes = 0

    def got(self, sample: Any) -> None:
        payload = sample.payload.to_bytes()
        self._keys.append(str(sample.key_expr))
        self._payloads.append(payload)
        self._times.append(time.time_ns())
        self._bytes += len(payload)
        self.count += 1
        if len(self._keys) >= CHUNK_ROWS or self._bytes >= CHUNK_BYTES:
            self.write()

    def write(self) -> None:
        table = self._pa.table({"key": self._keys, "payload": self._payloads, "time": self._times})
        self._pq.write_table(table, self._to / f"part-{self._files:06}.parquet")
        self._files += 1
        self._clear()


ROLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "saturate": _saturate,
    "publish": _publish,
    "stamp": _stamp,
    "alternative": _alternative,
}

if __name__ == "__main__":
    main()
