"""Tables for the columnar writer, sane and not, and what must come of them."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from fuzz.against import MismatchError, equal
from tests.parity.rows import SCANNER
from zenwire import columns
from zenwire.columns import Writer, as_buffer
from zenwire.errors import EncodeError
from zenwire.wire import LOW_LATENCY_PREFIX, STREAM_PREFIX, decode_batch, split_stream
from zenwire.wire.data import Del, Put
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Push
from zenwire.wire.objects import decode
from zenwire.wire.structs import SourceInfo, Timestamp
from zenwire.wire.transport import Fragment, Frame
from zenwire.wire.values import Mapping, QoS, Resolution, WireExpr, ZenohId

__all__ = ["SEEDS", "written"]

SEEDS = tuple(bytes([i]) * 4 for i in range(16))
Row = dict[str, Any]


def written(data: bytes) -> None:
    """The bytes decide on a table; it is written, and read back as it was."""
    rng = Random(data)
    nasty = rng.random() < 0.5
    table = _table(rng, nasty=nasty)
    prefix = rng.choice((STREAM_PREFIX, STREAM_PREFIX, LOW_LATENCY_PREFIX))
    sizes = (32 + prefix, 100, 1000, 65_535)
    resolution = Resolution.of(rng.choice((8, 16, 32, 64)))
    first = rng.randrange(resolution.sn_modulus)
    writer = Writer(
        initial_sn=first,
        batch_size=rng.choice(sizes),
        prefix=prefix,
        reliable=rng.random() < 0.5,
        resolution=resolution,
    )
    before = writer.sns.copy()
    out = b""
    rows = 0
    try:
        for piece in writer.write(table):
            equal("ends", list(piece.ends), _ends(bytes(piece.data), prefix))
            equal("rows", rows <= piece.rows <= table.num_rows, True)
            rows = piece.rows
            out += piece.data
    except EncodeError as e:
        equal("nothing before an error", (out, list(writer.sns)), (b"", list(before)))
        if not nasty:
            raise MismatchError("a sane table is refused", str(e)) from e
        raise
    equal("rows", rows, table.num_rows)
    modulus = resolution.sn_modulus
    found = _messages(out, prefix, dict.fromkeys(range(8), first), modulus)
    expected = [_push(row) for row in table.to_pylist()]
    equal("messages", len(found), len(expected))
    for got, wanted in zip(found, expected, strict=True):
        equal("message", got, wanted)
    _scanned(out, prefix)


def _ends(data: bytes, prefix: int) -> list[int]:
    return [end for _, end in split_stream(data, prefix)]


def _messages(data: bytes, prefix: int, sns: dict[int, int], modulus: int) -> list[Push]:
    """All publications, fragments put together; sequence numbers have no gaps."""
    found: list[Push] = []
    pieces = b""
    for start, end in split_stream(data, prefix):
        for message in decode_batch(data[start:end]):
            if isinstance(message, Frame | Fragment):
                lane = message.priority
                equal("sn", message.sn, sns[lane])
                sns[lane] = (sns[lane] + 1) % modulus
            if isinstance(message, Fragment):
                equal("first", message.first, not pieces)
                pieces += message.payload
                if not message.more:
                    found.append(decode(pieces, "network"))
                    pieces = b""
            elif not isinstance(message, Frame):
                assert isinstance(message, Push), message
                found.append(message)
    equal("last fragment", pieces, b"")
    return found


def _scanned(data: bytes, prefix: int) -> None:
    buffer = as_buffer(data)
    spans, rest = columns.split(buffer, prefix=prefix)
    equal("rest", rest, len(data))
    for scan in SCANNER.scan(buffer, spans):
        equal("faults", scan.bad.fault.tolist(), [])


def _push(row: Row) -> Push:
    """What a row says."""

    def given(name: str, default: Any) -> Any:
        value = row.get(name)
        return default if value is None else value

    key = row.get("key", row.get("key_suffix")) or ""
    mapping = given("key_mapping", True)  # what absence means
    expr = WireExpr(
        given("key_scope", 0), _text(key), Mapping.SENDER if mapping else Mapping.RECEIVER
    )
    clock, source = row.get("timestamp_id"), row.get("source_zid")
    timestamp = clock and Timestamp(time=row["timestamp"] % 2**64, id=ZenohId(clock))
    source_info = source and SourceInfo(
        zid=ZenohId(source), eid=row["source_eid"], sn=row["source_sn"]
    )
    common: Any = {
        "timestamp": timestamp or None,
        "source_info": source_info or None,
        "attachment": row.get("attachment"),
    }
    body: Put | Del
    if given("body", 1) == 2:
        body = Del(**common)
    else:
        encoding = Encoding(given("encoding", 0), row.get("encoding_schema"))
        payload = row["payload"]
        payload = payload.encode() if isinstance(payload, str) else payload
        body = Put(encoding=encoding, payload=payload, **common)
    return Push(key=expr, qos=QoS(given("qos", 5)), body=body)


def _text(key: str | bytes) -> str:
    return key.decode() if isinstance(key, bytes) else key


# Tables.

_KEYS = ("a", "a/b", "demo/**", "ключ/🔑", "k" * 127, "k" * 128, "k" * 300, "\0", "é" * 40)
_SIZES = (0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 127, 128, 200, 1100)


def _table(rng: Random, *, nasty: bool) -> pa.RecordBatch | pa.Table:
    n = rng.choice((0, 1, 1, 2, 3, 5, 8, 20, 50))
    batch = _sane(rng, n)
    if nasty:
        for _ in range(rng.choice((1, 1, 2))):
            batch = rng.choice(_NASTY)(rng, batch)
    if batch.num_rows > 1 and rng.random() < 0.3:
        start = rng.randrange(batch.num_rows)
        batch = batch.slice(start, rng.randint(0, batch.num_rows - start))
    if rng.random() < 0.2:
        return pa.Table.from_batches([batch, batch])
    return batch


def _sane(rng: Random, n: int) -> pa.RecordBatch:
    fields: dict[str, tuple[pa.DataType, list[Any]]] = {}

    def maybe(make: Callable[[], Any], likely: float = 0.7) -> list[Any]:
        return [make() if rng.random() < likely else None for _ in range(n)]

    def octets() -> bytes:
        return rng.randbytes(rng.choice(_SIZES if rng.random() < 0.9 else (*_SIZES, 70_000)))

    if rng.random() < 0.5:
        fields["key"] = pa.string(), [rng.choice(_KEYS) for _ in range(n)]
    else:
        scopes = [rng.choice((0, 1, 127, 128, 65_535)) for _ in range(n)]
        suffixes = [rng.choice(_KEYS) if not s or rng.random() < 0.5 else None for s in scopes]
        fields["key_scope"] = pa.int32(), scopes
        fields["key_suffix"] = pa.string(), suffixes
        if rng.random() < 0.5:
            fields["key_mapping"] = pa.bool_(), [rng.random() < 0.5 for _ in range(n)]
    bodies = [1] * n
    if rng.random() < 0.3:
        bodies = [rng.choice((1, 2)) for _ in range(n)]
        fields["body"] = pa.int8(), bodies
    fields["payload"] = pa.binary(), [octets() if b == 1 else None for b in bodies]
    if rng.random() < 0.5:
        fields["qos"] = pa.int32(), maybe(lambda: rng.choice((5, 5, 1, 7, 0x1D, 0x0D, 255, 0)))
    if rng.random() < 0.4:
        times = maybe(lambda: rng.choice((0, 1, 2**62, -1, -(2**63))))
        fields["timestamp"] = pa.int64(), times
        fields["timestamp_id"] = pa.binary(), [t if t is None else _zid(rng) for t in times]
    if rng.random() < 0.4:
        sources = maybe(lambda: _zid(rng))
        number = (0, 127, 128, 2**31, 2**32 - 1)
        fields["source_zid"] = pa.binary(), sources
        for name in ("source_eid", "source_sn"):
            fields[name] = pa.int64(), [s and rng.choice(number) for s in sources]
    if rng.random() < 0.4:
        ids = [i if b == 1 else None for i, b in zip(_encodings(rng, n), bodies, strict=True)]
        schemas = [None if i is None or rng.random() < 0.5 else octets()[:255] for i in ids]
        fields["encoding"] = pa.int32(), ids
        fields["encoding_schema"] = pa.binary(), schemas
    if rng.random() < 0.4:
        fields["attachment"] = pa.binary(), maybe(octets, 0.5)
    names = list(fields)
    rng.shuffle(names)
    return pa.RecordBatch.from_arrays(
        [pa.array(fields[name][1], fields[name][0]) for name in names], names=names
    )


def _encodings(rng: Random, n: int) -> list[int | None]:
    return [rng.choice((None, 0, 4, 63, 64, 1000, 65_535)) for _ in range(n)]


def _zid(rng: Random) -> bytes:
    return rng.randbytes(rng.randrange(16)) + bytes([rng.randint(1, 255)])


# Tables that are not sane.

Spoil = Callable[[Random, pa.RecordBatch], pa.RecordBatch]


def _with(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """With another column instead of one, or besides."""
    made = {n: batch.column(i) for i, n in enumerate(batch.schema.names)} | {name: values}
    return pa.RecordBatch.from_arrays(list(made.values()), names=list(made))


def _any_name(rng: Random) -> str:
    return rng.choice((*columns.COLUMNS, "key", "body", "shm", "node_id", "unknown", "request_id"))


def _other_type(rng: Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A column of a type that it has not."""
    n = batch.num_rows
    values: list[tuple[Any, pa.DataType]] = [
        (7, pa.int8()),
        (-7, pa.int64()),
        (2**64 - 1, pa.uint64()),
        (2.5, pa.float64()),
        (float("nan"), pa.float32()),
        (float("inf"), pa.float64()),
        (1e30, pa.float64()),
        (decimal.Decimal("1.5"), pa.decimal128(10, 2)),
        ("x", pa.string()),
        ("5", pa.large_string()),
        (b"\xff\xfe", pa.binary()),
        (b"\xff", pa.large_binary()),
        (b"ab", pa.binary(2)),
        (b"view", pa.binary_view()),
        (True, pa.bool_()),
        ([1], pa.list_(pa.int32())),
        ({"a": 1}, pa.struct([("a", pa.int32())])),
        (1, pa.timestamp("us")),
        (1, pa.date32()),
        (None, pa.null()),
        (None, pa.int32()),
        (None, pa.binary()),
        (None, pa.bool_()),
    ]
    value, kind = rng.choice(values)
    array = pa.array([value if rng.random() < 0.8 else None for _ in range(n)], kind)
    return _with(batch, _any_name(rng), array)


