"""Scans to messages: which, and which columns of them.

Everything here works on whole record batches; Python objects are made only for messages that are
rare and have no columns (INIT, OPEN, JOIN, INTEREST, OAM, scouting).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns import NETWORK, TRANSPORT, Rows, Scan, arrow
from zenwire.errors import DecodeError
from zenwire.lake.payloads.serialized import Type, json_of, parse_type
from zenwire.spark.tables.input import CONTEXT, BadBlock, mixed, true
from zenwire.wire import decode, decode_linkstate
from zenwire.wire.define import messages, spec_of
from zenwire.wire.encoding import ENCODINGS
from zenwire.wire.linkstate import OAM_LINKSTATE
from zenwire.wire.network import Declare, Oam
from zenwire.wire.plain import to_plain
from zenwire.wire.values import ZenohId

__all__ = ["MESSAGES", "Selection", "key_ids"]

Int64 = npt.NDArray[np.int64]

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
        pa.field("side_id", pa.int64()),
        # What a key expression begins with: the id, whose it is, and where; null if none.
        pa.field("key_id", pa.int64()),
    ]
)
"""What a scan can give besides, for the tables alone."""
_FIELDS: Final = {field.name: field for schema in (MESSAGES, _BESIDES) for field in schema}
_SHIFT: Final = 32
_DECLARE: Final = spec_of(Declare).id
_SERIALIZED: Final = ENCODINGS.index("zenoh/serialized")


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

    def to_plain(self) -> dict[str, Any]:
        return {
            "columns": list(self.columns),
            "network": None if self.network is None else sorted(self.network),
            "transport": None if self.transport is None else sorted(self.transport),
            "scouting": self.scouting,
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Selection:
        network, transport = (
            None if plain[layer] is None else frozenset(plain[layer])
            for layer in ("network", "transport")
        )
        return cls(tuple(plain["columns"]), network, transport, plain["scouting"])

    def of(self, rows: pa.RecordBatch, scan: Scan) -> Iterator[pa.RecordBatch]:
        """What a scan of these rows, which are ``INPUT``, holds of it."""
        # A message that came in pieces is one of the network.
        if rows.column("at").null_count:
            yield from self._layer(rows, scan, "transport", self.transport)
        yield from self._layer(rows, scan, "network", self.network)

    def of_bad_blocks(self, blocks: list[BadBlock]) -> Iterator[pa.RecordBatch]:
        """Those are in ``malformed``."""
        return iter(())

    def _layer(
        self, rows: pa.RecordBatch, scan: Scan, layer: str, names: frozenset[str] | None
    ) -> Iterator[pa.RecordBatch]:
        if names is not None and not names:
            return
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
            if "key_id" in self.columns:
                wanted |= {"key_scope", "key_mapping"}
        if "deserialized" in self.columns and of_network:
            wanted |= {"payload", "encoding", "encoding_schema", "shm"}
        if "fields" in self.columns and of_network:
            wanted |= {"ext_timestamp", "timestamp_stack", "unknown"}
        found = (arrow.network if of_network else arrow.transport)(scan, sorted(wanted))
        yield _Output(rows, scan, layer, found).batch(self.schema)

    def of_scouting(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The same for scouting, which has no batches: each datagram is a message."""
        if not self.scouting:
            return
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
            case "key_id":
                return self._key_ids()
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

    def _key_ids(self) -> pa.Array:
        n, found = self._found.num_rows, self._found
        if self._layer != "network":
            return pa.nulls(n, pa.int64())
        scope = pc.fill_null(found.column("key_scope"), 0).to_numpy()
        # D_KEYEXPR has no M flag.
        by_sender = true(found.column("key_mapping")).to_numpy(zero_copy_only=False)
        ids = key_ids(self._context("side_id").to_numpy(), scope, by_sender)
        return pa.array(ids, mask=scope == 0)

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


def key_ids(side_id: npt.ArrayLike, scope: npt.ArrayLike, by_sender: npt.ArrayLike) -> Int64:
    """One number for an id of a key expression in one mapping of one direction."""
    return mixed(mixed(side_id, scope), by_sender)


def _zid_text(ids: pa.Array) -> pa.Array:
    encoded = ids.dictionary_encode()
    texts = [
        str(ZenohId(raw)) if raw.rstrip(b"\0") else "" for raw in encoded.dictionary.to_pylist()
    ]
    return pa.array(texts, pa.string()).take(encoded.indices)
