"""The columnar writer: Arrow columns of publications to whole batches.

It takes the columns that ``zenwire.columns.arrow.network`` gives (``COLUMNS`` of them), so that
what was read can be written again. A row needs ``payload``, and ``key`` or ``key_scope`` and
``key_suffix``; everything else may be absent or null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns import kernels
from zenwire.columns.emit_write import COLUMNS, SPANS
from zenwire.columns.layout import BODY_SHIFT, NETWORK, Column, Form
from zenwire.columns.scan import Bools, Bytes, Int32, UInt64
from zenwire.errors import EncodeError
from zenwire.wire import limits
from zenwire.wire.batch import BATCH_MAX, STREAM_PREFIX, frame_stream
from zenwire.wire.data import Del, Put
from zenwire.wire.define import spec_of
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Push
from zenwire.wire.objects import encode
from zenwire.wire.structs import SourceInfo, Timestamp
from zenwire.wire.transport import Fragment
from zenwire.wire.values import Mapping, Priority, QoS, Resolution, WireExpr, ZenohId

__all__ = ["COLUMNS", "DEL", "PUT", "Publications", "Writer", "Written"]

PUT: Final = spec_of(Put).id
DEL: Final = spec_of(Del).id

_BYTES_OR_TEXT: Final = ("payload", "attachment", "encoding_schema")
_RESOLUTION: Final = Resolution()
_OUT: Final = 1 << 20
"""Bytes that are filled at once."""


@dataclass(frozen=True, slots=True)
class Written:
    """Batches back to back, each with its prefix; ``ends[k]`` is where batch ``k`` ends."""

    data: memoryview
    ends: Int32
    rows: int
    """Rows of the table that have been written up to here."""


class Writer:
    """Writes publications for one session, and numbers its frames.

    ``batch_size`` is the negotiated one, in which a stream's ``prefix`` counts. ``sns`` holds the
    next sequence number of each priority, and may be read or set between calls. Not for use by
    two threads at once.
    """

    def __init__(
        self,
        *,
        initial_sn: int = 0,
        batch_size: int = BATCH_MAX,
        prefix: int = STREAM_PREFIX,
        reliable: bool = True,
        resolution: Resolution = _RESOLUTION,
    ) -> None:
        if not 32 <= batch_size - prefix <= BATCH_MAX:
            raise EncodeError(f"a batch size of {batch_size} bytes is too small or too large")
        self.sns: UInt64 = np.full(len(Priority), initial_sn, np.uint64)
        self._kernel = kernels.ready(kernels.write)
        self._limit = batch_size - prefix
        self._prefix = prefix
        self._reliable = reliable
        self._mask = resolution.sn_modulus - 1
        self._out = np.empty(_OUT, np.uint8)
        self._ends = np.empty(65_536, np.int32)

    def write(self, table: pa.RecordBatch | pa.Table) -> Iterator[Written]:
        """All rows, in order. Each piece is overwritten by the next.

        A row that is larger than a batch becomes fragments. Raises EncodeError, before anything
        is written, for values that cannot be sent.
        """
        names = table.schema.names
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise EncodeError(f"several columns have the name {twice[0]!r}")
        batches = table.to_batches() if isinstance(table, pa.Table) else [table]
        prepared = [Publications(batch) for batch in batches]
        done = 0
        for rows in prepared:
            for written in self._write(rows):
                yield Written(written.data, written.ends, done + written.rows)
            done += rows.count

    def _write(self, rows: Publications) -> Iterator[Written]:
        state = np.zeros(3, np.uint64)
        while state[0] < rows.count:
            before = int(state[0])
            size = self._kernel(
                rows.int32,
                rows.uint64,
                rows.present,
                rows.count,
                *(rows.spans[name] for name in SPANS),
                self._reliable,
                self._prefix,
                self._limit,
                self._mask,
                self._out,
                self._ends,
                self.sns,
                state,
            )
            row = int(state[0])
            if size:
                yield Written(memoryview(self._out.data)[:size], self._ends[: state[1]], row)
            if state[2]:
                yield self._fragments(rows.message(row), row + 1)
                state[0] = row + 1
            elif row == before:
                # One row needs more than all of ``out``: its batch would not.
                self._out = np.empty(len(self._out) * 2, np.uint8)

    def _fragments(self, push: Push, rows: int) -> Written:
        """A message in pieces that fit a batch."""
        message = encode(push)
        out = bytearray()
        ends: list[int] = []
        lane = push.qos.priority
        start = 0
        while start < len(message):
            head = Fragment(
                reliable=self._reliable,
                more=True,
                sn=int(self.sns[lane]),
                priority=lane,
                first=start == 0,
                payload=b"",
            )
            piece = message[start : start + self._limit - len(encode(head))]
            start += len(piece)
            batch = encode(replace(head, more=start < len(message), payload=piece))
            out += frame_stream(batch, self._prefix) if self._prefix else batch
            ends.append(len(out))
            self.sns[lane] = int(self.sns[lane]) + 1 & self._mask
        return Written(memoryview(out), np.array(ends, np.int32), rows)


class Publications:
    """A record batch as the rows that the kernel takes.

    ``key`` and ``qos`` are those of all rows, if they are given. Rows that were ``checked`` are
    not looked at again.
    """

    def __init__(
        self,
        batch: pa.RecordBatch,
        key: WireExpr | None = None,
        qos: int | None = None,
        *,
        checked: bool = False,
    ) -> None:
        self.count = n = batch.num_rows
        # From Arrow's pool: pages that it keeps need not be made again for each record batch.
        int32 = pa.allocate_buffer(NETWORK.int32 * (n + 16) * 4)
        uint64 = pa.allocate_buffer(NETWORK.uint64 * (n + 16) * 8)
        self.int32 = np.frombuffer(int32, np.int32).reshape(NETWORK.int32, n + 16)
        self.uint64 = np.frombuffer(uint64, np.uint64).reshape(NETWORK.uint64, n + 16)
        self.present = np.zeros(n, np.uint64)
        self.spans: dict[str, Bytes] = {name: np.empty(0, np.uint8) for name in SPANS}
        columns = _columns(batch)
        _refuse_others(columns)
        whole = "key" in columns
        for name in COLUMNS:
            source = "key" if whole and name == "key_suffix" else name
            if source in columns:
                self._take(name, _typed(source, columns[source], NETWORK.columns[name]))
        self._complete(columns, key=whole)
        if key is not None:
            self._fill(key)
        if qos is not None:
            self.int32[NETWORK.columns["qos"].slot, :n] = qos
            self._mark("qos", None)
        if not checked:
            self._check()

    def _fill(self, key: WireExpr) -> None:
        """The same key in each row."""
        scope, suffix = NETWORK.columns["key_scope"], NETWORK.columns["key_suffix"]
        self.int32[scope.slot, : self.count] = key.scope
        self.int32[suffix.slot, : self.count] = 0
        self.spans["key_suffix"] = text = np.frombuffer(key.suffix.encode(), np.uint8)
        self.int32[suffix.slot + 1, : self.count] = len(text)
        self._mark("key_scope", None)
        if len(text):
            self._mark("key_suffix", None)
        if key.mapping is not Mapping.SENDER:
            self.present &= ~_bit("key_mapping")

    def _take(self, name: str, values: pa.Array) -> None:
        column = NETWORK.columns[name]
        n = self.count
        if column.form is Form.BOOL:
            self._mark(name, pc.fill_null(values, True))  # what absence means
            return
        if values.null_count == n:
            return
        if column.form is Form.SPAN:
            _, offsets_buffer, data = values.buffers()
            offsets = np.frombuffer(offsets_buffer, np.int32)[values.offset : values.offset + n + 1]
            self.int32[column.slot, :n] = offsets[:-1]
            np.subtract(offsets[1:], offsets[:-1], out=self.int32[column.slot + 1, :n])
            if data is not None:
                self.spans[name] = np.frombuffer(data, np.uint8)
        elif column.form is Form.UINT64:
            filled = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
            self.uint64[column.slot, :n] = filled.view(np.uint64)
        else:
            filled = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
            top = 2**32 - 1 if column.wide else 2**31 - 1
            if n and not 0 <= int(filled.min()) <= int(filled.max()) <= top:
                raise EncodeError(f"column {name!r} has values outside of 0 to {top}")
            self.int32[column.slot, :n] = filled.astype(np.uint32).view(np.int32)
        self._mark(name, None if values.null_count == 0 else values.is_valid())

    def _mark(self, name: str, where: pa.Array | None) -> None:
        if where is None:
            self.present |= _bit(name)
        else:
            there = where.to_numpy(zero_copy_only=False)
            self.present |= np.where(there, _bit(name), np.uint64(0))

    def _complete(self, columns: dict[str, pa.Array], *, key: bool) -> None:
        """What a row may leave out: PUT, the sender's mapping, scope 0 for a whole key."""
        n = self.count
        body = np.uint64(PUT)
        if "body" in columns:
            given = pc.fill_null(_typed("body", columns["body"]), PUT).to_numpy(
                zero_copy_only=False
            )
            if n and not np.isin(given, (PUT, DEL)).all():
                raise EncodeError(f"column 'body' is {PUT} (PUT) or {DEL} (DEL)")
            body = given.astype(np.uint64)
        self.present |= body << np.uint64(BODY_SHIFT)
        self.deletes = np.broadcast_to(body == DEL, n)
        if "key_mapping" not in columns:
            self._mark("key_mapping", None)
        if key:
            if "key_scope" in columns or "key_suffix" in columns:
                raise EncodeError("a whole 'key', or 'key_scope' and 'key_suffix', not both")
            self.int32[NETWORK.columns["key_scope"].slot, :n] = 0
            self._mark("key_scope", None)

    # --- what the wire can carry -------------------------------------------------------

    def _check(self) -> None:
        if not self.count:
            return
        scope = NETWORK.columns["key_scope"]
        if not self._has("key_scope").all():
            raise EncodeError("a row without a key: give 'key', or 'key_scope' and 'key_suffix'")
        if int(self.int32[scope.slot, : self.count].max()) > 0xFFFF:
            raise EncodeError("column 'key_scope' has values above 65535")
        suffix = self._has("key_suffix") & (self._length("key_suffix") > 0)
        self.present &= ~np.where(suffix, np.uint64(0), _bit("key_suffix"))
        if bool(((self.int32[scope.slot, : self.count] == 0) & ~suffix).any()):
            raise EncodeError("a row with scope 0 and no suffix has no key")
        self._lengths("key_suffix", limits.KEY_SUFFIX_MAX)
        self._lengths("encoding_schema", limits.SCHEMA_MAX)
        self._below("encoding", 0xFFFF)
        self._below("qos", 0xFF)
        for name, together in (
            ("timestamp_id", ("timestamp",)),
            ("source_zid", ("source_eid", "source_sn")),
            ("encoding_schema", ("encoding",)),
        ):
            self._together(name, together)
        for name in ("timestamp_id", "source_zid"):
            self._zids(name)
        payload = self._has("payload") & ~self.deletes
        if not bool((payload | self.deletes).all()):
            raise EncodeError("a PUT without a payload: an empty one is b''")
        if bool((self.deletes & self._has("payload") & (self._length("payload") > 0)).any()):
            raise EncodeError("a DEL carries no payload")
        encoding = self.int32[NETWORK.columns["encoding"].slot, : self.count]
        given = self._has("encoding") & ((encoding != 0) | self._has("encoding_schema"))
        if bool((self.deletes & given).any()):
            raise EncodeError("a DEL carries no encoding")

    def _has(self, name: str) -> Bools:
        there: Bools = self.present & _bit(name) != 0
        return there

    def _length(self, name: str) -> Int32:
        return self.int32[NETWORK.columns[name].slot + 1, : self.count]

    def _lengths(self, name: str, limit: int) -> None:
        if bool((self._has(name) & (self._length(name) > limit)).any()):
            raise EncodeError(f"column {name!r} has values of more than {limit} bytes")

    def _below(self, name: str, top: int) -> None:
        values = self.int32[NETWORK.columns[name].slot, : self.count]
        if bool((self._has(name) & (values > top)).any()):
            raise EncodeError(f"column {name!r} has values above {top}")

    def _together(self, name: str, others: tuple[str, ...]) -> None:
        for other in others:
            one, two = self._has(name), self._has(other)
            wrong = one & ~two if other == "encoding" else one != two
            if bool(wrong.any()):
                raise EncodeError(f"columns {name!r} and {other!r} go together")

    def _zids(self, name: str) -> None:
        there = self._has(name)
        if not there.any():
            return
        length = self._length(name)[there]
        start = self.int32[NETWORK.columns[name].slot, : self.count][there]
        if int(length.min()) < 1 or int(length.max()) > limits.ZID_MAX:
            raise EncodeError(f"column {name!r}: a ZenohID has 1 to {limits.ZID_MAX} bytes")
        if bool((self.spans[name][start + length - 1] == 0).any()):
            raise EncodeError(f"column {name!r}: a ZenohID does not end with a zero byte")

    # --- one row as an object, for what does not fit a batch ---------------------------

    def message(self, row: int) -> Push:
        source = self._bytes("source_zid", row)
        clock = self._bytes("timestamp_id", row)
        source_info = source and SourceInfo(
            zid=ZenohId(source), eid=self._int("source_eid", row), sn=self._int("source_sn", row)
        )
        time = NETWORK.columns["timestamp"]
        timestamp = clock and Timestamp(time=int(self.uint64[time.slot, row]), id=ZenohId(clock))
        attachment = self._bytes("attachment", row)
        body: Put | Del
        if self.deletes[row]:
            body = Del(
                timestamp=timestamp or None, source_info=source_info or None, attachment=attachment
            )
        else:
            body = Put(
                timestamp=timestamp or None,
                encoding=Encoding(self._int("encoding", row), self._bytes("encoding_schema", row)),
                source_info=source_info or None,
                attachment=attachment,
                payload=self._bytes("payload", row) or b"",
            )
        mapping = Mapping.SENDER if self._has("key_mapping")[row] else Mapping.RECEIVER
        suffix = (self._bytes("key_suffix", row) or b"").decode()
        return Push(
            key=WireExpr(self._int("key_scope", row), suffix, mapping),
            qos=QoS(self._int("qos", row)),
            body=body,
        )

    def _int(self, name: str, row: int) -> int:
        column = NETWORK.columns[name]
        if not self._has(name)[row]:
            return column.default or 0
        return int(self.int32[column.slot, row]) & 0xFFFF_FFFF

    def _bytes(self, name: str, row: int) -> bytes | None:
        if not self._has(name)[row]:
            return None
        slot = NETWORK.columns[name].slot
        start, length = int(self.int32[slot, row]), int(self.int32[slot + 1, row])
        return self.spans[name][start : start + length].tobytes()


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """By name; a column of nothing but nulls is as good as absent."""
    return {
        name: values
        for name, values in zip(batch.schema.names, batch.columns, strict=True)
        if not pa.types.is_null(values.type)
    }


