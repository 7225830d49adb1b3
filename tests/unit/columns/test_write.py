from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.parity.rows import SCANNER
from tests.recorded import CAPTURES, batches
from zenwire.columns import COLUMNS, Spans, Writer, as_buffer, network
from zenwire.errors import EncodeError
from zenwire.wire import decode, decode_batch, encode, split_stream
from zenwire.wire.data import Del, Put
from zenwire.wire.network import Push
from zenwire.wire.transport import Fragment, Frame
from zenwire.wire.values import Priority, QoS, Resolution, WireExpr

BIG = b"a payload that is longer than a batch" * 10


def table(**columns: Any) -> pa.RecordBatch:
    types = {"payload": pa.binary(), "attachment": pa.binary(), "key": pa.string()}
    arrays = {
        n: v if isinstance(v, pa.Array) else pa.array(v, types.get(n)) for n, v in columns.items()
    }
    return pa.RecordBatch.from_pydict(arrays)


def written(writer: Writer, rows: pa.RecordBatch | pa.Table) -> list[bytes]:
    """The batches, without their prefixes."""
    found: list[bytes] = []
    for piece in writer.write(rows):
        data = bytes(piece.data)
        assert int(piece.ends[-1]) == len(data)
        found += [data[slice(*span)] for span in split_stream(data)]
    return found


def messages(writer: Writer, rows: pa.RecordBatch | pa.Table) -> list[Any]:
    return [m for batch in written(writer, rows) for m in decode_batch(batch)]


def test_one_put_is_what_the_object_codec_writes() -> None:
    push = Push(key=WireExpr(0, "demo/a"), body=Put(payload=b"hello"))
    (batch,) = written(Writer(initial_sn=5), table(key=["demo/a"], payload=[b"hello"]))
    assert batch == encode(Frame(reliable=True, sn=5)) + encode(push)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.stem)
@pytest.mark.parametrize("batch_size", [65_535, 2_000, 96])
def test_what_was_read_is_written_again(path: Path, batch_size: int) -> None:
    """Every recorded PUSH, through Arrow, byte for byte; fragments put together first."""
    plain = [b.data for b in batches(path) if not b.lowlatency]
    spans = Spans.of_lengths([len(data) for data in plain])
    buffer = as_buffer(b"".join(plain))
    for scan in SCANNER.scan(buffer, spans):
        rows = network(scan)
        rows = rows.filter(pc.equal(rows["message"], 0x1D))
        rows = rows.filter(pc.equal(rows["node_id"], 0))
        at = zip(rows["batch"].to_pylist(), rows["offset"].to_pylist(), strict=True)
        lengths = rows["length"].to_pylist()
        expected = [plain[b][o : o + n] for (b, o), n in zip(at, lengths, strict=True)]
        assert _pushes(written(Writer(batch_size=batch_size), rows), batch_size) == expected


def _pushes(wire: list[bytes], batch_size: int) -> list[bytes]:
    """The encoded network messages, after checking sizes and sequence numbers."""
    found: list[bytes] = []
    expected_sn: dict[int, int] = {}
    pieces = b""
    for batch in wire:
        assert len(batch) <= batch_size - 2
        for message in decode_batch(batch):
            if isinstance(message, Frame | Fragment):
                assert message.sn == expected_sn.get(message.priority, 0)
                expected_sn[message.priority] = message.sn + 1
            if isinstance(message, Fragment):
                assert message.first is (pieces == b"")
                pieces += message.payload
                if not message.more:
                    found.append(pieces)
                    pieces = b""
            elif isinstance(message, Push):
                found.append(encode(message))
    assert not pieces
    return found


def test_every_column() -> None:
    rows = table(
        key_scope=[0, 300, 7],
        key_suffix=["a/ü", None, "/x"],
        key_mapping=[True, False, True],
        body=[1, 2, None],
        payload=[b"p", None, b""],
        qos=[5, 0x19, None],
        encoding=[0, None, 5],
        encoding_schema=pa.array([b"s", None, None], pa.binary()),
        timestamp=[1, -1, None],
        timestamp_id=pa.array([b"\x01", b"\xff" * 16, None], pa.binary()),
        source_zid=pa.array([None, b"\x09\x08", None], pa.binary()),
        source_eid=[None, 2**32 - 1, None],
        source_sn=[None, 70_000, None],
        attachment=[b"", None, b"a" * 200],
    )
    first, second, third = (m for m in messages(Writer(), rows) if isinstance(m, Push))
    assert first.key == WireExpr(0, "a/ü")
    assert isinstance(first.body, Put)
    assert (first.body.encoding.id, first.body.encoding.schema) == (0, b"s")
    assert first.body.timestamp is not None
    assert first.body.timestamp.time == 1
    assert first.body.attachment == b""
    assert isinstance(second.body, Del)
    assert second.qos == QoS(0x19)
    assert second.body.timestamp is not None
    assert second.body.timestamp.time == 2**64 - 1
    assert second.body.source_info is not None
    assert (second.body.source_info.eid, second.body.source_info.sn) == (2**32 - 1, 70_000)
    assert (second.key.scope, second.key.mapping) == (300, 0)
    assert isinstance(third.body, Put)
    assert (third.body.encoding.id, third.body.attachment) == (5, b"a" * 200)


