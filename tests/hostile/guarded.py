"""``python -m tests.hostile.guarded``: bytes that end where memory ends.

Everything that is read or written lies between two pages that nobody may touch, so a kernel that
looks one byte too far kills this process; ``test_guarded`` sees it. With an argument, the process
looks too far on purpose.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuzz.fields import put_z
from tests import vectors
from tests.hostile import compiled
from tests.hostile.attacks import ATTACKS, BAD_TEXT, cut
from tests.hostile.samples import FRAME, places, samples
from zenwire.columns import Scanner, Spans, Writer, kernels, malformed, network, split, transport
from zenwire.columns.alike import Alike
from zenwire.columns.pack import Packer
from zenwire.columns.publish import Rows, Stamped
from zenwire.errors import DecodeError
from zenwire.transport import Straight
from zenwire.wire import decode_batch, encode, encode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.declare import DeclareKeyExpr, DeclareToken
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Declare, Push
from zenwire.wire.repeat import FrameHeads
from zenwire.wire.transport import Fragment, Frame
from zenwire.wire.values import Mapping, QoS, WireExpr

Bytes = npt.NDArray[np.uint8]

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_NOTHING = 0
"""PROT_NONE."""


class Guarded:
    """``size`` bytes and a little more, between two pages that nobody may touch."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        room = -(-size // page) * page
        self._map = mmap.mmap(-1, room + 2 * page)
        self.memory: Bytes = np.frombuffer(self._map, np.uint8)[page : page + room]
        first = self.memory.ctypes.data - page
        for address in (first, first + page + room):
            if _LIBC.mprotect(address, page, _NOTHING):
                raise OSError(ctypes.get_errno(), "mprotect")

    def last(self, data: bytes) -> Bytes:
        """The data, right before the page behind."""
        view = self.memory[len(self.memory) - len(data) :]
        view[:] = np.frombuffer(data, np.uint8)
        return view

    def first(self, data: bytes) -> Bytes:
        """The data, right behind the page before."""
        view = self.memory[: len(data)]
        view[:] = np.frombuffer(data, np.uint8)
        return view

    def array(self, shape: tuple[int, ...], kind: type[np.generic]) -> npt.NDArray[Any]:
        """An array that ends right before the page behind."""
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        return self.memory[len(self.memory) - size :].view(kind).reshape(shape)


# Reading.


def _batches() -> Iterator[tuple[bytes, bool]]:
    """Bad ones of every kind, and whether they are bare messages."""
    for sample in samples():
        for place in places(sample.spec)[:2]:
            for attack in ATTACKS.values():
                for i, case in enumerate(attack(sample)):
                    if len(case.data) < 1500 and (attack is cut or i % 9 == 0):
                        yield place.put(case.data)[0], place.low_latency
    for vector in vectors.vectors():
        head = FRAME if vector.scope == "network" else b""
        for n in range(len(vector.raw) + 1):
            yield head + vector.raw[:n], False


def _texts() -> Iterator[tuple[bytes, bool]]:
    """Text and payload of every length as the last thing in a batch."""
    for n in range(1, 60):
        for tail in (b"", *BAD_TEXT[n % 2 :: 2]):
            suffix = put_z(n + len(tail)) + b"k" * n + tail
            yield FRAME + b"\x1e\x20\x01\x00" + suffix, False
            yield FRAME + b"\x3d\x00" + suffix, False
            yield FRAME + b"\x3d\x00" + suffix + b"\x02", False
            yield FRAME + b"\x3d\x00" + suffix + b"\x01\x00", False
    for n in range(200):
        put = Push(key=WireExpr(1), body=Put(payload=b"p" * n))
        yield encode_batch([Frame(sn=1), put, put]), False
        yield encode(put), True
        yield encode(Fragment(sn=1, payload=b"f" * n)), False
        key = WireExpr(1, "k" * n, Mapping.RECEIVER)
        yield encode_batch([Frame(sn=1), Declare(body=DeclareKeyExpr(expr_id=1, key=key))]), False
        yield encode(Declare(body=DeclareToken(id=1, key=key))), True


def scan() -> int:
    """Batches up to the page behind, some from the page before; some of them as tables."""
    guarded, scanner = Guarded(8192), Scanner()
    count = 0
    for i, (data, low_latency) in enumerate((*_batches(), *_texts())):
        spans = Spans.of_lengths([len(data)])
        for put in (guarded.last, guarded.first)[: 1 + (i % 4 == 0)]:
            (found,) = scanner.scan(put(data), spans, low_latency=low_latency)
            if i % 50 == 0 or (len(found.bad.batch) == 0 and i % 5 == 0):
                for table in (network(found), transport(found), malformed(found)):
                    table.validate(full=True)
            count += 1
    return count


