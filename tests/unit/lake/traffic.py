"""Samples of a small fleet, always the same for a seed: every encoding that has a view."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pyarrow as pa

from zenwire.columns.samples import SAMPLES
from zenwire.wire.encoding import ENCODINGS

__all__ = ["START", "samples"]

START = 1_772_366_390_000_000_000
"""2026-03-01T11:59:50Z: an hour ends after ten seconds."""
_STEP = 5_000_000
_KEYS = 7


def samples(first: int, count: int, *, spool: str = "a", step: int = _STEP) -> pa.RecordBatch:
    """Rows with these offsets. Each key goes through its kinds of payload in turn."""
    return pa.RecordBatch.from_pylist(
        [_row(i, spool, step) for i in range(first, first + count)], schema=SAMPLES
    )


def _row(i: int, spool: str, step: int) -> dict[str, Any]:
    chance = random.Random(i)
    time = START + i * step
    encoding, schema, payload = _payload(i, chance)
    delete = i % 50 == 49
    late = time - chance.randrange(1_000_000, 3_000_000)
    stamp = (late // 10**9 << 32) | (late % 10**9 << 32) // 10**9
    return {
        "key": f"fleet/{spool}{i % _KEYS}/{('pose', 'event', 'state')[i % 3]}",
        "kind": int(delete),
        "payload": b"" if delete else payload,
        "encoding": None if delete else ENCODINGS.index(encoding),
        "encoding_schema": None if delete else schema,
        "timestamp": stamp if i % 4 else None,
        "timestamp_id": b"\x01" * 4 if i % 4 else None,
        "source_zid": None,
        "source_eid": None,
        "source_sn": None,
        "attachment": None,
        "qos": None,
        "reliable": True,
        "time": time,
    }


def _payload(i: int, chance: random.Random) -> tuple[str, bytes | None, bytes]:
    match i % 6:
        case 0:
            said = {"i": i, "what": chance.choice(["docked", "lost"])}
            return "application/json", None, json.dumps(said).encode()
        case 1:
            return "text/plain", None, f"text {i}".encode()
        case 2:
            return "application/cbor", None, b"\xa1\x61i\x1a" + i.to_bytes(4, "big")
        case 3:
            return "zenoh/serialized", b"(f64, u32)", struct.pack("<dI", i / 2, i)
        case 4:
            twist = b"\0\1\0\0" + struct.pack("<6d", i, 0, 0, 0, 0, 1)
            return "application/cdr", b"geometry_msgs/msg/Twist", twist
    return "zenoh/bytes", None, chance.randbytes(40)