def test_priorities_have_frames_and_numbers_of_their_own() -> None:
    writer = Writer(initial_sn=126, resolution=Resolution.of(frame_sn=8))
    qos = [5, 5, 1, 1, 5, 5, 1]
    found = messages(writer, table(key=["k"] * 7, payload=[b"x"] * 7, qos=qos))
    frames = [(m.priority, m.sn) for m in found if isinstance(m, Frame)]
    assert frames == [(5, 126), (1, 126), (5, 127), (1, 127)]
    assert [m.qos.raw for m in found if isinstance(m, Push)] == qos
    assert writer.sns.tolist() == [126, 0, 126, 126, 126, 0, 126, 126]


def test_express_rows_end_their_batch() -> None:
    found = written(Writer(), table(key=["k"] * 4, payload=[b"x"] * 4, qos=[5, 0x15, 5, 5]))
    assert [len(decode_batch(batch)) - 1 for batch in found] == [2, 2]


@pytest.mark.parametrize("size", range(60, 75))
def test_batches_are_filled_to_the_byte(size: int) -> None:
    """Ten-byte messages behind a two-byte FRAME: as many as fit, never a byte too many."""
    rows = table(key_scope=[1] * 50, payload=[b"123456"] * 50)
    found = written(Writer(batch_size=size), rows)
    assert {len(batch) for batch in found[:-1]} == {2 + (size - 4) // 10 * 10}


def test_a_row_that_fills_a_batch_and_one_that_does_not_fit() -> None:
    room = 100 - 2 - 2 - 4  # prefix, FRAME, the rest of the message
    fits, too_large = b"x" * room, b"x" * (room + 1)
    found = messages(Writer(batch_size=100), table(key_scope=[1, 1], payload=[fits, too_large]))
    assert [type(m) for m in found] == [Frame, Push, Fragment, Fragment]
    assert [m.sn for m in found if isinstance(m, Frame | Fragment)] == [0, 1, 2]
    last = decode(found[2].payload + found[3].payload, "network")
    assert last.body.payload == too_large


def test_fragments_keep_the_order_and_the_rich_parts() -> None:
    rows = table(
        key=["a", "b", "c"],
        payload=[b"1", BIG, b"2"],
        qos=[7, 7, 7],
        attachment=[None, b"att", None],
        timestamp=[None, 9, None],
        timestamp_id=pa.array([None, b"\x01", None], pa.binary()),
        encoding=[None, 5, None],
    )
    found = messages(Writer(batch_size=96, reliable=False), rows)
    assert {m.priority for m in found if isinstance(m, Frame | Fragment)} == {Priority.BACKGROUND}
    assert not any(m.reliable for m in found if isinstance(m, Frame | Fragment))
    whole = b"".join(m.payload for m in found if isinstance(m, Fragment))
    big = decode(whole, "network")
    assert (big.key.suffix, big.body.payload, big.body.attachment) == ("b", BIG, b"att")
    assert (big.body.encoding.id, big.body.timestamp.time) == (5, 9)
    order = [getattr(m, "first", None) for m in found]
    assert order[:2] == [None, None]
    assert isinstance(found[-1], Push)


def test_datagrams_have_no_prefix() -> None:
    writer = Writer(prefix=0, batch_size=64)
    rows = table(key=["k"] * 40, payload=[b"x" * 20] * 39 + [BIG])
    count = 0
    for piece in writer.write(rows):
        start = 0
        for end in piece.ends.tolist():
            assert end - start <= 64
            decode_batch(piece.data[start:end])
            start = end
            count += 1
    assert count > 20


def test_more_than_fits_at_once() -> None:
    rows = table(key_scope=[1] * 30_000, payload=[b"x" * 100] * 30_000)
    pieces = [(len(w.data), w.rows) for w in Writer().write(rows)]
    assert len(pieces) > 1
    assert [r for _, r in pieces][-1] == 30_000
    assert sum(1 for m in messages(Writer(), rows) if isinstance(m, Push)) == 30_000


def test_tables_of_several_chunks_and_slices() -> None:
    one = table(key=["a", "b"], payload=[b"1", b"2"])
    two = table(key=["x", "c", "d"], payload=[b"x", b"3", b"4"]).slice(1)
    found = messages(Writer(), pa.Table.from_batches([one, two]))
    pushes = [m for m in found if isinstance(m, Push)]
    assert [m.key.suffix for m in pushes] == ["a", "b", "c", "d"]
    assert [m.body.payload for m in pushes if isinstance(m.body, Put)] == [b"1", b"2", b"3", b"4"]


def test_nothing_to_write() -> None:
    assert list(Writer().write(table(key=[], payload=[]))) == []


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"key": ["k"]}, "payload"),
        ({"key": ["k"], "payload": [None]}, "without a payload"),
        ({"payload": [b""]}, "without a key"),
        ({"key_scope": [0], "payload": [b""]}, "has no key"),
        ({"key": [None], "payload": [b""]}, "has no key"),
        ({"key_scope": [65_536], "payload": [b""]}, "above 65535"),
        ({"key_scope": [-1], "payload": [b""]}, "outside"),
        ({"key": ["k"], "key_scope": [1], "payload": [b""]}, "not both"),
        ({"key": ["k" * 65_536], "payload": [b""]}, "more than 65535"),
        ({"key": ["k"], "payload": [b""], "body": [3]}, "'body' is 1"),
        ({"key": ["k"], "payload": [b"x"], "body": [2]}, "DEL carries no payload"),
        ({"key": ["k"], "payload": [b""], "qos": [256]}, "above 255"),
        ({"key": ["k"], "payload": [b""], "encoding": [65_536]}, "above 65535"),
        ({"key": ["k"], "payload": [b""], "encoding_schema": [b"s"]}, "go together"),
        ({"key": ["k"], "payload": [b""], "timestamp": [1]}, "go together"),
        ({"key": ["k"], "payload": [b""], "timestamp": [1], "timestamp_id": [b""]}, "1 to 16"),
        ({"key": ["k"], "payload": [b""], "timestamp": [1], "timestamp_id": [b"\1\0"]}, "zero"),
        ({"key": ["k"], "payload": [b""], "source_zid": [b"\1"]}, "go together"),
        ({"key": [""], "payload": [b""]}, "has no key"),
        ({"key": ["k"], "payload": [None], "body": [2], "encoding": [4]}, "no encoding"),
        ({"key_suffix": [b"k"], "key_scope": [1], "payload": [b""]}, "cannot be binary"),
        ({"key": ["k"], "payload": pa.array([1])}, "cannot be int64"),
        ({"key": ["k"], "payload": [b""], "qos": [5.5]}, "cannot be double"),
        ({"key": ["k"], "payload": [b""], "qos": [True]}, "cannot be bool"),
        ({"key": ["k"], "payload": [b""], "qos": pa.array([2**64 - 1], pa.uint64())}, "'qos'"),
        ({"key": ["k"], "payload": [b""], "key_mapping": [1]}, "cannot be int64"),
        ({"key": ["k"], "payload": [b""], "body": ["put"]}, "cannot be string"),
        ({"key": ["k"], "payload": [b""], "node_id": ["x"]}, "cannot be string"),
        ({"key": ["k"], "payload": [b""], "node_id": [7]}, "'node_id' is not written"),
        ({"key": ["k"], "payload": [b""], "shm": [True]}, "'shm' is not written"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_is_written(
    columns: dict[str, list[Any]], says: str
) -> None:
    writer = Writer(initial_sn=3)
    with pytest.raises(EncodeError, match=says):
        list(writer.write(table(**columns)))
    assert set(writer.sns.tolist()) == {3}


def test_two_columns_of_one_name() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(["k"]), pa.array(["k"])], names=["key", "key"])
    with pytest.raises(EncodeError, match="several columns"):
        list(Writer().write(rows))


