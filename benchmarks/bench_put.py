"""Puts: how many values a second a program sends, against the put loop of eclipse-zenoh for Python.

"publisher" is a loop of ``put`` of a declared publisher, "session" one of ``session.put`` with a
key; "batch" is one ``put_batch`` of a publisher with a column of payloads, held against their loop
of a publisher, since they have no such call. "aio" is ``zenwire.aio``, "sync" is ``zenwire``. Nothing
is dropped (BLOCK). Each sender has a sink of its own, the same for all: a process that speaks the
handshake, subscribes, and throws away what it reads, so that what is measured is the sender. The
clock runs from the first put until the sink has read the last.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from benchmarks.put_child import PIECE
from benchmarks.report import Result, Skipped, progress

__all__ = ["run"]

SIDES = ("theirs", "aio", "sync")
SIZES = (8, 100, 1024)
KINDS = ("publisher", "session", "batch")
END = 30.0
"""Seconds for a process to end."""


@dataclass(slots=True)
class Child:
    """A process of the benchmark, which does what it is told by a line."""

    process: subprocess.Popen[str]

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """A line of JSON: a port, a word, or numbers."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the benchmark has failed")
        return json.loads(line)


@contextmanager
def child(role: str, port: int = 0) -> Iterator[Child]:
    """A process; it ends with the block."""
    command = [sys.executable, "-m", "benchmarks.put_child", role, "--port", str(port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Child(process)
            assert process.stdin is not None
            process.stdin.close()
            process.wait(END)
        finally:
            process.kill()


@dataclass(slots=True)
class Sender:
    """Somebody who puts, and the sink that reads it."""

    child: Child
    sink: Child
    size: float = 0.0
    """Bytes that the link carried for a put."""

    def turn(self, what: str, size: int, count: int) -> float:
        """Seconds of one put."""
        self.child.tell(f"{what} {size} {count}")
        start, _ = self.child.answer()
        end, read = self.sink.answer()
        seconds = float(end - start)
        self.size = read / count
        return seconds / count


def run(quick: bool) -> list[Result]:
    if find_spec("zenoh") is None:
        raise Skipped("zenoh is not installed")
    turns, count = (1, 20_000) if quick else (7, 300_000)
    results: list[Result] = []
    with ExitStack() as stack:
        senders = {side: _sender(stack, side) for side in SIDES}
        for size in SIZES:
            for what in KINDS:
                load = os.getloadavg()[0]
                progress(f"put: {size} B, {what} (load {load:.1f})")
                results += _compare(senders, what, size, count // (4 if size > 1000 else 1), turns)
    return results


def _sender(stack: ExitStack, side: str) -> Sender:
    sink = stack.enter_context(child("sink"))
    made = Sender(stack.enter_context(child(side, sink.answer())), sink)
    made.child.answer()
    made.sink.answer()
    return made


def _compare(
    senders: dict[str, Sender], what: str, size: int, count: int, turns: int
) -> Iterator[Result]:
    """Ours in both APIs against theirs, all of them in turn."""
    best = dict.fromkeys(SIDES, float("inf"))
    link = 0.0
    for turn in range(turns + 1):
        for side in SIDES if turn % 2 else reversed(SIDES):
            batch = what == "batch" and side != "theirs"
            doing = what if side != "theirs" or what != "batch" else "publisher"
            # A table that takes about as long as the loop.
            taken = senders[side].turn(doing, size, count * (10 if batch else 1))
            if turn:
                best[side] = min(best[side], taken)
        if what == "batch":
            link = max(link, _loopback())
    goal = 20.0 if what == "batch" else 1.0
    for side in SIDES[1:]:
        note = ""
        if what == "batch":
            sent = senders[side].size
            note = (
                f"{sent / best[side] / 1e9:.2f} GB/s; a bare socket carries {link / 1e9:.2f}, "
                f"which would be {best['theirs'] * link / sent:.1f}x"
            )
        yield Result(
            "put",
            f"{size} B {what}",
            "zenwire.aio" if side == "aio" else "zenwire",
            best[side],
            "put",
            "eclipse-zenoh",
            best["theirs"],
            goal,
            note,
        )


def _loopback() -> float:
    """Bytes a second from one process to another with nothing but a socket between them."""
    piece, pieces = bytes(65_482), 64 * PIECE // 65_482
    with child("drain") as drain:
        with socket.create_connection(("127.0.0.1", drain.answer())) as sock:
            start = time.perf_counter()
            for _ in range(pieces):
                sock.sendall(piece)
        end, size = drain.answer()
    return float(size / (end - start))
