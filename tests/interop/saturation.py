"""Senders that never pause, into ``zenwire record``: are rows lost, and does memory stay flat?

``python -m tests.interop.saturation --seconds 60`` runs every sender and payload size, and prints
rows sent, recorded and lost, and the recorder's resident memory over time. ``--json`` adds the
samples of memory. A sender is a process of its own: eclipse-zenoh's publishers with
``CongestionControl.BLOCK``, or a socket that repeats batches that were encoded before.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from itertools import count, cycle
from pathlib import Path
from typing import Any

from benchmarks.receive_child import BATCH_SIZE, RING, declared, opened_over
from tests.ports import free_port
from zenwire.spool import Spool
from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.network import Push
from zenwire.wire.transport import Close, Fragment, Frame, KeepAlive
from zenwire.wire.values import CongestionControl, Mapping, Priority, QoS, WireExpr

__all__ = ["SENDERS", "SIZES", "Outcome", "saturate"]

SIZES = {"8 B": 8, "1 KiB": 1 << 10, "1 MiB": 1 << 20}
SENDERS = ("eclipse", "encoded")
KEYS = tuple(f"full/{n}" for n in range(4))
FRAGMENTS = 32
"""Of a message that is larger than a batch: they divide the sequence numbers of the ring."""
QUIET = 20.0
"""Seconds without another row after which nothing more is expected."""
START = 120.0
"""Seconds until a process says that it is ready: code may be compiled first."""


@dataclass
class Outcome:
    """One sender, one size. ``recorded`` are rows of the spool, ``told`` those in its losses."""

    sender: str
    size: int
    seconds: float
    sent: int
    recorded: int
    told: int
    sessions: int
    """Losses that are sessions or frames, not rows."""
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and MiB resident."""

    @property
    def lost(self) -> int:
        return self.sent - self.recorded

    @property
    def growth(self) -> float:
        """MiB a minute after the first third: by the medians of the second and the last third."""
        times = [at for at, _ in self.memory]
        third = (times[-1] - times[0]) / 3
        parts = [
            sorted(mib for at, mib in self.memory if n * third <= at - times[0] <= (n + 1) * third)
            for n in (1, 2)
        ]
        middle, last = (part[len(part) // 2] for part in parts)
        return (last - middle) / third * 60

    def line(self) -> str:
        mib = [mib for _, mib in self.memory]
        name = next((name for name, size in SIZES.items() if size == self.size), f"{self.size} B")
        return (
            f"{self.sender:8} {name:>6}: {self.sent:,} sent, {self.recorded:,} recorded, "
            f"{self.lost:,} lost ({self.told:,} told, {self.sessions} sessions or frames), "
            f"{self.recorded / self.seconds:,.0f} rows/s; memory {mib[len(mib) // 3]:,.0f} MiB "
            f"after a third, {mib[-1]:,.0f} last, {max(mib):,.0f} at most, "
            f"{self.growth:+,.1f} a minute"
        )


# The recorder.


def saturate(
    sender: str, size: int, seconds: float, *more: str, every: float = 0.5, keep: str = "2G"
) -> Outcome:
    """Let a sender send for so many seconds, wait for the last row, and count."""
    with tempfile.TemporaryDirectory(prefix="zenwire-saturation-") as folder:
        spool, port = Path(folder) / "spool", free_port()
        place = ("--to", str(spool), "--keep-bytes", keep)
        with _recorder(port, *place, *more) as recorder:
            memory: list[tuple[float, float]] = []
            begun = time.monotonic()
            with _child(sender, port, size, seconds) as child:
                over = threading.Event()
                watch = threading.Thread(target=_watch, args=(recorder, memory, over, every))
                watch.start()
                try:
                    sent = int(_line(child))
                    took = time.monotonic() - begun
                    _settled(spool, sent)
                finally:
                    over.set()
                    watch.join()
            recorder.send_signal(signal.SIGTERM)
            recorder.wait(60)
        found = Spool.open(spool)
        told = [row for part in found.losses.read(0, 1 << 62) for row in part.batch.to_pylist()]
        rows = sum(row["count"] or 0 for row in told)
        sessions = sum(row["kind"] in {"session", "link"} for row in told)
        latest = found.samples.latest()
        return Outcome(sender, size, took, sent, latest, rows, sessions, memory)


@contextmanager
def _recorder(port: int, *more: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "zenwire", "record", "-m", "peer", "--no-multicast-scouting"]
    command += ["-l", f"tcp/127.0.0.1:{port}", "-k", "full/**", *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            while "recording" not in (line := process.stderr.readline()):
                if not line:
                    raise RuntimeError("the recorder has ended")
            threading.Thread(target=_pass_on, args=(process,), daemon=True).start()
            yield process
        finally:
            process.kill()


def _pass_on(process: subprocess.Popen[str]) -> None:
    """What it says must not fill its pipe."""
    assert process.stderr is not None
    with suppress(ValueError):
        for line in process.stderr:
            sys.stderr.write(line)


def _settled(spool: Path, sent: int) -> None:
    """Wait for all rows, or until no more come."""
    log, before = Spool.open(spool).samples, -1
    since = time.monotonic()
    while (there := log.latest()) < sent and time.monotonic() < since + QUIET:
        if there > before:
            before, since = there, time.monotonic()
        time.sleep(0.1)


def _watch(
    process: subprocess.Popen[str],
    memory: list[tuple[float, float]],
    over: threading.Event,
    every: float,
) -> None:
    begun = time.monotonic()
    while True:
        with suppress(OSError):
            text = Path(f"/proc/{process.pid}/status").read_text()
            (line,) = [line for line in text.splitlines() if line.startswith("VmRSS:")]
            memory.append((time.monotonic() - begun, int(line.split()[1]) / 1024))
        if over.wait(every):
            return


# Senders, each in a process of its own.


@contextmanager
def _child(sender: str, port: int, size: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Sends when it is entered; stays, so that nothing ends with its session, until the block ends."""
    command = [sys.executable, "-m", "tests.interop.saturation", "--send", sender]
    command += [str(port), str(size), str(seconds)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            _line(process)
            yield process
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)
        finally:
            process.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a sender has failed")
    return line


def _send(sender: str, port: int, size: int, seconds: float) -> None:
    (_eclipse if sender == "eclipse" else _encoded)(port, size, seconds)


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _eclipse(port: int, size: int, seconds: float) -> None:
    zenoh = import_module("zenoh")
    off = {"enabled": False}
    config = {
        "mode": "peer",
        "listen": {"endpoints": []},
        "connect": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
        "scouting": {"multicast": off, "gossip": off},
    }
    with zenoh.open(zenoh.Config.from_json5(json.dumps(config))) as session:
        block = zenoh.CongestionControl.BLOCK
        publishers = [session.declare_publisher(key, congestion_control=block) for key in KEYS]
        while not all(one.matching_status.matching for one in publishers):
            time.sleep(0.05)
        _say("ready")
        puts = cycle([one.put for one in publishers])
        rest, number, ends = bytes(size - 8), 0, time.monotonic() + seconds
        while time.monotonic() < ends:
            for put, _ in zip(puts, range(16 if size < 1 << 16 else 1), strict=False):
                put(number.to_bytes(8, "little") + rest)
                number += 1
        _say(number)
        sys.stdin.read()


def _encoded(port: int, size: int, seconds: float) -> None:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        first = opened_over(sock)
        sock.sendall(frame_stream(declared(first, KEYS)))
        lock = threading.Lock()
        threading.Thread(target=_stay, args=(sock, lock), daemon=True).start()
        each, ring = _ring(first, size)
        _say("ready")
        ends = time.monotonic() + seconds
        for at, message in enumerate(cycle(ring)):
            if time.monotonic() >= ends:
                _say(at * each)
                break
            with lock:
                sock.sendall(message)
        sys.stdin.read()
        with lock:
            sock.sendall(frame_stream(encode_batch([Close(session=True, reason=0)])))


def _stay(sock: socket.socket, lock: threading.Lock) -> None:
    """A session whose sender is blocked is kept by what it sends, else by this."""
    alive = frame_stream(encode_batch([KeepAlive()]))
    with suppress(OSError):
        while True:
            time.sleep(1.0)
            with lock:
                sock.sendall(alive)


def _ring(first: int, size: int) -> tuple[int, list[bytes]]:
    """Rows of a piece, and pieces that use up all sequence numbers: then they begin again."""
    pushes = [
        encode_batch(
            [
                Push(
                    key=WireExpr(number, "", Mapping.SENDER),
                    qos=QoS.of(Priority.DATA, CongestionControl.BLOCK),
                    body=Put(payload=bytes(size)),
                )
            ]
        )
        for number in range(1, len(KEYS) + 1)
    ]
    sns, kinds = (n % RING for n in count(first)), cycle(pushes)
    if len(pushes[0]) > BATCH_SIZE:
        whole = [b"".join(_fragments(next(kinds), sns)) for _ in range(RING // FRAGMENTS)]
        return 1, whole
    each = (BATCH_SIZE - 8) // len(pushes[0])
    heads = [encode_batch([Frame(reliable=True, sn=next(sns))]) for _ in range(RING)]
    return each, [frame_stream(head + b"".join(next(kinds) for _ in range(each))) for head in heads]


def _fragments(message: bytes, sns: Iterator[int]) -> Iterator[bytes]:
    part = -(-len(message) // FRAGMENTS)
    for at in range(0, len(message), part):
        more = at + part < len(message)
        fragment = Fragment(
            reliable=True, more=more, sn=next(sns), first=not at, payload=message[at : at + part]
        )
        yield frame_stream(encode_batch([fragment]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.saturation", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="that each sender sends")
    parser.add_argument("--sender", action="append", choices=SENDERS, help="default: all")
    parser.add_argument("--size", action="append", choices=SIZES, help="default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write outcomes there too")
    parser.add_argument("--send", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("more", nargs="*", help="options of zenwire record, after --")
    args = parser.parse_args()
    if args.send:
        sender, port, size, seconds = args.send
        _send(sender, int(port), int(size), float(seconds))
        return
    outcomes: list[dict[str, Any]] = []
    failed = False
    for sender in args.sender or SENDERS:
        for name in args.size or SIZES:
            outcome = saturate(sender, SIZES[name], args.seconds, *args.more)
            _say(outcome.line())
            failed = failed or outcome.lost != 0
            outcomes.append(asdict(outcome))
            if args.json:
                args.json.write_text(json.dumps(outcomes))
    sys.exit(failed)


if __name__ == "__main__":
    main()
