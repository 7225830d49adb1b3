"""The columnar reader against the object codec: the same rows, or the same fault there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tests.parity.rows import SCANNER, Found, Row, by_columns, by_objects, found_in
from zenwire import columns
from zenwire.columns import Scan, Spans, as_buffer
from zenwire.errors import DecodeError, Fault
from zenwire.wire import LOW_LATENCY_PREFIX, decode_batch, split_stream
from zenwire.wire.buffer import Reader
from zenwire.wire.objects import codec_of, encode
from zenwire.wire.structs import TimestampStack

__all__ = ["MismatchError", "equal", "one_batch", "one_message", "stream"]


class MismatchError(AssertionError):
    """Something that holds for all input does not hold for this one. ``what`` names it."""

    def __init__(self, what: str, how: str) -> None:
        super().__init__(what, how)
        self.what = what
        self.how = how

    def __str__(self) -> str:
        return f"{self.what}: {self.how}"


def equal(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise MismatchError(what, f"{found!r} is not {expected!r}")


def same(objects: Found, found: Found) -> None:
    """Row by row, so that a difference is told in a line."""
    equal("fault", found.fault, objects.fault)
    for row, expected in zip(found.rows, objects.rows, strict=False):
        names = sorted({n for n in row | expected if row.get(n) != expected.get(n)})
        if names:
            what = f"{', '.join(names)} of {expected['scope']} {expected['message']:#x}"
            told = [f"{n} {row.get(n)!r} is not {expected.get(n)!r}" for n in names]
            raise MismatchError(what, f"at {expected['at']}, {'; '.join(told)}")
    equal("rows", len(found.rows), len(objects.rows))


def _plain(found: Found) -> Found:
    """With what the columns keep as it was written spelled as we spell it."""
    return Found([_spelled(row) for row in found.rows], found.fault)


def _spelled(row: Row) -> Row:
    stack = row.get("timestamp_stack")
    if stack is None:
        return row
    return row | {"timestamp_stack": encode(codec_of(TimestampStack).read(Reader(stack)))}


def one_batch(data: bytes) -> None:
    """A batch, and again as a part of a larger buffer."""
    _compare(data, low_latency=False)
    messages = decode_batch(data)
    equal("messages", len(messages), len(by_columns(data).rows))


def one_message(data: bytes) -> None:
    """The same for a bare message."""
    objects = _compare(data, low_latency=True)
    if objects.fault:
        raise DecodeError(Fault(objects.fault[0]), objects.fault[1])


def _compare(data: bytes, *, low_latency: bool) -> Found:
    objects = by_objects(data, low_latency=low_latency)
    same(objects, _plain(by_columns(data, low_latency=low_latency)))
    # What is around a batch is not read: neither bytes after it nor before it say anything.
    around = np.frombuffer(b"\x7f" * 3 + data + b"\x01" * 32, np.uint8)
    spans = Spans(np.array([3], np.int32), np.array([3 + len(data)], np.int32))
    (scan,) = SCANNER.scan(around, spans, low_latency=low_latency)
    same(objects, _plain(_moved(found_in(scan, 0), 3)))
    return objects


def _moved(found: Found, start: int) -> Found:
    fault = found.fault and (found.fault[0], found.fault[1] - start)
    moved = [row | {"at": row["at"] - start, "end": row["end"] - start} for row in found.rows]
    return Found(moved, fault)


def stream(prefix: int, data: bytes) -> None:
    """Batches with their lengths: the same batches, then the same rows, then the same in Arrow."""
    low_latency = prefix == LOW_LATENCY_PREFIX
    buffer = as_buffer(data)
    objects: list[tuple[int, int]] = []
    fault = None
    try:
        objects.extend(split_stream(data, prefix))
    except DecodeError as e:
        fault = e.fault, e.offset
    try:
        spans, rest = columns.split(buffer, prefix=prefix)
    except DecodeError as e:
        equal("fault", (e.fault, e.offset), fault)
        starts, ends = zip(*objects, strict=True) if objects else ((), ())
        spans = Spans(np.array(starts, np.int32), np.array(ends, np.int32))
    else:
        equal("fault", None, fault)
        equal("rest", rest, objects[-1][1] if objects else 0)
    equal("batches", list(zip(*map(np.ndarray.tolist, spans), strict=True)), objects)
    for scan in SCANNER.scan(buffer, spans, low_latency=low_latency):
        _compare_all(data, scan, low_latency=low_latency)
    if fault:
        raise DecodeError(*fault)


def _compare_all(data: bytes, scan: Scan, *, low_latency: bool) -> None:
    everything = found_in(scan, -1).rows
    network, transport = _arrow(columns.network(scan)), _arrow(columns.transport(scan))
    bad = {row["batch"]: row for row in _arrow(columns.malformed(scan))}
    equal("bad batches in order", list(bad), sorted(bad))
    for batch in range(scan.first, scan.stop):
        start, end = int(scan.spans.starts[batch]), int(scan.spans.ends[batch])
        objects = by_objects(data[start:end], low_latency=low_latency)
        rows = [row for row in everything if start <= row["at"] < end]
        told = bad.get(batch)
        fault = (told["fault"], told["offset"]) if told else None
        same(objects, _plain(Found(_moved(Found(rows, None), start).rows, fault)))
        in_arrow = _rows(network, batch, "network") + _rows(transport, batch, "transport")
        in_arrow.sort(key=lambda row: int(row["at"]))
        same(objects, _plain(Found(in_arrow, fault)))
        _frames(data[start:end], [row for row in network if row["batch"] == batch])


def _arrow(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    batch.validate(full=True)
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


_PLACE = ("batch", "offset", "length", "body_offset")
_OF_FRAME = ("sn", "reliable", "priority")
_BARE = (0x01, 0x02, 0x07)
_TEXTS = ("key_suffix", "parameters")


def _rows(table: list[dict[str, Any]], batch: int, scope: str) -> list[Row]:
    return [_row(row, scope) for row in table if row["batch"] == batch]


def _row(told: dict[str, Any], scope: str) -> Row:
    """A row of a table as ``by_objects`` has it."""
    at = told["offset"]
    row: Row = {
        "scope": scope,
        "message": told["message"],
        "at": at,
        "end": at + told["length"],
    }
    if scope == "transport" and told["message"] in _BARE:
        return row
    row["body"] = told.get("body") or 0
    for name, value in told.items():
        gone = value is None or value is False or (name in _TEXTS and not value)
        if (
            gone
            or name in (*_PLACE, "message", "body")
            or (scope == "network" and name in _OF_FRAME)
        ):
            continue
        if isinstance(value, str):
            row[name] = value.encode()
        elif isinstance(value, int) and value < 0:
            row[name] = value + 2**64
        else:
            row[name] = value
    return row


def _frames(data: bytes, rows: list[dict[str, Any]]) -> None:
    """What network messages have of their FRAME."""
    transport = [row for row in by_objects(data).rows if row["scope"] == "transport"]
    for row in rows:
        if row["sn"] is None:
            continue
        frame = [x for x in transport if x["at"] < row["offset"]][-1]
        expected = (frame["sn"], frame.get("reliable", False), frame["priority"])
        equal("frame", (row["sn"], row["reliable"], row["priority"]), expected)
