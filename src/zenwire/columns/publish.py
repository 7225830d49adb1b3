"""Tables of samples to messages: what is put together is checked first, then packed by the kernel.

The columns are those of `zenwire.columns.samples`. ``payload`` is needed, and ``key`` unless all
rows have the same; everything else may be absent or null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns.alike import Alike
from zenwire.columns.check import check, texts
from zenwire.columns.samples import DELETE, SAMPLES
from zenwire.columns.samples import PUT as KIND_PUT
from zenwire.columns.write import DEL, PUT, Publications
from zenwire.errors import EncodeError
from zenwire.wire.data import Put
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Push
from zenwire.wire.values import Mapping, QoS, WireExpr

__all__ = ["Rows", "Stamped", "check", "chunks", "overwritten", "table_of"]

Ints = npt.NDArray[np.int64]
Some = Ints | slice
"""Which rows of a table: their numbers in order, or `EVERY`."""
EVERY: Final = slice(None)

_ROWS: Final = 65_536
"""Rows that are worked on at once."""
_BYTES: Final = 4 << 20
"""Bytes of payloads that are worked on at once, as far as rows are alike."""
_LATER: Final = ("key", "kind", "qos", "reliable", "time")
"""Columns that are no fields of a message, or not as they stand."""
_TEXT: Final = ("key",)
_BYTES_LIKE: Final = (
    "payload",
    "encoding_schema",
    "timestamp_id",
    "source_zid",
    "attachment",
)


def table_of(data: Any) -> pa.Table:
    """What a program gives: a table, a record batch, anything of Arrow; payloads alone.

    Raises EncodeError for what is none, for names that are not of a sample, and for wrong types.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    elif isinstance(data, (pa.Array, pa.ChunkedArray)):
        data = pa.table({"payload": data})
    elif not isinstance(data, pa.Table):
        try:
            if hasattr(data, "__arrow_c_stream__"):
                data = _stream(data)
            elif hasattr(data, "__arrow_c_array__"):
                data = table_of(_array(data))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
            raise EncodeError(f"this is no table: {e}") from None
        if not isinstance(data, pa.Table):
            raise EncodeError(f"a table is Arrow's, not {type(data).__name__}")
    names = data.schema.names
    for name in names:
        if name not in SAMPLES.names:
            raise EncodeError(f"column {name!r} is none of {', '.join(SAMPLES.names)}")
        if names.count(name) > 1:
            raise EncodeError(f"several columns have the name {name!r}")
    return pa.table({name: _typed(name, data.column(name)) for name in names if name != "time"})


def _stream(data: Any) -> pa.Table:
    reader = pa.RecordBatchReader.from_stream(data)
    return reader.read_all()


def _array(data: Any) -> Any:
    made = pa.array(data)
    return pa.RecordBatch.from_struct_array(made) if pa.types.is_struct(made.type) else made


