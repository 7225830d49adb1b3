"""Bad bytes for the object codec: the typed error, with the fault and the offset that are due."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests import recorded, vectors
from tests.hostile.attacks import ATTACKS, has_chain, unknown_headers
from tests.hostile.readers import Told, some_recorded, told_by_objects
from tests.hostile.samples import FRAME, Sample, name, places, samples
from tests.strategies import SCOPES
from tests.vectors import Vector
from zenwire.errors import DecodeError, Fault
from zenwire.wire import (
    BATCH_MAX,
    LOW_LATENCY_PREFIX,
    STREAM_PREFIX,
    compress_batch,
    decode,
    decode_batch,
    decode_linkstate,
    encode,
    expand_batch,
    frame_stream,
    split_stream,
    walk,
    walk_low_latency,
)
from zenwire.wire.define import Ext, Plain, Unknown, spec_of
from zenwire.wire.kinds import Rest
from zenwire.wire.lz4 import decompress
from zenwire.wire.transport import Close, Fragment, KeepAlive

MEGABYTE = 1 << 20
SAMPLES = pytest.mark.parametrize("sample", samples(), ids=name)


def told(read: Any, data: bytes) -> Told:
    try:
        read(data)
    except DecodeError as e:
        error = e
    else:
        return None
    assert str(error).startswith(f"{error.fault.name} at byte {error.offset}")
    assert error.message or not data
    return error.fault, error.offset


# Every attack on every message.


@SAMPLES
def test_a_sample_has_all_that_its_definition_has(sample: Sample) -> None:
    """So that an attack on every field of the sample is one on every field of the message."""
    for e in sample.spec.fields:
        if isinstance(e, Plain | Ext) and e.name != "body":
            assert getattr(sample.message, e.name) != e.default, e.name
    assert sample.read(sample.data) == sample.message
    assert not sample.fields or sample.fields[-1].end == len(sample.data)


@SAMPLES
def test_attacks(sample: Sample) -> None:
    for what, attack in ATTACKS.items():
        for case in attack(sample):
            due = case.fault and (case.fault, case.offset)
            assert told(sample.read, case.data) == due, (what, case.data[:2000].hex())


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_is_idle(attack: str) -> None:
    cases = [case for sample in samples() for case in ATTACKS[attack](sample)]
    assert sum(case.fault is not None for case in cases) >= 10, attack


@SAMPLES
def test_what_extensions_do_not_change(sample: Sample) -> None:
    """An unknown optional one leaves the message as it was; data messages keep it."""
    if not has_chain(sample):
        return
    bare = sample.read(sample.chained(b""))
    keeps = next((e.name for e in sample.spec.fields if isinstance(e, Unknown)), None)
    for chain in (b"\x0e", b"\x2e" + b"\xff" * 9, b"\x4e\x03abc", b"\x8e\xae\x05\x0d"):
        found = sample.read(sample.chained(chain))
        for e in sample.spec.fields:
            assert (getattr(found, e.name) == getattr(bare, e.name)) is (e.name != keeps), e.name
        if keeps:
            assert encode(found) == sample.chained(chain)


@SAMPLES
def test_the_error_names_the_message(sample: Sample) -> None:
    if isinstance(sample.fields[-1].kind, Rest):
        return
    with pytest.raises(DecodeError) as e:
        sample.read(sample.data + b"\0")
    assert (e.value.fault, e.value.offset) == (Fault.TRAILING, len(sample.data))
    assert e.value.message == sample.spec.name


# Ids.


@pytest.mark.parametrize("scope", SCOPES)
def test_unknown_ids_of_a_scope(scope: str) -> None:
    headers = unknown_headers(scope)
    assert len(headers) >= 64
    for header in headers:
        for tail in (b"", b"\0" * 20, b"\xff" * 20):
            data = bytes([header]) + tail
            assert told(lambda d: decode(d, scope), data) == (Fault.UNKNOWN_ID, 0)


@pytest.mark.parametrize("head", [b"", b"\x04", FRAME, FRAME + b"\x04"], ids=bytes.hex)
def test_unknown_ids_in_a_batch(head: bytes) -> None:
    """Network messages stand after a FRAME or another network message, and nowhere else."""
    known = set(range(8)) | (set(range(0x19, 0x20)) if head == FRAME else set())
    for header in range(256):
        found = told(decode_batch, head + bytes([header]))
        unknown = (Fault.UNKNOWN_ID, len(head))
        assert (found == unknown) is (header & 0x1F not in known), hex(header)


def test_unknown_ids_in_low_latency() -> None:
    known = {0x03, 0x04, *range(0x19, 0x20)}
    for header in range(256):
        found = told(lambda d: list(walk_low_latency(d)), bytes([header]))
        assert (found == (Fault.UNKNOWN_ID, 0)) is (header & 0x1F not in known), hex(header)


# Whole inputs.


def test_nothing() -> None:
    for scope in SCOPES:
        assert told(lambda d, s=scope: decode(d, s), b"") == (Fault.TRUNCATED, 0)
    assert told(decode_linkstate, b"") == (Fault.TRUNCATED, 0)
    assert decode_batch(b"") == []
    assert list(walk_low_latency(b"")) == []
    assert list(split_stream(b"")) == []
    assert expand_batch(b"") == b""


def test_a_megabyte_of_zeros() -> None:
    """Two zeros are an OAM of the transport, so it is read; anything else refuses it at once."""
    zeros = bytes(MEGABYTE)
    cut = (Fault.TRUNCATED, MEGABYTE - 1)
    assert told_by_objects(zeros[:-1]) == (cut, MEGABYTE // 2 - 1)
    assert told_by_objects(zeros, low_latency=True) == ((Fault.UNKNOWN_ID, 0), 0)
    assert told(lambda d: decode(d, "network"), zeros) == (Fault.UNKNOWN_ID, 0)
    assert told(lambda d: decode(d, "data"), zeros) == (Fault.UNKNOWN_ID, 0)
    assert told(lambda d: decode(d, "scouting"), zeros) == (Fault.UNKNOWN_ID, 0)
    assert told(lambda d: decode(d, "declare"), zeros) == (Fault.TRAILING, 3)
    assert told(decode_linkstate, zeros) == (Fault.TRAILING, 1)
    assert sum(start == end for start, end in split_stream(zeros)) == MEGABYTE // 2
    assert told(expand_batch, zeros) == (Fault.LIMIT, 1)


def test_a_megabyte_of_ones() -> None:
    ones = b"\xff" * MEGABYTE
    assert told_by_objects(ones) == ((Fault.UNKNOWN_ID, 0), 0)
    # An OAM whose id has nine bytes.
    assert told_by_objects(FRAME + ones) == ((Fault.OVERFLOW, len(FRAME) + 1), 1)
    assert told_by_objects(ones, low_latency=True) == ((Fault.OVERFLOW, 1), 0)
    for scope in set(SCOPES) - {"network"}:
        assert told(lambda d, s=scope: decode(d, s), ones) == (Fault.UNKNOWN_ID, 0)
    assert told(decode_linkstate, ones) == (Fault.LIMIT, 0)
    assert told(expand_batch, ones) == (Fault.COMPRESSION, 0)
    assert [end - start for start, end in split_stream(ones)] == [BATCH_MAX] * 15


def test_a_batch_of_keep_alives() -> None:
    assert decode_batch(b"\x04" * BATCH_MAX) == [KeepAlive()] * BATCH_MAX
    # With Z each says that an extension follows: the next byte, which says the same.
    assert told(decode_batch, b"\x84" * BATCH_MAX) == (Fault.LIMIT, 1 + 128)


# Cuts.


@pytest.mark.parametrize("vector", vectors.good(), ids=lambda v: v.name)
def test_vectors_cut_at_each_byte(vector: Vector) -> None:
    """A fault within what is there, or what is complete: never anything else."""
    whole = vector.decode()
    for n in range(len(vector.raw)):
        cut = vector.raw[:n]
        found = told(lambda d: vectors.read(vector.scope, vector.message, d), cut)
        if found is None:
            assert _is_shorter(vectors.read(vector.scope, vector.message, cut), whole), n
        elif vector.message == "compressed":
            assert found[0] in (Fault.COMPRESSION, Fault.TRUNCATED), n
        else:
            assert found[0] is Fault.TRUNCATED, n
            assert found[1] <= n, n


def _is_shorter(found: Any, whole: Any) -> bool:
    """The first messages of a batch, and the last of them may have less of its last bytes."""
    if isinstance(found, list):
        *before, last = found or [None]
        at = len(before)
        return before == whole[:at] and (not found or _is_shorter(last, whole[at]))
    # Bytes, and the chain of a struct, go on to the end; where that is, they cannot know.
    ends = {"payload", "public_key", "user_password"}
    names = [e.name for e in spec_of(type(found)).fields if e.name not in ends]
    equal = all(getattr(found, n) == getattr(whole, n) for n in names)
    return type(found) is type(whole) and equal


@pytest.mark.parametrize("path", recorded.CAPTURES, ids=lambda p: p.stem)
def test_recorded_batches_cut_at_each_byte(path: Path) -> None:
    for batch in some_recorded(path):
        read = walk_low_latency if batch.lowlatency else walk
        whole = [located.message for located in read(batch.data)]
        for n in range(len(batch.data)):
            fault, count = told_by_objects(batch.data[:n], low_latency=batch.lowlatency)
            assert fault is None or fault[0] is Fault.TRUNCATED
            assert fault is None or fault[1] <= n
            found = [located.message for located in islice(read(batch.data[:n]), count)]
            if found and isinstance(found[-1], Fragment):
                found[-1] = replace(found[-1], payload=whole[count - 1].payload)  # type: ignore[union-attr]
            assert found == whole[:count]


# Streams.


@pytest.mark.parametrize("before", [0, 1, 500])
@pytest.mark.parametrize("length", [BATCH_MAX + 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_stream_of_too_long_lengths(length: int, before: int) -> None:
    good = frame_stream(b"\x04", LOW_LATENCY_PREFIX) * before
    bad = length.to_bytes(4, "little")
    for tail in (b"", b"\x04" * 10, b"\xff" * MEGABYTE):
        spans = split_stream(good + bad + tail, LOW_LATENCY_PREFIX)
        assert len(list(islice(spans, before))) == before
        with pytest.raises(DecodeError) as e:
            next(spans)
        assert (e.value.fault, e.value.offset) == (Fault.LIMIT, len(good))


def test_a_stream_above_a_negotiated_size() -> None:
    stream = frame_stream(b"\x04" * 8192) + frame_stream(b"\x04" * 8193)
    spans = split_stream(stream, STREAM_PREFIX, limit=8192)
    assert next(spans) == (2, 8194)
    with pytest.raises(DecodeError) as e:
        next(spans)
    assert (e.value.fault, e.value.offset) == (Fault.LIMIT, 8194)


@pytest.mark.parametrize("prefix", [STREAM_PREFIX, LOW_LATENCY_PREFIX])
def test_a_stream_cut_at_each_byte(prefix: int) -> None:
    """What is not whole waits: a stream that ends is no fault."""
    batches = [b"", b"\x04", b"\x03\x00", b"\x04" * 300, b""]
    stream = b"".join(frame_stream(batch, prefix) for batch in batches)
    ends = [sum(prefix + len(b) for b in batches[: i + 1]) for i in range(len(batches))]
    for n in range(len(stream) + 1):
        assert [end for _, end in split_stream(stream[:n], prefix)] == [e for e in ends if e <= n]


# Compression.


def _bomb(extra: int) -> bytes:
    """One literal, then a match that repeats it: 255 more for each byte."""
    return b"\x1fa\x01\x00" + b"\xff" * extra


@pytest.mark.parametrize("extra", [257, 1_000, 65_000, MEGABYTE])
def test_a_tiny_block_that_expands_hugely(extra: int) -> None:
    bomb = b"\x01" + _bomb(extra) + b"\x00\x50zzzzz"
    assert told(expand_batch, bomb) == (Fault.COMPRESSION, 1)
    assert told(expand_batch, b"\x01" + _bomb(extra)) == (Fault.COMPRESSION, 1)


def test_a_bomb_of_many_matches() -> None:
    """No match is too long by itself."""
    bomb = b"\x01\x1fa" + b"\x01\x00\xff\x00\x0f" * 1_000
    assert told(expand_batch, bomb) == (Fault.COMPRESSION, 1)


def test_a_block_that_fills_a_batch_is_no_bomb() -> None:
    content = bytes(BATCH_MAX)
    block = compress_batch(content)
    assert len(block) < 300
    assert expand_batch(block) == content
    assert told(lambda d: expand_batch(d, BATCH_MAX - 1), block) == (Fault.COMPRESSION, 1)


def test_literals_that_are_not_there() -> None:
    for extra in (0, 1, 1_000, MEGABYTE):
        block = b"\x01\xf0" + b"\xff" * extra + b"\x00"
        assert told(expand_batch, block) == (Fault.COMPRESSION, 1)
        assert told(expand_batch, block + b"few") == (Fault.COMPRESSION, 1)


CONTENT = b"".join(b"demo/key/%d demo/key/%d " % (i, i % 7) for i in range(40))


def test_a_block_cut_at_each_byte() -> None:
    block = compress_batch(CONTENT)
    assert block[0] == 1
    for n in range(1, len(block)):
        found = told(expand_batch, block[:n])
        # A cut between literals and the offset of a match is an end, of less.
        if found is None:
            assert CONTENT.startswith(expand_batch(block[:n]))
        else:
            assert found == (Fault.COMPRESSION, 1)


def test_a_block_with_any_byte_changed() -> None:
    block = compress_batch(CONTENT)
    refused = 0
    for at in range(1, len(block)):
        for byte in (0x00, 0x0F, 0xF0, 0xFF, block[at] ^ 1, block[at] ^ 0x80):
            bad = block[:at] + bytes([byte]) + block[at + 1 :]
            found = told(expand_batch, bad)
            if found is None:
                assert len(expand_batch(bad)) <= BATCH_MAX
            else:
                assert found == (Fault.COMPRESSION, 1)
                refused += 1
    assert refused > 100


def test_offsets_before_the_block() -> None:
    """0, and one more than there is; at the end of the window too."""
    for size in (1, 14, 300, 65_534):
        literals = min(size, 15)
        more = b""
        if size >= 15:
            ones, rest = divmod(size - 15, 255)
            more = b"\xff" * ones + bytes([rest])
        head = bytes([literals << 4]) + more + b"x" * size
        for offset in (0, size + 1, 65_535):
            block = head + offset.to_bytes(2, "little") + b"\x50zzzzz"
            with pytest.raises(ValueError, match="starts before"):
                decompress(block, 2**20)
        good = head + size.to_bytes(2, "little") + b"\x50zzzzz"
        assert decompress(good, 2**20)[: size + 4] == b"x" * (size + 4)


def test_unknown_batch_headers() -> None:
    for header in range(2, 256):
        for tail in (b"", b"\x04", b"\xff" * 100):
            assert told(expand_batch, bytes([header]) + tail) == (Fault.COMPRESSION, 0)


# After a CLOSE everything is void, however bad it is.


@pytest.mark.parametrize("tail", [b"\xff" * 1000, b"\x08", FRAME + b"\xff", bytes(9)], ids=len)
def test_nothing_is_read_after_close(tail: bytes) -> None:
    close = encode(Close(reason=1))
    assert told_by_objects(close + tail) == (None, 1)
    assert told_by_objects(close + tail, low_latency=True) == (None, 1)


def test_places() -> None:
    """Each sample is sound wherever it is put, so that a fault there is the attack's."""
    for sample in samples():
        for place in places(sample.spec):
            whole, at = place.put(sample.data)
            assert whole[at : at + len(sample.data)] == sample.data
            assert told_by_objects(whole, low_latency=place.low_latency)[0] is None
