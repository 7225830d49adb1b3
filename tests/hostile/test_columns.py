"""Bad bytes for the columnar reader: the fault that is due, there, as a row; nothing raised.

The same bytes go through the object codec, which says the same.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests import recorded, vectors
from tests.hostile.attacks import ATTACKS, HUGE, Case
from tests.hostile.readers import (
    Told,
    assert_same_rows,
    some_recorded,
    told_by_columns,
    told_by_objects,
)
from tests.hostile.samples import FRAME, Place, Sample, name, places, samples
from zenwire.columns import Scanner, Spans, as_buffer, malformed, network, split, transport
from zenwire.errors import DecodeError, Fault
from zenwire.wire import BATCH_MAX, LOW_LATENCY_PREFIX, frame_stream, split_stream

MEGABYTE = 1 << 20
PLACED = [(s, place) for s in samples() for place in places(s.spec)]


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    """One for all: what a bad batch leaves in its arrays must not matter to the next."""
    return Scanner()


def agree(
    inputs: list[bytes], scanner: Scanner, *, low_latency: bool = False, every: int = 1
) -> list[Told]:
    """Both readers say the same fault there, after as many messages.

    Where all is well, all values are compared, of one in ``every`` inputs.
    """
    objects = [told_by_objects(data, low_latency=low_latency) for data in inputs]
    columns = told_by_columns(inputs, low_latency=low_latency, scanner=scanner)
    for data, one, other in zip(inputs, objects, columns, strict=True):
        assert one == other, data[:2000].hex()
    good = [data for data, (fault, _) in zip(inputs, objects, strict=True) if fault is None]
    assert_same_rows(good[::every], low_latency=low_latency, scanner=scanner)
    return [fault for fault, _ in objects]


# Every attack on every message, wherever it may stand.


def _id(value: object) -> str:
    if isinstance(value, Sample):
        return name(value)
    return "low_latency" if isinstance(value, Place) and value.low_latency else "batch"


@pytest.mark.parametrize(("sample", "place"), PLACED, ids=_id)
def test_attacks(sample: Sample, place: Place, scanner: Scanner) -> None:
    for what, attack in ATTACKS.items():
        inputs: list[bytes] = []
        due: list[Told] = []
        for case in attack(sample):
            whole, at = place.put(case.data)
            inputs.append(whole)
            due.append((case.fault, case.offset + at) if case.fault else None)
        found = agree(inputs, scanner, low_latency=place.low_latency, every=3)
        assert found == due, what


def test_every_message_is_attacked() -> None:
    placed = {sample.spec.name for sample, _ in PLACED}
    nowhere = {sample.spec.name for sample in samples()} - placed
    assert nowhere == {"SCOUT", "HELLO", "LinkState", "LinkStateList", "LaneSn", "StackEntry"}


@pytest.mark.parametrize(("sample", "place"), PLACED, ids=_id)
def test_every_bit_turned(sample: Sample, place: Place, scanner: Scanner) -> None:
    inputs = []
    for at, byte in enumerate(sample.data):
        for other in {*(byte ^ 1 << bit for bit in range(8)), 0x00, 0x7F, 0x80, 0xFF} - {byte}:
            bad = sample.data[:at] + bytes([other]) + sample.data[at + 1 :]
            inputs.append(place.put(bad)[0])
    agree(inputs, scanner, low_latency=place.low_latency, every=7)


@pytest.mark.parametrize(("sample", "place"), PLACED, ids=_id)
def test_every_byte_lost_or_doubled(sample: Sample, place: Place, scanner: Scanner) -> None:
    data = sample.data
    lost = [data[:at] + data[at + 1 :] for at in range(len(data))]
    doubled = [data[:at] + data[at : at + 1] + data[at:] for at in range(len(data))]
    inputs = [place.put(bad)[0] for bad in lost + doubled]
    agree(inputs, scanner, low_latency=place.low_latency, every=2)


# Ids.


@pytest.mark.parametrize("head", [b"", b"\x04", FRAME, FRAME + b"\x04"], ids=bytes.hex)
def test_every_header(head: bytes, scanner: Scanner) -> None:
    known = set(range(8)) | (set(range(0x19, 0x20)) if head == FRAME else set())
    inputs = [head + bytes([h]) + tail for h in range(256) for tail in (b"", bytes(20))]
    for data, fault in zip(inputs, agree(inputs, scanner), strict=True):
        unknown = data[len(head)] & 0x1F not in known
        assert (fault == (Fault.UNKNOWN_ID, len(head))) is unknown, data.hex()


def test_every_header_in_low_latency(scanner: Scanner) -> None:
    known = {0x03, 0x04, *range(0x19, 0x20)}
    inputs = [bytes([h]) + tail for h in range(256) for tail in (b"", bytes(20))]
    for data, fault in zip(inputs, agree(inputs, scanner, low_latency=True), strict=True):
        assert (fault == (Fault.UNKNOWN_ID, 0)) is (data[0] & 0x1F not in known), data.hex()


# Whole inputs.


def test_nothing(scanner: Scanner) -> None:
    assert told_by_columns([], scanner=scanner) == []
    for low_latency in (False, True):
        told = told_by_columns([b"", b"", b""], low_latency=low_latency, scanner=scanner)
        assert told == [(None, 0)] * 3
        (scan,) = scanner.scan(as_buffer(b""), Spans.of_lengths([0]), low_latency=low_latency)
        for table in (network(scan), transport(scan), malformed(scan)):
            table.validate(full=True)
            assert table.num_rows == 0
    assert [len(part) for part in split(as_buffer(b""))[0]] == [0, 0]


def test_a_megabyte_of_zeros() -> None:
    zeros = bytes(MEGABYTE)
    cut = (Fault.TRUNCATED, MEGABYTE - 1)
    scanner = Scanner()
    assert told_by_columns([zeros], scanner=scanner) == [(None, MEGABYTE // 2)]
    assert told_by_columns([zeros[:-1]], scanner=scanner) == [(cut, MEGABYTE // 2 - 1)]
    told = told_by_columns([zeros], low_latency=True, scanner=scanner)
    assert told == [((Fault.UNKNOWN_ID, 0), 0)]
    spans, rest = split(as_buffer(zeros))
    assert (len(spans.starts), rest) == (MEGABYTE // 2, MEGABYTE)
    assert spans.starts.tolist() == spans.ends.tolist()
    assert sum(scan.stop - scan.first for scan in scanner.scan(as_buffer(zeros), spans)) == len(
        spans.starts
    )


def test_a_megabyte_of_ones() -> None:
    ones = b"\xff" * MEGABYTE
    scanner = Scanner()
    told = told_by_columns([ones, FRAME + ones], scanner=scanner)
    overflow = (Fault.OVERFLOW, len(FRAME) + 1)
    assert told == [((Fault.UNKNOWN_ID, 0), 0), (overflow, 1)]
    told = told_by_columns([ones], low_latency=True, scanner=scanner)
    assert told == [((Fault.OVERFLOW, 1), 0)]
    spans, rest = split(as_buffer(ones))
    assert (spans.ends - spans.starts).tolist() == [BATCH_MAX] * 15
    assert rest == 15 * (BATCH_MAX + 2)


def test_a_batch_of_keep_alives(scanner: Scanner) -> None:
    told = told_by_columns([b"\x04" * BATCH_MAX, b"\x84" * BATCH_MAX], scanner=scanner)
    assert told == [(None, BATCH_MAX), ((Fault.LIMIT, 1 + 128), 0)]


def test_a_stream_of_full_batches_of_keep_alives(scanner: Scanner) -> None:
    stream = frame_stream(b"\x04" * BATCH_MAX) * 20
    scans = scanner.scan_stream(as_buffer(stream))
    assert sum(scan.transport.count for scan in scans) == 20 * BATCH_MAX


def test_nothing_is_read_after_close(scanner: Scanner) -> None:
    tails = [b"\xff" * 1000, b"\x08", FRAME + b"\xff", bytes(9)]
    inputs = [b"\x03\x01" + tail for tail in tails]
    for low_latency in (False, True):
        assert agree(inputs, scanner, low_latency=low_latency) == [None] * len(tails)


# Cuts.

AROUND = {
    "network": [FRAME],
    "declare": [FRAME + b"\x1e"],
    "data": [FRAME + head for head in (b"\x5d\x01", b"\x5c\x01\x01", b"\x5b\x01\x01\x04")],
}


def test_vectors_cut_at_each_byte(scanner: Scanner) -> None:
    """Every vector, as what it is, and as a message in a FRAME."""
    inputs = set()
    for vector in vectors.vectors():
        for head in [b"", *AROUND.get(vector.scope, [])]:
            inputs |= {head + vector.raw[:n] for n in range(len(vector.raw) + 1)}
    assert len(inputs) > 10_000
    agree(sorted(inputs), scanner)


def test_vectors_cut_at_each_byte_in_low_latency(scanner: Scanner) -> None:
    inputs = set()
    for vector in vectors.vectors():
        for head in [b"", *AROUND.get(vector.scope, [])]:
            whole = head.removeprefix(FRAME) + vector.raw
            inputs |= {whole[:n] for n in range(len(whole) + 1)}
    agree(sorted(inputs), scanner, low_latency=True)


@pytest.mark.parametrize("path", recorded.CAPTURES, ids=lambda p: p.stem)
def test_recorded_batches_cut_at_each_byte(path: Path, scanner: Scanner) -> None:
    """A fault, or complete messages; and the fault is always that bytes are missing."""
    for batch in some_recorded(path):
        inputs = [batch.data[:n] for n in range(len(batch.data) + 1)]
        told = told_by_columns(inputs, low_latency=batch.lowlatency, scanner=scanner)
        objects = [told_by_objects(data, low_latency=batch.lowlatency) for data in inputs]
        assert told == objects
        assert {fault[0] for fault, _ in told if fault} <= {Fault.TRUNCATED}
        counts = [count for _, count in told]
        assert counts == sorted(counts)
        assert told[-1][0] is None


def test_a_cut_batch_in_front_of_its_rest(scanner: Scanner) -> None:
    """The bytes that it lacks come right behind it, as another batch: they are not read."""
    for sample, place in PLACED:
        whole, _ = place.put(sample.data)
        buffer = as_buffer(whole)
        for n in range(len(whole)):
            spans = Spans(np.array([0, n], np.int32), np.array([n, len(whole)], np.int32))
            (scan,) = scanner.scan(buffer, spans, low_latency=place.low_latency)
            fault, _ = told_by_objects(whole[:n], low_latency=place.low_latency)
            bad = scan.bad
            found = zip(bad.batch.tolist(), bad.fault.tolist(), bad.offset.tolist(), strict=True)
            due = [(0, fault[0].value, fault[1])] if fault else []
            assert [row for row in found if row[0] == 0] == due, (whole.hex(), n)


# Rows of faults.


def test_a_bad_batch_takes_no_other_down(scanner: Scanner) -> None:
    good = FRAME + b"\x5d\x01\x01\x01x"
    bad = [place.put(case.data)[0] for case, place in _some_cases()]
    inputs = [data for one in bad for data in (good, one)] + [good]
    told = told_by_columns(inputs, scanner=scanner)
    assert told[::2] == [(None, 2)] * (len(bad) + 1)
    assert all(fault is not None for fault, _ in told[1::2])


def _some_cases() -> list[tuple[Case, Place]]:
    found: list[tuple[Case, Place]] = []
    for sample, place in PLACED[::3]:
        if not place.low_latency:
            cases = (c for attack in ATTACKS.values() for c in attack(sample) if c.fault)
            found += [(case, place) for case in list(cases)[::40] if len(case.data) < 1000]
    return found


def test_faults_as_a_table(scanner: Scanner) -> None:
    """10,000 bad batches, more than one piece takes: each is a row that says where."""
    bad = [FRAME + b"\x5d\x01\x01" + b"\xff" * 5, b"\x04" * 5 + b"\x08", b"\x01"]
    due = [(Fault.TRUNCATED, 10, 2), (Fault.UNKNOWN_ID, 5, 5), (Fault.TRUNCATED, 1, 0)]
    inputs = [bad[i % 3] for i in range(10_000)]
    buffer = as_buffer(b"".join(inputs))
    tables = []
    for scan in scanner.scan(buffer, Spans.of_lengths([len(data) for data in inputs])):
        table = malformed(scan)
        table.validate(full=True)
        tables.append(table)
    rows = pa.Table.from_batches(tables).to_pylist()
    names = ("batch", "fault", "offset", "message_offset")
    assert [tuple(row[n] for n in names) for row in rows] == [
        (i, *due[i % 3]) for i in range(10_000)
    ]


def test_tables_stay_when_the_scanner_goes_on(scanner: Scanner) -> None:
    """They are copies: what the next call finds does not show in them."""
    whole = [place.put(sample.data)[0] for sample, place in PLACED if not place.low_latency]
    inputs = [data for one in whole for data in (one, one[:-1], b"\xff")]
    spans = Spans.of_lengths([len(data) for data in inputs])
    (scan,) = scanner.scan(as_buffer(b"".join(inputs)), spans)
    tables = [network(scan), transport(scan), malformed(scan)]
    before = [table.to_pylist() for table in tables]
    assert all(before)
    inputs.reverse()
    spans = Spans.of_lengths([len(data) for data in inputs])
    list(scanner.scan(as_buffer(b"".join(inputs)), spans))
    for array in (scanner._bad, scanner._present, scanner._int32, scanner._uint64):
        array[:] = 1
    assert [table.to_pylist() for table in tables] == before


def test_arrow_of_all_that_is_before_a_fault(scanner: Scanner) -> None:
    """Tables are sound whatever the bytes were: text is UTF-8, offsets are in order."""
    for low_latency in (False, True):
        inputs = []
        for sample, place in PLACED:
            if place.low_latency is low_latency:
                cases = (c for attack in ATTACKS.values() for c in attack(sample))
                inputs += [place.put(c.data)[0] for c in cases if len(c.data) < 1000]
        buffer = as_buffer(b"".join(inputs))
        spans = Spans.of_lengths([len(data) for data in inputs])
        for scan in scanner.scan(buffer, spans, low_latency=low_latency):
            for table in (network(scan), transport(scan), malformed(scan)):
                table.validate(full=True)


# Streams.


@pytest.mark.parametrize("before", [0, 1, 500, 70_000])
@pytest.mark.parametrize("length", [BATCH_MAX + 1, *HUGE[:2]])
def test_a_stream_of_too_long_lengths(length: int, before: int) -> None:
    good = frame_stream(b"\x04", LOW_LATENCY_PREFIX) * before
    for tail in (b"", b"\x04" * 10, b"\xff" * MEGABYTE):
        stream = good + length.to_bytes(4, "little") + tail
        for read in (split, Scanner().scan_stream):
            with pytest.raises(DecodeError) as e:
                read(as_buffer(stream), prefix=LOW_LATENCY_PREFIX)
            assert (e.value.fault, e.value.offset) == (Fault.LIMIT, len(good))


def test_a_stream_above_a_negotiated_size() -> None:
    stream = frame_stream(b"\x04" * 8192) + frame_stream(b"\x04" * 8193)
    with pytest.raises(DecodeError) as e:
        split(as_buffer(stream), limit=8192)
    assert (e.value.fault, e.value.offset) == (Fault.LIMIT, 8194)


@pytest.mark.parametrize("prefix", [2, 4])
def test_a_stream_cut_at_each_byte(prefix: int) -> None:
    batches = [b"", b"\x04", b"\x03\x00", b"\x04" * 300, b""]
    stream = b"".join(frame_stream(batch, prefix) for batch in batches)
    for n in range(len(stream) + 1):
        spans, rest = split(as_buffer(stream[:n]), prefix=prefix)
        whole = list(split_stream(stream[:n], prefix))
        assert list(zip(*map(np.ndarray.tolist, spans), strict=True)) == whole
        assert rest == (whole[-1][1] if whole else 0)