def _typed(name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """In a type that is cut and looked at without a copy, as far as that goes."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or _view(kind, "string")
    raw = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or _view(kind, "binary")
    )
    if pa.types.is_null(kind):
        fits = True
    elif name in _TEXT:
        fits = text
    elif name in _BYTES_LIKE:
        fits = raw or (text and name in {"payload", "attachment", "encoding_schema"})
    elif name == "reliable":
        fits = pa.types.is_boolean(kind)
    else:
        fits = pa.types.is_integer(kind)
    if not fits:
        raise EncodeError(f"column {name!r} cannot be {values.type}")
    if pa.types.is_dictionary(values.type) and name != "key":
        values = values.cast(kind)
    return values


def _view(kind: pa.DataType, name: str) -> bool:
    """Whether it is one of the views, which older Arrow does not have."""
    return str(kind) == f"{name}_view"


@dataclass(frozen=True, slots=True)
class Stamped:
    """Rows with what a call says of all of them: where a row is silent, this holds."""

    qos: int
    reliable: bool
    encoding: Encoding
    own: bool = False
    """The columns ``qos`` and ``reliable`` are not looked at: whoever publishes has its own."""


def overwritten(
    table: pa.Table,
    how: Stamped,
    qos_of: Callable[[str, int], int],
    reliable_of: Callable[[str, bool], bool],
) -> pa.Table:
    """Return the table with QoS and reliability of each row as its key says.

    The callables are asked once for each key and value that there is.
    """
    if not table.num_rows:
        return table
    rows = Rows(table, how)
    qos, reliable = rows.qos.copy(), rows.reliable.copy()
    for at, key in enumerate(rows.keys):
        mine = rows.index == at
        for value in np.unique(qos[mine]):
            qos[mine & (rows.qos == value)] = qos_of(key, int(value))
        for flag in np.unique(reliable[mine]):
            reliable[mine & (rows.reliable == flag)] = reliable_of(key, bool(flag))
    kept = [name for name in table.schema.names if name not in {"qos", "reliable"}]
    columns = {name: table.column(name) for name in kept}
    return pa.table(columns | {"qos": pa.array(qos), "reliable": pa.array(reliable)})


class Rows:
    """Some rows of a table, ready to be written. ``keys`` has each key once."""

    def __init__(self, table: pa.Table, how: Stamped) -> None:
        batch = table.combine_chunks().to_batches()[0]
        self.count = batch.num_rows
        self._how = how
        given = {name: _plain(batch.column(name)) for name in batch.schema.names}
        self._given = given
        self.keys: list[str] = []
        self._index: Ints | None = None
        if "key" in given and not how.own:
            coded = _encoded(given["key"])
            self.keys = coded.dictionary.to_pylist()
            self._index = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if "payload" not in given:
            raise EncodeError("there is no column 'payload'")
        self._columns = {n: v for n, v in given.items() if n not in _LATER}
        if "kind" in given and bool(self.deletes.any()):
            self._columns["body"] = pa.array(np.where(self.deletes, DEL, PUT))
            self._columns["payload"] = _emptied(given["payload"], self.deletes)

    # What every row has, made where somebody looks at single ones.

    @property
    def index(self) -> Ints:
        """Which of the keys a row has."""
        if self._index is None:
            self._index = np.zeros(self.count, np.int64)
        return self._index

    @cached_property
    def qos(self) -> npt.NDArray[np.int32]:
        return _numbers("qos", self._given, self._how.qos, self._how.own, 0xFF)

    @cached_property
    def reliable(self) -> npt.NDArray[np.bool_]:
        return _flags(self._given, self._how)

    @cached_property
    def deletes(self) -> npt.NDArray[np.bool_]:
        deletes: npt.NDArray[np.bool_] = (
            _numbers("kind", self._given, KIND_PUT, False, DELETE) == DELETE
        )
        return deletes

    def _encode_default(self, columns: dict[str, pa.Array]) -> None:
        """The encoding of the call, for those rows that have none."""
        encoding = self._how.encoding
        if encoding == Encoding():
            return
        puts = pa.array(~self.deletes)
        given = columns.get("encoding")
        silent = puts if given is None else pc.and_(puts, pc.is_null(given))
        none = pa.nulls(self.count, pa.int32())
        base = none if given is None else given.cast(pa.int32())
        columns["encoding"] = pc.if_else(silent, pa.scalar(encoding.id, pa.int32()), base)
        if encoding.schema is not None:
            schema = columns.get("encoding_schema")
            base = pa.nulls(self.count, pa.binary()) if schema is None else schema.cast(pa.binary())
            silent = silent if schema is None else pc.and_(silent, pc.is_null(schema))
            said = pa.scalar(bytes(encoding.schema), pa.binary())
            columns["encoding_schema"] = pc.if_else(silent, said, base)

    def none(self) -> npt.NDArray[np.bool_]:
        """A mark for each row, which it does not have."""
        return np.zeros(self.count, np.bool_)

    @staticmethod
    def count_of(marks: npt.NDArray[np.bool_]) -> int:
        return int(np.count_nonzero(marks))

    def numbers(self, rows: Some) -> Ints:
        return np.arange(self.count) if isinstance(rows, slice) else rows

    def those(self, rows: Some, exprs: Sequence[WireExpr | None]) -> Some | None:
        """Of these rows, those whose key has an expression; None if there are none."""
        if all(expr is not None for expr in exprs):
            return rows
        wanted = np.array([expr is not None for expr in exprs])
        some = self.numbers(rows)
        some = some[wanted[self.index[some]]]
        return some if len(some) else None

    @property
    def untimed(self) -> npt.NDArray[np.bool_]:
        """The PUTs that have no time."""
        given = self._columns.get("timestamp")
        puts: npt.NDArray[np.bool_] = ~self.deletes
        return puts if given is None else puts & pc.is_null(given).to_numpy(zero_copy_only=False)

    def stamp(self, times: list[int], clock: bytes) -> None:
        """Give those that are ``untimed`` their times, in order."""
        where = pa.array(self.untimed)
        for name, kind, values in (
            ("timestamp", pa.int64(), pa.array(np.array(times, np.uint64).view(np.int64))),
            ("timestamp_id", pa.binary(), pa.array([clock] * len(times), pa.binary())),
        ):
            given = self._columns.get(name)
            base = pa.nulls(self.count, kind) if given is None else given.cast(kind)
            self._columns[name] = pc.replace_with_mask(base, where, values)

    def lanes(self) -> Iterator[tuple[QoS, bool, Some]]:
        """Rows that go together, in order: the same QoS, the same reliability."""
        if not self.count:
            return
        how = self._how
        if how.own or not ("qos" in self._given or "reliable" in self._given):
            yield QoS(how.qos), how.reliable, EVERY
            return
        qos, reliable = self.qos, self.reliable
        if bool((qos == qos[0]).all() & (reliable == reliable[0]).all()):
            yield QoS(int(qos[0])), bool(reliable[0]), EVERY
            return
        lane = (qos & 7) << 1 | reliable
        every = np.arange(self.count)
        for one in np.unique(lane):
            rows = every[lane == one]
            cuts = np.flatnonzero(np.diff(qos[rows])) + 1
            for some in np.split(rows, cuts):
                yield QoS(int(qos[some[0]])), bool(reliable[some[0]]), some

    def publications(
        self, rows: Some, exprs: Sequence[WireExpr | None], qos: QoS | None = None
    ) -> Publications | Alike:
        """These rows, with their keys as a neighbour reads them; there is one for each.

        ``qos`` is that of all of them, if it is.
        """
        if isinstance(rows, slice) and qos is not None and list(self._columns) == ["payload"]:
            alike = self._alike(exprs, qos)
            if alike is not None:
                return alike
        return self.fields(rows, exprs, qos)

    def _alike(self, exprs: Sequence[WireExpr | None], qos: QoS) -> Alike | None:
        """All rows, if nothing but their payloads is their own."""
        key = exprs[0]
        if len(exprs) != 1 or key is None or qos.express:
            return None
        put = Put(encoding=self._how.encoding, payload=b"")
        return Alike.of(self._columns["payload"], Push(key=key, qos=qos, body=put), put)

    def fields(
        self, rows: Some, exprs: Sequence[WireExpr | None], qos: QoS | None = None
    ) -> Publications:
        """As ``publications``, each row with all that it has."""
        columns = dict(self._columns)
        self._encode_default(columns)
        if not isinstance(rows, slice):
            columns = {name: values.take(pa.array(rows)) for name, values in columns.items()}
        if qos is None:
            columns["qos"] = pa.array(self.qos[rows])
        raw = None if qos is None else qos.raw
        if len(exprs) == 1:
            return Publications(_batch(columns), exprs[0], raw, checked=True)
        index = pa.array(self.index[rows])
        known = [expr or WireExpr(0, "") for expr in exprs]
        columns["key_scope"] = pa.array([e.scope for e in known], pa.int32()).take(index)
        suffixes = pa.array([e.suffix or None for e in known], pa.string())
        columns["key_suffix"] = suffixes.take(index)
        sender = pa.array([e.mapping is Mapping.SENDER for e in known])
        columns["key_mapping"] = sender.take(index)
        return Publications(_batch(columns), None, raw, checked=True)


def _batch(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _encoded(key: pa.Array) -> pa.DictionaryArray:
    return texts(key).dictionary_encode()


def _plain(values: pa.Array) -> pa.Array:
    """Of what others do not know, what they do."""
    if str(values.type).endswith("_view") or pa.types.is_fixed_size_binary(values.type):
        return values.cast(pa.binary())
    return values


def _numbers(
    name: str, columns: dict[str, pa.Array], default: int, own: bool, top: int
) -> npt.NDArray[np.int32]:
    count = len(next(iter(columns.values())))
    given = columns.get(name)
    if given is None or own or pa.types.is_null(given.type):
        return np.full(count, default, np.int32)
    values = pc.fill_null(given.cast(pa.int64()), default).to_numpy(zero_copy_only=False)
    if len(values) and not 0 <= int(values.min()) <= int(values.max()) <= top:
        raise EncodeError(f"column {name!r} has values outside of 0 to {top}")
    made: npt.NDArray[np.int32] = values.astype(np.int32)
    return made


def _flags(columns: dict[str, pa.Array], how: Stamped) -> npt.NDArray[np.bool_]:
    count = len(next(iter(columns.values())))
    given = columns.get("reliable")
    if given is None or how.own or pa.types.is_null(given.type):
        return np.full(count, how.reliable, np.bool_)
    made: npt.NDArray[np.bool_] = pc.fill_null(given, how.reliable).to_numpy(zero_copy_only=False)
    return made


def _emptied(payload: pa.Array, where: npt.NDArray[np.bool_]) -> pa.Array:
    """A payload that is null is allowed where there is none."""
    if pa.types.is_null(payload.type):
        payload = payload.cast(pa.binary())
    empty = pa.scalar("" if pa.types.is_string(payload.type) else b"", payload.type)
    return pc.if_else(pc.and_(pa.array(where), pc.is_null(payload)), empty, payload)


def chunks(table: pa.Table) -> Iterator[pa.Table]:
    """A table in parts that are worked on at once."""
    rows, size = table.num_rows, max(1, table.nbytes)
    step = max(1, min(_ROWS, _BYTES * rows // size))
    for start in range(0, rows, step):
        yield table.slice(start, step)
