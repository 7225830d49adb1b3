"""What mutation starts from: the test vectors and the recorded batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.fields import Field, fields_of, in_batch, in_message
from tests import recorded
from zenwire.wire import LOW_LATENCY_PREFIX, compress_batch, frame_stream
from zenwire.wire.buffer import Reader
from zenwire.wire.linkstate import LinkStateList
from zenwire.wire.objects import codec_of

__all__ = ["Seed", "batches", "compressed", "linkstates", "low_latency", "messages", "streams"]

_VECTORS = Path(recorded.__file__).parent / "vectors"
_LONGEST = 1500
_PER_CAPTURE = 40


class Seed:
    """Bytes, and where their fields are."""

    __slots__ = ("_fields", "_read", "data")

    def __init__(self, data: bytes, read: Callable[[Reader], Any] | None = None) -> None:
        self.data = data
        self._read = read
        self._fields: tuple[Field, ...] | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        if self._fields is None:
            self._fields = fields_of(self.data, self._read) if self._read else ()
        return self._fields


@cache
def _vectors(folder: str) -> tuple[bytes, ...]:
    """The bytes of a folder's vectors, good and bad, that are not long."""
    found = []
    for path in sorted((_VECTORS / folder).rglob("*.json")):
        raw = bytes.fromhex(json.loads(path.read_text(encoding="utf-8"))["hex"])
        if len(raw) <= _LONGEST:
            found.append(raw)
    return tuple(found)


@cache
def _recorded(*, low_latency: bool) -> tuple[bytes, ...]:
    """Some batches of each capture, no two of them alike in length and first byte."""
    found: list[bytes] = []
    for path in recorded.CAPTURES:
        alike: dict[tuple[int, int], bytes] = {}
        for batch in recorded.batches(path):
            if batch.lowlatency is low_latency and len(batch.data) <= _LONGEST:
                alike.setdefault((len(batch.data), batch.data[0]), batch.data)
        found += list(alike.values())[:_PER_CAPTURE]
    return tuple(found)


# What a message is put into to become a batch.
_FRAME = bytes.fromhex("2501")
_AROUND = {
    "network": [_FRAME],
    "declare": [_FRAME + bytes.fromhex("1e")],
    "data": [
        _FRAME + bytes.fromhex("3d000161"),
        _FRAME + bytes.fromhex("3c01000161"),
        _FRAME + bytes.fromhex("3b01000161"),
        _FRAME + bytes.fromhex("3b0100016104"),
    ],
}


@cache
def messages(scope: str) -> tuple[Seed, ...]:
    return tuple(Seed(data, in_message(scope)) for data in _vectors(scope))


@cache
def batches() -> tuple[Seed, ...]:
    """Recorded ones, and every message in a batch of its own."""
    found = [*_vectors("batch/plain"), *_vectors("transport"), *_recorded(low_latency=False)]
    for scope, heads in _AROUND.items():
        found += [head + data for head in heads for data in _vectors(scope)]
    return tuple(Seed(data, in_batch) for data in found)


@cache
def low_latency() -> tuple[Seed, ...]:
    found = [*_vectors("batch/low_latency"), *_recorded(low_latency=True), *_vectors("network")]
    found += [b"\x1e" + data for data in _vectors("declare")]
    found += [b"\x3d\x00\x01a" + data for data in _vectors("data")]
    return tuple(Seed(data, in_message("network")) for data in found)


@cache
def streams(prefix: int) -> tuple[Seed, ...]:
    """Batches with their lengths, a few in each."""
    low = prefix == LOW_LATENCY_PREFIX
    found = [*_vectors("batch/low_latency_stream" if low else "batch/stream")]
    some = [seed.data for seed in (low_latency() if low else batches())]
    fives = (some[i : i + 5] for i in range(0, len(some), 5))
    found += [b"".join(frame_stream(data, prefix) for data in five) for five in fives]
    return tuple(map(Seed, found))


@cache
def compressed() -> tuple[Seed, ...]:
    found = [*_vectors("batch/compressed")]
    found += [compress_batch(data) for data in _recorded(low_latency=False)]
    found += [compress_batch(data * 5) for data in _recorded(low_latency=False)[:60]]
    return tuple(map(Seed, found))


@cache
def linkstates() -> tuple[Seed, ...]:
    found = (*_vectors("linkstate"), *_vectors("struct/link_state_list"))
    return tuple(Seed(data, codec_of(LinkStateList).read) for data in found)
