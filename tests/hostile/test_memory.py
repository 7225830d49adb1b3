"""Bad bytes cost no memory: not for a moment by what they declare, and not for good."""

from __future__ import annotations

import contextlib
import gc
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from fuzz.engine import rss
from tests.hostile.attacks import ATTACKS, huge_lengths
from tests.hostile.readers import told_by_objects
from tests.hostile.samples import FRAME, places, samples
from zenwire.columns import Scanner, Spans, as_buffer, malformed, network, split, transport
from zenwire.errors import DecodeError
from zenwire.wire import BATCH_MAX, decode_batch, expand_batch, split_stream

KILO = 1 << 10
MEGA = 1 << 20


@pytest.fixture
def traced() -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


def peak(call: Callable[[], object]) -> int:
    """The most that a call had at any moment, beyond what was there before it."""
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    with contextlib.suppress(DecodeError):
        call()
    return tracemalloc.get_traced_memory()[1] - before


def by_columns(scanner: Scanner, data: bytes, *, low_latency: bool = False) -> None:
    """All that the columnar reader makes of a batch."""
    spans = Spans.of_lengths([len(data)])
    for scan in scanner.scan(as_buffer(data), spans, low_latency=low_latency):
        network(scan)
        transport(scan)
        malformed(scan)


@pytest.mark.usefixtures("traced")
def test_objects_allocate_nothing_by_a_declared_length() -> None:
    """Lengths and counts from 2 GiB up, in every field that has one."""
    cases = [(sample, case) for sample in samples() for case in huge_lengths(sample)]
    assert len(cases) > 2000
    for sample, case in cases:
        used = peak(lambda s=sample, d=case.data: s.read(d))  # type: ignore[misc]
        assert used < 16 * KILO, (used, case.data.hex())


def test_columns_allocate_nothing_by_a_declared_length() -> None:
    scanner = Scanner()
    inputs = []
    for sample in samples():
        for place in places(sample.spec):
            whole = [(place.put(c.data)[0], place.low_latency) for c in huge_lengths(sample)]
            inputs += whole[::6]
    assert len(inputs) > 700
    by_columns(scanner, inputs[0][0])
    tracemalloc.start()
    try:
        for data, low_latency in inputs:
            used = peak(lambda d=data, low=low_latency: by_columns(scanner, d, low_latency=low))  # type: ignore[misc]
            assert used < 256 * KILO, (used, data.hex())
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("traced")
def test_streams_allocate_nothing_by_a_declared_length() -> None:
    for length in (2**16, 2**31, 2**32 - 1):
        stream = length.to_bytes(4, "little") + b"\x04" * 1000
        assert peak(lambda d=stream: list(split_stream(d, 4))) < 16 * KILO  # type: ignore[misc]
        assert peak(lambda d=stream: split(as_buffer(d), prefix=4)) < 16 * KILO  # type: ignore[misc]
    waits = b"\xff\xff" + b"\x04" * 1000
    assert peak(lambda: list(split_stream(waits))) < 16 * KILO
    assert peak(lambda: split(as_buffer(waits))) < 16 * KILO


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("extra", [300, 10_000, BATCH_MAX])
def test_a_bomb_has_no_more_than_its_limit(extra: int) -> None:
    for bomb in (
        b"\x01\x1fa\x01\x00" + b"\xff" * extra + b"\x00\x50zzzzz",
        b"\x01\x1fa" + b"\x01\x00\xff\x00\x0f" * extra,
        b"\x01\xff" + b"\xff" * extra + b"\x00",
    ):
        assert peak(lambda d=bomb: expand_batch(d)) < 2 * len(bomb) + 8 * BATCH_MAX  # type: ignore[misc]


@pytest.mark.usefixtures("traced")
def test_the_largest_batch_costs_its_messages() -> None:
    """The most messages that a batch can have, and the most that a message can have in it."""
    assert peak(lambda: decode_batch(b"\x04" * BATCH_MAX)) < 200 * BATCH_MAX
    extensions = b"\x84" + b"\xce\x00" * 10_000
    assert peak(lambda: decode_batch(extensions)) < 64 * KILO
    one = FRAME + b"\x3d\x00\x01a\x81" + b"\xce\x00" * 127 + b"\x4e\x00\x00"
    assert peak(lambda: decode_batch(one)) < 64 * KILO


def _inputs() -> list[tuple[bytes, bool]]:
    """Thousands of all kinds."""
    found: list[tuple[bytes, bool]] = []
    for sample in samples():
        for place in places(sample.spec)[:2]:
            for attack in ATTACKS.values():
                cases = [case.data for case in attack(sample)]
                found += [(place.put(data)[0], place.low_latency) for data in cases[::17]]
    found += [(b"\xff" * BATCH_MAX, False), (b"\x84" * BATCH_MAX, False), (bytes(4096), False)]
    return [(data, low) for data, low in found if len(data) <= BATCH_MAX]


def test_memory_does_not_grow() -> None:
    """The same inputs again and again: what the first round took is all that is taken."""
    scanner = Scanner()
    inputs = _inputs()
    assert len(inputs) > 2500

    def round_() -> None:
        for data, low_latency in inputs:
            told_by_objects(data, low_latency=low_latency)
            for scan in scanner.scan(
                as_buffer(data), Spans.of_lengths([len(data)]), low_latency=low_latency
            ):
                malformed(scan)
        for data, low_latency in inputs[::40]:
            by_columns(scanner, data, low_latency=low_latency)

    round_()
    gc.collect()
    before = rss()
    round_()
    gc.collect()
    assert rss() - before < 16 * MEGA
    tracemalloc.start()
    try:
        kept, _ = tracemalloc.get_traced_memory()
        round_()
        gc.collect()
        now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now - kept < 256 * KILO
    assert most - kept < 32 * MEGA


def test_a_megabyte_that_is_no_batch_leaves_nothing_behind() -> None:
    """Longer than any batch may be: the arrays grow with the bytes, and go with the scanner."""
    scan_whole = [bytes(MEGA), b"\xff" * MEGA, FRAME + b"\xff" * MEGA, b"\x84" * MEGA]
    by_columns(Scanner(), scan_whole[0])
    gc.collect()
    before = rss()
    for data in scan_whole:
        scanner = Scanner()
        by_columns(scanner, data)
        by_columns(scanner, data, low_latency=True)
        del scanner
    gc.collect()
    assert rss() - before < 32 * MEGA