def test_types_that_are_as_good() -> None:
    """Text is a payload too, nulls of any type are absent, and uint64 keeps its bits."""
    rows = table(
        key=pa.array(["k"], pa.large_string()),
        payload=pa.array(["text"]),
        attachment=pa.nulls(1),
        timestamp=pa.array([2**64 - 1], pa.uint64()),
        timestamp_id=pa.array([b"\x01"], pa.large_binary()),
        qos=pa.array([4], pa.uint8()),
    )
    (push,) = (m for m in messages(Writer(), rows) if isinstance(m, Push))
    assert isinstance(push.body, Put)
    assert (push.body.payload, push.qos.raw) == (b"text", 4)
    assert push.body.timestamp is not None
    assert push.body.timestamp.time == 2**64 - 1


def test_a_row_of_megabytes() -> None:
    payload = bytes(range(256)) * 16_384
    found = messages(Writer(), table(key=["k"], payload=[payload]))
    whole = b"".join(m.payload for m in found if isinstance(m, Fragment))
    assert decode(whole, "network").body.payload == payload


def test_batch_sizes_that_make_no_sense() -> None:
    for size in (0, 20, 70_000):
        with pytest.raises(EncodeError):
            Writer(batch_size=size)


def test_the_columns_are_those_of_the_definitions() -> None:
    assert set(COLUMNS) == {
        "key_scope",
        "key_suffix",
        "key_mapping",
        "qos",
        "timestamp",
        "timestamp_id",
        "encoding",
        "encoding_schema",
        "source_zid",
        "source_eid",
        "source_sn",
        "attachment",
        "payload",
    }