def _dictionary(rng: Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    if not batch.num_columns:
        return batch
    at = rng.randrange(batch.num_columns)
    return _with(batch, batch.schema.names[at], batch.column(at).dictionary_encode())


def _extreme(rng: Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A number that its column cannot have."""
    value = rng.choice((-1, 2**8, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, -(2**63)))
    names = ("qos", "key_scope", "encoding", "source_eid", "source_sn", "timestamp", "body")
    values = [value if rng.random() < 0.5 else 1 for _ in range(batch.num_rows)]
    return _with(batch, rng.choice(names), pa.array(values, pa.int64()))


def _bad_span(rng: Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Bytes that their column cannot have."""
    bad = (b"", bytes(16), b"\1\0", b"x" * 17, b"\xff", b"\xed\xa0\x80", b"y" * 256, b"z" * 65_536)
    names = ("key", "key_suffix", "timestamp_id", "source_zid", "encoding_schema", "payload")
    values = [rng.choice(bad) for _ in range(batch.num_rows)]
    return _with(batch, rng.choice(names), pa.array(values, pa.binary()))


def _lost(rng: Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A column less."""
    if not batch.num_columns:
        return batch
    kept = [n for n in batch.schema.names if n != rng.choice(batch.schema.names)]
    return batch.select(kept)


def _twice(rng: Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Two columns of one name."""
    if not batch.num_columns:
        return batch
    at = rng.randrange(batch.num_columns)
    arrays = [*batch.columns, batch.column(at)]
    return pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, batch.schema.names[at]])


def _nulls(rng: Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A column with nulls in places."""
    if not batch.num_columns:
        return batch
    at = rng.randrange(batch.num_columns)
    column = batch.column(at)
    values = [None if rng.random() < 0.5 else v for v in column.to_pylist()]
    return _with(batch, batch.schema.names[at], pa.array(values, column.type))


def _own_column(_rng: Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A column that we do not know is not ours to refuse."""
    return _with(batch, "price", pa.array(np.arange(batch.num_rows)))


_NASTY: tuple[Spoil, ...] = (
    _other_type,
    _other_type,
    _other_type,
    _dictionary,
    _extreme,
    _bad_span,
    _bad_span,
    _lost,
    _twice,
    _nulls,
    _own_column,
)