def _refuse_others(columns: dict[str, pa.Array]) -> None:
    """A column that is not written must say what its absence would: nothing is lost silently."""
    for name, values in columns.items():
        column = NETWORK.columns.get(name)
        if name in COLUMNS or column is None or values.null_count == len(values):
            continue
        default = False if column.form is Form.BOOL else column.default
        if default is None or not pc.all(pc.equal(_typed(name, values, column), default)).as_py():
            raise EncodeError(f"column {name!r} is not written by the columnar writer")


def _typed(name: str, values: pa.Array, column: Column | None = None) -> pa.Array:
    """The values in the one type that is worked with. What would change a value is refused."""
    form = column.form if column is not None else Form.INT32
    given = values.type
    if form is Form.UINT64 and pa.types.is_uint64(given):
        return values.view(pa.int64())
    wanted, fits = pa.int64(), pa.types.is_integer(given)
    if form is Form.BOOL:
        wanted, fits = pa.bool_(), pa.types.is_boolean(given)
    elif form is Form.SPAN:
        wanted, fits = pa.binary(), pa.types.is_binary(given) or pa.types.is_large_binary(given)
        text = pa.types.is_string(given) or pa.types.is_large_string(given)
        if column is not None and column.text:
            fits = text
        elif name in _BYTES_OR_TEXT:
            fits |= text
    if not fits:
        raise EncodeError(f"column {name!r} cannot be {given}")
    try:
        return values.cast(wanted)
    except pa.ArrowInvalid as e:
        raise EncodeError(f"column {name!r}: {e}") from None


def _bit(name: str) -> np.uint64:
    return np.uint64(1 << NETWORK.columns[name].bit)
