"""Batches to messages inside a task: what ``mapInArrow`` calls.

Everything here works on whole record batches; Python objects are made only for messages that are
rare and have no columns (INIT, OPEN, JOIN, INTEREST, OAM, scouting).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns import NETWORK, TRANSPORT, Rows, Scan, Scanner, Spans, arrow
from zenwire.errors import DecodeError
from zenwire.spark.serialized import Type, json_of, parse_type
from zenwire.spark.tables.expand import expanded
from zenwire.wire import decode, decode_linkstate
from zenwire.wire.define import messages, spec_of
from zenwire.wire.encoding import ENCODINGS
from zenwire.wire.linkstate import OAM_LINKSTATE
from zenwire.wire.network import Declare, Oam
from zenwire.wire.plain import to_plain
from zenwire.wire.values import ZenohId

__all__ = ["CONTEXT", "INPUT", "MESSAGES", "BadBlock", "Selection", "scans", "true"]

CONTEXT: Final = pa.schema(
    [
        pa.field("capture", pa.string()),
        pa.field("flow", pa.int64()),
        pa.field("connection", pa.int32()),
        pa.field("direction", pa.string()),
        # 0 or 1, also where the direction is not known: whether the sender's address is the higher.
        pa.field("side", pa.int8()),
        pa.field("time", pa.int64()),
        pa.field("sequence", pa.int64()),
    ]
)
"""Where a message was seen: columns of its batch."""

INPUT: Final = (
    *CONTEXT.names,
    "side_id",
    "bytes",
    "scouting",
    "lowlatency",
    "compression",
    # Of the last FRAGMENT, where the bytes are a message that was put together; else null.
    "at",
    "sn",
    "reliable",
    "priority",
)
"""What a scan is given."""

_UNCOMMON: Final = frozenset(
    [
        *("ext_timestamp", "ext_timestamp_id", "timestamp_stack", "unknown"),
        *("mode", "keyexprs", "subscribers", "queryables", "tokens", "aggregate"),
        *("oam_value", "oam_body"),
    ]
)
_PLACE: Final = ("batch", "offset", "length", "message", "body", "body_offset")
_ZIDS: Final = frozenset({"timestamp_id", "source_zid", "responder_zid"})


def _columns() -> list[pa.Field]:
    found = {}
    for layout in (NETWORK, TRANSPORT):
        for field in arrow.schema(layout):
            if field.name not in _UNCOMMON and field.name not in _PLACE:
                kind = pa.string() if field.name in _ZIDS else field.type
                found[field.name] = pa.field(field.name, kind)
    return list(found.values())


MESSAGES: Final = pa.schema(
    [
        *CONTEXT,
        pa.field("layer", pa.string()),
        pa.field("message", pa.string()),
        pa.field("body", pa.string()),
        # In the batch, after it was expanded.
        pa.field("offset", pa.int32()),
        pa.field("length", pa.int32()),
        pa.field("fields", pa.string()),
        *_columns(),
        # JSON, of a zenoh/serialized payload whose schema names its type.
        pa.field("deserialized", pa.string()),
    ]
)
"""One row per message. ``fields`` is JSON, of messages whose fields are not all columns."""

_BESIDES: Final = pa.schema(
    [
        # One number for capture, flow, connection and side: joins are faster by it.
        pa.field("side_id", pa.int64()),
        # The first byte that a FRAGMENT carries: of the first piece, the header of the message.
        pa.field("head", pa.int32()),
    ]
)
"""What a scan can give besides, for the tables alone."""
_FIELDS: Final = {field.name: field for schema in (MESSAGES, _BESIDES) for field in schema}
_SHIFT: Final = 32
_DECLARE: Final = spec_of(Declare).id
_SERIALIZED: Final = ENCODINGS.index("zenoh/serialized")


@cache
def _scanner() -> Scanner:
    return Scanner()


@cache
def _names(*scopes: str) -> pa.Array:
    """Protocol names by id, 32 for each scope."""
    names: list[str | None] = []
    for scope in scopes:
        by_id = {spec.id: spec.name for spec in messages(scope)}
        names += [by_id.get(i) for i in range(_SHIFT)]
    return pa.array(names, pa.string())


@dataclass(frozen=True)
class Selection:
    """Which messages and columns a scan gives; None is all. Pickled into the task."""

    columns: tuple[str, ...]
    network: frozenset[str] | None = frozenset()
    transport: frozenset[str] | None = frozenset()
    scouting: bool = False

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([_FIELDS[name] for name in self.columns])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for rows, scan in scans(batch):
                yield from self._layer(rows, scan, "transport", self.transport)
                yield from self._layer(rows, scan, "network", self.network)
            if self.scouting:
                yield from self._scouting(batch)

    def _layer(
        self, rows: pa.RecordBatch, scan: Scan, layer: str, names: frozenset[str] | None
    ) -> Iterator[pa.RecordBatch]:
        of_network = layer == "network"
        chosen = _chosen(scan.network if of_network else scan.transport, layer, names)
        if not chosen.count:
            return
        # Rows of the network refer to those of all FRAMEs: one table at a time is thinned.
        if of_network:
            scan = replace(scan, network=chosen)
        else:
            scan = replace(scan, transport=chosen)
        have = set(arrow.schema(chosen.layout).names)
        wanted = {"batch", "offset", "length", "message"} | (have & set(self.columns))
        if of_network:
            wanted.add("body")
        elif "head" in self.columns:
            wanted.add("payload")
        if "deserialized" in self.columns and of_network:
            wanted |= {"payload", "encoding", "encoding_schema", "shm"}
        if "fields" in self.columns and of_network:
            wanted |= {"ext_timestamp", "timestamp_stack", "unknown"}
        found = (arrow.network if of_network else arrow.transport)(scan, sorted(wanted))
        yield _Output(rows, scan, layer, found).batch(self.schema)

    def _scouting(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows = batch.filter(true(batch.column("scouting")))
        found = []
        for row in rows.to_pylist():
            try:
                message = decode(row["bytes"], "scouting")
            except DecodeError:
                continue
            told = {name: row.get(name) for name in CONTEXT.names}
            told |= {"layer": "scouting", "message": spec_of(type(message)).name, "offset": 0}
            told |= {"length": len(row["bytes"]), "fields": json.dumps(to_plain(message))}
            found.append({name: told.get(name) for name in self.columns})
        if found:
            yield pa.RecordBatch.from_pylist(found, self.schema)


@dataclass(frozen=True)
class BadBlock:
    """A compressed batch that does not expand."""

    row: dict[str, object]
    error: DecodeError


# --- from record batches to scans ---------------------------------------------------------------


def scans(
    batch: pa.RecordBatch, bad_blocks: list[BadBlock] | None = None
) -> Iterator[tuple[pa.RecordBatch, Scan]]:
    """(rows, scan of their bytes), for each way in which batches are wrapped."""
    plain = pc.invert(true(batch.column("scouting")))
    lowlatency = pc.and_(plain, true(batch.column("lowlatency")))
    compressed = pc.and_(plain, true(batch.column("compression")))
    plain = pc.and_not(pc.and_not(plain, lowlatency), compressed)
    for mask, low_latency, expand in (
        (plain, False, False),
        (lowlatency, True, False),
        (compressed, False, True),
    ):
        if not pc.any(mask).as_py():
            continue
        rows = batch if pc.all(mask).as_py() else batch.filter(mask)
        if expand:
            rows = _expanded(rows, bad_blocks)
        buffer, spans = _spans(rows.column("bytes"))
        for scan in _scanner().scan(buffer, spans, low_latency=low_latency):
            yield rows, scan


def true(flags: pa.Array) -> pa.Array:
    """The flags, where they are known."""
    return pc.fill_null(flags, fill_value=False)


def _spans(data: pa.Array) -> tuple[npt.NDArray[np.uint8], Spans]:
    _, offsets, values = data.buffers()
    all_offsets = np.frombuffer(offsets, np.int32)[data.offset : data.offset + len(data) + 1]
    content = np.frombuffer(values, np.uint8) if values else np.zeros(0, np.uint8)
    return content, Spans.of_offsets(all_offsets.copy())


def _expanded(rows: pa.RecordBatch, bad_blocks: list[BadBlock] | None) -> pa.RecordBatch:
    contents, bad = expanded(rows.column("bytes"))
    if bad_blocks is not None:
        bad_blocks += [BadBlock(rows.slice(i, 1).to_pylist()[0], error) for i, error in bad]
    at = rows.schema.get_field_index("bytes")
    return rows.set_column(at, "bytes", contents)


def _chosen(rows: Rows, layer: str, names: frozenset[str] | None) -> Rows:
    """The rows of some messages: the others cost nothing further."""
    if names is None or not rows.count:
        return rows
    known = _names(layer).to_pylist()
    ids = np.array([i for i, name in enumerate(known) if name in names], np.uint64)
    which = np.flatnonzero(np.isin(rows.message, ids))
    if len(which) == rows.count:
        return rows
    return Rows(
        rows.layout,
        np.ascontiguousarray(rows.int32[:, which]),
        np.ascontiguousarray(rows.uint64[:, which]),
        np.ascontiguousarray(rows.present[which]),
        len(which),
    )


# --- from scans to record batches ---------------------------------------------------------------


class _Output:
    """The columns of one record batch of messages."""

    def __init__(self, rows: pa.RecordBatch, scan: Scan, layer: str, found: pa.RecordBatch) -> None:
        self._rows = rows
        self._scan = scan
        self._layer = layer
        self._found = found
        self._which = found.column("batch")
        self._ids = found.column("message").cast(pa.int32())
        self._fragmented = rows.column("at").null_count < rows.num_rows

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self._array(f) for f in schema], schema=schema)

    def _array(self, field: pa.Field) -> pa.Array:
        name, found = field.name, self._found
        if name in CONTEXT.names or name == "side_id":
            return self._context(name)
        match name:
            case "layer":
                return pa.repeat(pa.scalar(self._layer), found.num_rows)
            case "message":
                return _names(self._layer).take(self._ids)
            case "body":
                return self._body(field)
            case "fields":
                return self._fields()
            case "deserialized":
                return self._deserialized()
            case "head":
                return _heads(found.column("payload"))
        if name not in found.schema.names:
            return pa.nulls(found.num_rows, field.type)
        array = found.column(name)
        if name in _ZIDS:
            return _zid_text(array)
        if self._fragmented and name in ("offset", "sn", "reliable", "priority"):
            # A message in pieces stands where its last piece does.
            return pc.coalesce(self._context("at" if name == "offset" else name), array)
        return array

    def _context(self, name: str) -> pa.Array:
        return self._rows.column(name).take(self._which)

    def _body(self, field: pa.Field) -> pa.Array:
        if self._layer != "network":
            return pa.nulls(self._found.num_rows, field.type)
        declares = pc.equal(self._ids, _DECLARE)
        ids = self._found.column("body").cast(pa.int32())
        return _names("data", "declare").take(pc.if_else(declares, pc.add(ids, _SHIFT), ids))

    def _deserialized(self) -> pa.Array:
        found = self._found
        if self._layer != "network":
            return pa.nulls(found.num_rows, pa.string())
        named = pc.and_(
            pc.equal(found.column("encoding"), _SERIALIZED),
            pc.is_valid(found.column("encoding_schema")),
        )
        named = pc.and_not(true(named), true(found.column("shm")))
        if not pc.any(named).as_py():
            return pa.nulls(found.num_rows, pa.string())
        texts: list[str | None] = [None] * found.num_rows
        for i in np.flatnonzero(named.to_numpy(zero_copy_only=False)).tolist():
            kind = _type_of(found.column("encoding_schema")[i].as_py())
            data = found.column("payload")[i].as_py()
            texts[i] = json_of(kind, data or b"") if kind is not None else None
        return pa.array(texts, pa.string())

    def _fields(self) -> pa.Array:
        """JSON of the messages that have more than columns."""
        found = self._found
        names = _names(self._layer).take(self._ids)
        rare = pa.array(["INIT", "OPEN", "JOIN", "INTEREST", "OAM"])
        described = pc.is_in(names, rare)
        for name in ("ext_timestamp", "timestamp_stack", "unknown"):
            if name in found.schema.names:
                described = pc.or_(described, pc.is_valid(found.column(name)))
        texts: list[str | None] = [None] * found.num_rows
        starts, offsets = self._scan.spans.starts, found.column("offset")
        for i in np.flatnonzero(described.to_numpy(zero_copy_only=False)).tolist():
            start = int(starts[self._which[i].as_py()]) + offsets[i].as_py()
            data = self._scan.buffer[start : start + found.column("length")[i].as_py()]
            texts[i] = describe(data.tobytes(), self._layer)
        return pa.array(texts, pa.string())


def describe(data: bytes, layer: str) -> str | None:
    """The fields of one message as JSON."""
    try:
        message = decode(data, layer)
        plain = to_plain(message)
        body = message.body if isinstance(message, Oam) else None
        if isinstance(body, bytes) and message.id == OAM_LINKSTATE:
            plain["linkstate"] = to_plain(decode_linkstate(body))
    except DecodeError:
        # The scanner took it, so only what is inside of an OAM can be wrong.
        return None
    return json.dumps(plain)


@lru_cache(256)
def _type_of(schema: bytes) -> Type | None:
    """What a schema names, if it names a type."""
    try:
        return parse_type(schema.decode())
    except ValueError:
        return None


def _heads(data: pa.Array) -> pa.Array:
    content, spans = _spans(data)
    empty = spans.starts == spans.ends
    if not len(content):
        return pa.nulls(len(data), pa.int32())
    heads = content[np.where(empty, 0, spans.starts)].astype(np.int32)
    return pa.array(heads, mask=empty)


def _zid_text(ids: pa.Array) -> pa.Array:
    encoded = ids.dictionary_encode()
    texts = [
        str(ZenohId(raw)) if raw.rstrip(b"\0") else "" for raw in encoded.dictionary.to_pylist()
    ]
    return pa.array(texts, pa.string()).take(encoded.indices)
