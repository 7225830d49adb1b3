"""Two readers, one definition: equal rows, or the same fault at the same offset."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.parity.rows import SCANNER, Found, by_columns, by_objects, found_in
from tests.recorded import CAPTURES, batches
from zenwire.columns.scan import Scan, Spans, as_buffer
from zenwire.wire import encode, encode_batch
from zenwire.wire.define import Spec, messages
from zenwire.wire.transport import Frame

VECTORS = sorted((Path(__file__).parents[1] / "vectors").glob("*/*/*.json"))
NETWORK = messages("network")
TRANSPORT = messages("transport")
FRAME = encode(Frame(reliable=True, sn=7))

EXAMPLES = settings(max_examples=150, derandomize=True)


def same(data: bytes, *, low_latency: bool = False) -> Found:
    by_object = by_objects(data, low_latency=low_latency)
    by_column = by_columns(data, low_latency=low_latency)
    assert by_column == by_object, data.hex()
    return by_object


@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.stem)
def test_recorded_batches(path: Path) -> None:
    recorded = batches(path)
    assert recorded
    for batch in recorded:
        assert same(batch.data, low_latency=batch.lowlatency).fault is None


@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.stem)
def test_many_batches_in_one_call(path: Path) -> None:
    """What a batch gives does not depend on the others in the buffer."""
    plain = [b.data for b in batches(path) if not b.lowlatency][:100]
    buffer = as_buffer(b"".join(plain))
    spans = Spans.of_lengths([len(data) for data in plain])
    (scan,) = SCANNER.scan(buffer, spans)
    assert len(scan.bad.batch) == 0
    alone = [
        row | {"at": row["at"] + start, "end": row["end"] + start}
        for data, start in zip(plain, spans.starts.tolist(), strict=True)
        for row in by_objects(data).rows
    ]
    assert found_in(scan, 0).rows == alone


@pytest.mark.parametrize("path", VECTORS, ids=lambda p: "/".join(p.parts[-3:]))
def test_vectors(path: Path) -> None:
    """Every vector, as what it is or inside of a FRAME."""
    data = bytes.fromhex(json.loads(path.read_text())["hex"])
    scope = path.parts[-3]
    same(data)
    same(data, low_latency=True)
    if scope == "network":
        same(FRAME + data)
        same(FRAME + data + data)
    elif scope == "declare":
        same(FRAME + b"\x1e" + data)
    elif scope == "data":
        for carrier in (b"\x5d\x01", b"\x5c\x01\x01", b"\x5b\x01\x01", b"\x5b\x01\x01\x04"):
            same(FRAME + carrier + data)


@pytest.mark.parametrize("spec", [*NETWORK, *TRANSPORT], ids=strategies.label)
@given(data=st.data())
@EXAMPLES
def test_every_message(spec: Spec, data: st.DataObject) -> None:
    """Sound, then mutilated; alone, and with something after it."""
    head = FRAME if spec.scope == "network" else b""
    sound = head + data.draw(strategies.encoded(spec.cls))
    assert same(sound).fault is None
    if spec.scope == "network":
        assert same(sound[len(head) :], low_latency=True).fault is None
    same(data.draw(strategies.mutilated(sound)))
    same(data.draw(strategies.mutilated(sound[len(head) :])), low_latency=True)


@given(data=st.data())
@settings(max_examples=400, derandomize=True)
def test_batches(data: st.DataObject) -> None:
    sound = encode_batch(data.draw(strategies.batch()))
    assert same(sound).fault is None
    for _ in range(3):
        same(data.draw(strategies.mutilated(sound)))


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=8))
@settings(max_examples=300, derandomize=True)
def test_any_bytes(pieces: list[bytes]) -> None:
    """Bytes that were never a batch; and a bad batch takes no other down."""
    for piece in pieces:
        same(piece)
        same(piece, low_latency=True)
        same(FRAME + piece)
    (scan,) = SCANNER.scan(
        as_buffer(b"".join(pieces)), Spans.of_lengths([len(piece) for piece in pieces])
    )
    wrong = [i for i, piece in enumerate(pieces) if by_objects(piece).fault]
    assert scan.bad.batch.tolist() == wrong
    assert _rows_per_batch(scan, len(pieces)) == [len(by_objects(p).rows) for p in pieces]


def _rows_per_batch(scan: Scan, count: int) -> list[int]:
    batch = scan.transport.fixed("batch")
    rows = np.bincount(batch, minlength=count)
    rows += np.bincount(batch[scan.network.fixed("frame")], minlength=count)
    return [int(n) for n in rows]
