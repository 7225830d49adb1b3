"""``zenwire inspect CAPTURE``: who said what, line by line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from zenwire.capture.conversation import (
    KINDS,
    NETWORK_COLUMNS,
    TRANSPORT_COLUMNS,
    Conversation,
    Entry,
    Scan,
    Scanned,
    Tally,
    Want,
    capture_files,
    follow,
    windows,
)
from zenwire.cli.diagnostics import tell
from zenwire.cli.escaping import json_text
from zenwire.cli.inspect_lines import Lines, as_json
from zenwire.columns import Scanner, Spans, malformed, network, transport
from zenwire.errors import KeyExprError
from zenwire.keyexpr import canonize

if TYPE_CHECKING:
    import argparse

    import pyarrow as pa

__all__ = ["inspect_capture", "wanted"]

POLL: Final = 0.2
"""Seconds between two looks at a file that grows."""

_GROUPS: Final = {
    "all": KINDS,
    "sample": ("put", "delete"),
    "session": ("init", "open", "close", "join", "scout", "hello"),
}


def wanted(kinds: str | None, key: str | None, zid: str | None) -> Want:
    """What the arguments ask for. Raises ValueError for what there is not."""
    chosen: set[str] | None = None
    if kinds is not None:
        chosen = set()
        for word in filter(None, kinds.replace(",", " ").lower().split()):
            if word not in _GROUPS and word not in KINDS:
                there = ", ".join(sorted({*KINDS, *_GROUPS}))
                raise ValueError(f"--kind {word}: there are {there}")
            chosen.update(_GROUPS.get(word, (word,)))
    if key is not None:
        try:
            key = canonize(key)
        except KeyExprError as e:
            raise ValueError(f"--key {e}") from None
    if zid is not None:
        zid = zid.lower()
        if not zid or not set(zid) <= set("0123456789abcdef"):
            raise ValueError(f"--session {zid!r}: a ZenohID, or its first digits, in hexadecimal")
    return Want(None if chosen is None else frozenset(chosen), key, zid)


def inspect_capture(path: Path, args: argparse.Namespace, *, colour: bool) -> int:
    """Print it. Exit code 1 if something did not decode."""
    conversation = Conversation(column_scan(), wanted(args.kind, args.key, args.session))
    limit = args.limit if args.limit and args.limit > 0 else sys.maxsize
    lines = Lines(colour=colour)
    shown = 0
    stopped = False
    try:
        for entry in _entries(path, conversation, follows=args.follow):
            if shown == limit:
                stopped = True
                break
            shown += 1
            for line in (
                [json_text(as_json(entry), ascii_only=True)] if args.json else lines.of(entry)
            ):
                print(line, flush=args.follow)
    except KeyboardInterrupt:
        if not args.follow:
            raise
    sys.stdout.flush()
    _say(_summary(conversation, shown, stopped=stopped))
    return 1 if conversation.tally.malformed else 0


def _say(text: str) -> None:
    tell("inspect", text)


def column_scan() -> Scan:
    """The columnar reader, as conversations take it."""
    scanner = Scanner()

    def scan(data: pa.Array, low_latency: bool) -> Iterator[Scanned]:
        _, offsets, values = data.buffers()
        edges = np.frombuffer(offsets, np.int32)[data.offset : data.offset + len(data) + 1]
        buffer = np.frombuffer(values, np.uint8) if values else np.zeros(0, np.uint8)
        for found in scanner.scan(buffer, Spans.of_offsets(edges.copy()), low_latency=low_latency):
            yield Scanned(
                network(found, NETWORK_COLUMNS),
                transport(found, TRANSPORT_COLUMNS),
                malformed(found),
            )

    return scan


def _entries(path: Path, conversation: Conversation, *, follows: bool) -> Iterator[Entry]:
    if follows:
        for window in follow(path, _wait):
            yield from conversation.feed(window)
    else:
        for file in capture_files(path):
            for window in windows(file):
                yield from conversation.feed(window)
    yield from conversation.finish()


def _wait() -> bool:
    time.sleep(POLL)
    return True


def _summary(conversation: Conversation, shown: int, *, stopped: bool) -> str:
    tally = conversation.tally
    sessions = sum(link.talked for link in conversation.links)
    kinds = [(kind, n) for kind, n in tally.kinds.most_common() if kind != "frame"]
    messages = sum(n for _, n in kinds)
    named = ", ".join(f"{n:,} {kind}" for kind, n in kinds)
    told = [
        _count(sessions, "session"),
        _count(messages, "message") + (f" ({named})" if named else ""),
        _losses(tally),
        f"{tally.malformed:,} malformed" if tally.malformed else "nothing malformed",
        f"{_count(tally.batches, 'batch', 'batches')} of {tally.batch_bytes:,} bytes",
    ]
    other = tally.accounts["not_zenoh"]
    if other:
        told.append(f"{other:,} bytes of other traffic")
    if tally.first_time is not None and tally.last_time is not None:
        told.append(f"{(tally.last_time - tally.first_time) / 1e9:.3f} s")
    end = f"; stopped after {shown:,} lines (--limit), the rest was not read" if stopped else ""
    return "; ".join(told) + end


def _losses(tally: Tally) -> str:
    gaps = f"; {_count(tally.not_sent, 'gap')} not sent here" if tally.not_sent else ""
    return _lost(tally) + gaps


def _lost(tally: Tally) -> str:
    total = sum(tally.losses.values())
    if not total:
        return "no losses"
    named = ", ".join(f"{n:,} {kind}" for kind, n in tally.losses.most_common())
    missing = f", {tally.missing:,} bytes missing" if tally.missing else ""
    return f"{_count(total, 'loss', 'losses')} ({named}{missing})"


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"
