"""Decode two recorded streams and print what is in them."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import zip_longest
from pathlib import Path

from zenwire.wire.declare import DeclareKeyExpr
from zenwire.wire.define import spec_of
from zenwire.wire.inspect.dissect import Form, Section, dissect
from zenwire.wire.inspect.dump import Dump
from zenwire.wire.network import Declare, Push, Request, Response
from zenwire.wire.values import Mapping, WireExpr

DATA = Path(__file__).parent / "data"
# File, what it is, and the batch that is shown field by field.
STREAMS = (
    ("publisher.zenoh", "a client publishes to a router", 18),
    ("queryable.zenoh", "a peer answers queries", 17),
)
ROWS = 8


def main() -> int:
    print("Two recorded Zenoh sessions, one direction each, decoded by zenwire alone.")
    for name, what, shown in STREAMS:
        path = DATA / name
        sections = list(dissect(path.read_bytes(), Form.STREAM))
        print(f"\n== {name}: {what} ({path.stat().st_size:,} bytes, {len(sections)} batches)\n")
        batch = sections[shown - 1]
        print("\n".join(Dump().lines(batch, batch.entries)))
        print()
        print_summary(sections)
    print("\nMore of it: zenwire inspect examples/data/publisher.zenoh")
    return 0


def print_summary(sections: list[Section]) -> None:
    """Messages by kind on the left, keys on the right."""
    kinds: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    aliases: dict[int, str] = {}
    for entry in (entry for section in sections for entry in section.entries):
        if entry.message is None:
            continue
        kind = kind_of(entry.message)
        kinds[kind] += 1
        sizes[kind] += entry.end - entry.start
        match entry.message:
            case Declare(body=DeclareKeyExpr(expr_id=expr_id, key=key)):
                aliases[expr_id] = text_of(key, aliases)
            case Push(key=key) | Request(key=key) | Response(key=key):
                keys[text_of(key, aliases)] += 1
    left = table("messages", kinds, sizes)
    right = table("keys", keys)
    for one, other in zip_longest(left, right, fillvalue=""):
        print(f"{one:<46}{other}".rstrip())


def table(title: str, counts: Counter[str], sizes: Counter[str] | None = None) -> list[str]:
    """The most frequent names, with their count, and their bytes if there are any."""
    lines = [f"{title:<24}{'count':>7}" + (f"{'bytes':>8}" if sizes else "")]
    for name, n in counts.most_common(ROWS):
        lines.append(f"{name:<24}{n:>7,}" + (f"{sizes[name]:>8,}" if sizes else ""))
    if len(counts) > ROWS:
        lines.append(f"and {len(counts) - ROWS} more")
    return lines


def kind_of(message: object) -> str:
    """``PUSH PUT``: the names of a message and of what it carries."""
    name = spec_of(type(message)).name
    body = getattr(message, "body", None)
    carried = body is not None and not isinstance(body, int | bytes) and kind_of(body)
    return f"{name} {carried}" if carried else name


def text_of(key: WireExpr, aliases: dict[int, str]) -> str:
    """The whole key where the stream itself declared its scope."""
    if key.scope and key.mapping is Mapping.RECEIVER:
        return str(key)
    return aliases.get(key.scope, "") + key.suffix


if __name__ == "__main__":
    sys.exit(main())
