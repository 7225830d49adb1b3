"""Rows that are alike are packed as those that are written field by field, byte for byte."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from zenwire.columns.alike import Alike
from zenwire.columns.pack import Packer
from zenwire.columns.publish import Rows, Stamped
from zenwire.transport import Straight
from zenwire.wire.batch import decode_batch
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Push
from zenwire.wire.repeat import FrameHeads
from zenwire.wire.values import CongestionControl, Mapping, Priority, QoS, WireExpr

DATA = QoS.of(Priority.DATA, CongestionControl.BLOCK, express=False)
HIGH = QoS.of(Priority.REAL_TIME, CongestionControl.DROP, express=False)
KEYS = (WireExpr(0, "a/b"), WireExpr(300, "", Mapping.RECEIVER), WireExpr(7, "/" + "c" * 200))
SIZES = {
    "small": [8] * 500,
    "none": [0] * 40,
    "any": [random.Random(n).randrange(1, 700) for n in range(300)],
    "about one batch": [960, 970, 980, 985, 990, 992, 994, 996],
}


def rows_of(sizes: list[int], encoding: Encoding, qos: QoS) -> Rows:
    # A slice, so that the first offset is not 0.
    payloads = [bytes([n & 0xFF]) * size for n, size in enumerate([3, *sizes, 5])]
    table = pa.table({"payload": pa.array(payloads, pa.binary())}).slice(1, len(sizes))
    return Rows(table, Stamped(qos.raw, True, encoding, own=True))


@pytest.mark.parametrize("qos", [DATA, HIGH])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("encoding", [Encoding(), Encoding(10, b"schema")])
def test_the_same_bytes(sizes: list[int], key: WireExpr, qos: QoS, encoding: Encoding) -> None:
    rows = rows_of(sizes, encoding, qos)
    alike, fields = rows.publications(slice(None), [key], qos), rows.fields(slice(None), [key], qos)
    assert isinstance(alike, Alike)
    heads = FrameHeads(qos.priority, True)
    # Numbers wrap within the rows.
    straight = Straight(0, heads, 126, 0x7F, 1000 - len(heads.head(0x7F)), 2)
    one, other = Packer(), Packer()
    done = 0
    while done < alike.count:
        made = one.batches(alike, done, straight, qos, True)
        like = other.batches(fields, done, straight, qos, True)
        assert (bytes(made.data), made.batches, made.messages) == (
            bytes(like.data),
            like.batches,
            like.messages,
        )
        piece, same = one.pack(alike, done, qos, 1000), other.pack(fields, done, qos, 1000)
        assert (piece.data, piece.start, piece.end) == (same.data, same.start, same.end)
        assert alike.message(done) == fields.message(done)
        # What is too large for a batch goes out in fragments.
        done += made.messages or 1


def test_many_batches_are_what_was_given() -> None:
    sizes = SIZES["any"] * 40
    rows = rows_of(sizes, Encoding(), DATA)
    alike = rows.publications(slice(None), [KEYS[0]], DATA)
    packer, found, done = Packer(), [], 0
    straight = Straight(0, FrameHeads(Priority.DATA, True), 0, 0xFFFF, 40_000, 2)
    while done < alike.count:
        made = packer.batches(alike, done, straight, DATA, True)
        assert made.messages
        data, batches = bytes(made.data), 0
        while data:
            end = 2 + int.from_bytes(data[:2], "little")
            found += [m for m in decode_batch(data[2:end]) if isinstance(m, Push)]
            data, batches = data[end:], batches + 1
        assert batches == made.batches
        done += made.messages
    assert found == [alike.message(n) for n in range(alike.count)]


@pytest.mark.parametrize(
    "payload",
    [
        pa.array([b"a", None, b"b"], pa.binary()),
        pa.array([b"a", b"b"], pa.large_binary()),
    ],
)
def test_what_is_not_plain_is_written_field_by_field(payload: pa.Array) -> None:
    rows = Rows(pa.table({"payload": payload}), Stamped(DATA.raw, True, Encoding(), own=True))
    assert not isinstance(rows.publications(slice(None), [KEYS[0]], DATA), Alike)


def test_express_is_a_batch_for_each() -> None:
    express = QoS.of(Priority.DATA, CongestionControl.BLOCK, express=True)
    rows = rows_of([8] * 10, Encoding(), express)
    made = Packer().batches(
        rows.publications(slice(None), [KEYS[0]], express),
        0,
        Straight(0, FrameHeads(Priority.DATA, True), 0, 0xFF, 1000, 2),
        express,
        True,
    )
    assert (made.batches, made.messages) == (10, 10)