def many_batches() -> int:
    """Whole batches before the last one, and spans of one batch in all ways to cut it."""
    guarded, scanner = Guarded(1 << 16), Scanner()
    good = encode_batch([Frame(sn=1), Push(key=WireExpr(0, "key"), body=Put(payload=b"x" * 20))])
    for n in range(len(good) + 1):
        data = good * 50 + good[:n]
        for found in scanner.scan(guarded.last(data), Spans.of_lengths([len(good)] * 50 + [n])):
            network(found).validate(full=True)
    view = guarded.last(good)
    for start in range(len(good) + 1):
        for end in range(start, len(good) + 1):
            spans = Spans(np.array([start], np.int32), np.array([end], np.int32))
            for low_latency in (False, True):
                list(scanner.scan(view, spans, low_latency=low_latency))
    n, far = len(good), 2**31 - 1
    for start, end in (
        (-1, n),
        (0, n + 1),
        (5, 4),
        (n + 1, n + 1),
        (-far - 1, n),
        (0, far),
        (far, 0),
    ):
        for before in (0, 3):
            starts = np.array([0] * before + [start], np.int32)
            ends = np.array([n] * before + [end], np.int32)
            try:
                list(scanner.scan(view, Spans(starts, ends)))
            except ValueError:
                continue
            raise AssertionError(f"a batch from {start} to {end} was read")
    return len(good) ** 2


def streams() -> int:
    """Lengths that are cut, that wait, and that are too long."""
    guarded = Guarded(8192)
    count = 0
    for prefix in (2, 4):
        stream = b"".join(frame_stream(b"\x04" * n, prefix) for n in (0, 1, 2, 100, 0, 7))
        for n in range(len(stream) + 1):
            for tail in (b"", b"\xff", b"\xff\xff", b"\xff" * 3, b"\xff" * 4, b"\xff\xff\0\0"):
                try:
                    split(guarded.last(stream[:n] + tail), prefix=prefix)
                except DecodeError:
                    count += 1
    return count


def tables() -> int:
    """What the scanner writes: rows as many as fit, up to the page behind each array."""
    scanner = Scanner()
    rows, bad = 300, 7
    names = ("_int32", "_uint64", "_transport32", "_transport64", "_present", "_transport_present")
    kept = [_guard(scanner, name, rows) for name in names]
    kept.append(_guard(scanner, "_bad", bad))
    batches = [data for data, low in (*_batches(), *_texts()) if len(data) < rows and not low]
    batches += [b"\x04" * n for n in range(rows)] + [FRAME + b"\x1a\x01" * 140] * 50
    batches += [FRAME + b"\x1a\x01" * n for n in range(9) for _ in range(200)]
    buffer = np.frombuffer(b"".join(batches), np.uint8)
    count = 0
    for found in scanner.scan(buffer, Spans.of_lengths([len(data) for data in batches])):
        count += found.stop - found.first
        assert found.network.count <= rows
        assert len(found.bad.batch) <= bad
    assert count == len(batches)
    assert len(scanner._present) == rows, "the arrays were replaced: a batch was too long"
    return count


def _guard(scanner: Scanner, name: str, width: int) -> Guarded:
    old = getattr(scanner, name)
    shape = (*old.shape[:-1], width)
    guarded = Guarded(int(np.prod(shape)) * 8)
    setattr(scanner, name, guarded.array(shape, old.dtype.type))
    return guarded


def single_kernels() -> int:
    """Integers and text, right up to the page behind."""
    guarded = Guarded(4096)
    count = 0
    numbers = [put_z(v, size) for v in (0, 127, 128, 2**56, 2**64 - 1) for size in range(10)]
    for number in numbers:
        for n in range(len(number) + 1):
            for head in (b"", b"\x80" * 9):
                view = guarded.last(head + number[:n])
                compiled.vle(view, list(range(len(view) + 1)), [len(view)] * (len(view) + 1))
                count += 1
    for n in range(40):
        for tail in (b"", *BAD_TEXT):
            view = guarded.last(b"k" * n + tail)
            starts = list(range(len(view) + 1))
            sizes = [len(view) - start for start in starts]
            compiled.is_utf8(view, starts, sizes)
            compiled.is_ascii(view, starts, sizes, [len(view)] * len(starts))
            count += 1
    return count


def gather() -> int:
    """Spans of every size, from the end of the buffer, into an array that ends just as late."""
    source, target = Guarded(4096), Guarded(4096)
    count = 0
    for size in range(150):
        for before in (0, 1, 63, 64, 65, 200):
            view = source.last(bytes(i % 251 for i in range(before + size)))
            starts = np.array([before, 0], np.int32)
            offsets = np.array([0, size, size + before], np.int32)
            out = target.array((size + before + 64,), np.uint8)
            kernels.gather(view, starts, offsets, 2, out)
            assert out[:size].tobytes() == view[before:].tobytes()
            count += 1
    return count


# Writing.

_TEXT = ("key",)
_ZIDS = ("timestamp_id", "source_zid")


def _column(guarded: Guarded, values: list[bytes], *, text: bool) -> pa.Array:
    """An Arrow array whose bytes end where memory ends."""
    view = guarded.last(b"".join(values))
    offsets = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int32)
    data = pa.foreign_buffer(view.ctypes.data, len(view), base=guarded)
    kind = pa.string() if text else pa.binary()
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(offsets), data])


def _address(column: pa.Array) -> int:
    """Of its bytes: where they are when the writer has made them binary, they are read."""
    address: int = column.buffers()[2].address
    return address


def write() -> int:
    """Publications whose bytes end where memory ends, into an array that does as well."""
    out = Guarded(1 << 16)
    sources = {name: Guarded(1 << 16) for name in ("key", "payload", "attachment", *_ZIDS)}
    sources["encoding_schema"] = Guarded(1 << 16)
    count = 0
    for n in range(1, 140, 2):
        sizes = [(n * i) % 50 + 1 for i in range(20)] + [n]
        rows = len(sizes)
        columns: dict[str, pa.Array] = {}
        for name, guarded in sources.items():
            top = 16 if name in _ZIDS else 255 if name == "encoding_schema" else 1000
            values = [b"x" * min(size, top) for size in sizes]
            columns[name] = _column(guarded, values, text=name in _TEXT)
            assert _address(columns[name].cast(pa.binary())) == _address(columns[name])
        for name in ("timestamp", "source_eid", "source_sn", "encoding"):
            columns[name] = pa.array([n] * rows, pa.int64())
        table = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        writer = Writer(batch_size=1000 + n)
        writer._out = out.array((4096 + n,), np.uint8)
        found = []
        for written in writer.write(table):
            begin = 0
            for end in written.ends.tolist():
                found += decode_batch(bytes(written.data[begin + 2 : end]))
                begin = end
        payloads = [m.body.payload for m in found if isinstance(m, Push)]  # type: ignore[union-attr]
        assert [len(payload) for payload in payloads] == sizes
        count += rows
    return count


def alike() -> int:
    """Payloads that end where memory ends, into an array that does as well."""
    out, source, count = Guarded(1 << 16), Guarded(1 << 16), 0
    qos, key = QoS(), [WireExpr(0, "a/b")]
    straight = Straight(0, FrameHeads(qos.priority, True), 0, 0x7F, 1000, 2)
    for n in range(1, 140):
        values = [b"x" * ((n * i) % 50) for i in range(20)] + [b"x" * n]
        payload = _column(source, values, text=False)
        rows = Rows(pa.table({"payload": payload}), Stamped(qos.raw, True, Encoding(), own=True))
        packer, done = Packer(), 0
        packer._out = out.array((1200 + n,), np.uint8)
        while done < rows.count:
            publications = rows.publications(slice(None), key, qos)
            assert isinstance(publications, Alike)
            made = packer.batches(publications, done, straight, qos, True).messages
            assert made
            done += made
        count += done
    return count


def beyond() -> int:
    """One byte behind the end: this does not return."""
    view = Guarded(10).last(b"x")
    return ctypes.c_uint8.from_address(view.ctypes.data + 1).value


JOBS: tuple[Callable[[], int], ...] = (
    scan,
    many_batches,
    streams,
    tables,
    single_kernels,
    gather,
    write,
    alike,
)


def main() -> None:
    for job in (beyond,) if len(sys.argv) > 1 else JOBS:
        print(job.__name__, flush=True)  # noqa: T201 # the last one told is the one that died
        print(job(), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
