"""Scan and Arrow record batch against copying the same payload bytes once.

A turn takes a stream of 4 MiB (``recorded``: a capture of 1.5 MB) from bytes to record batches
that own all they hold. "six columns" are those that a consumer of samples asks for (key, QoS,
encoding, timestamp, payload), "all columns" the whole table with its nulls. The copy is one
``memcpy`` of as many bytes as the payloads have, from one place to another that is in use
already: less than that no reader can do that keeps the payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow.compute as pc

from benchmarks import traffic
from benchmarks.report import Result, best_of, progress
from benchmarks.traffic import Traffic
from zenwire.columns import Scanner, as_buffer, network
from zenwire.columns.scan import Bytes

__all__ = ["run"]

SAMPLE = ("key_scope", "key_suffix", "qos", "encoding", "timestamp", "payload")
CHOICES = {"six columns": SAMPLE, "all columns": None}


def run(quick: bool) -> list[Result]:
    seconds = 0.1 if quick else 2.0
    scanner = Scanner()
    results: list[Result] = []
    for name in traffic.DATA:
        progress(f"arrow: {name}")
        results += _measure(traffic.build(name, quick=quick), scanner, seconds)
    return results


def _measure(sent: Traffic, scanner: Scanner, seconds: float) -> Iterator[Result]:
    buffer = as_buffer(sent.stream)
    _check(sent, scanner, buffer)
    source = np.ones(sent.payload, np.uint8)
    target = np.zeros(sent.payload, np.uint8)
    contenders: dict[str, Callable[[], object]] = {
        name: partial(to_arrow, scanner, buffer, chosen) for name, chosen in CHOICES.items()
    }
    contenders["memcpy"] = partial(np.copyto, target, source)
    best = {
        name: time / sent.messages for name, time in best_of(contenders, seconds=seconds).items()
    }
    for name in CHOICES:
        yield Result(
            "arrow", sent.name, name, best[name], other="memcpy", other_seconds=best["memcpy"]
        )


def to_arrow(scanner: Scanner, buffer: Bytes, columns: tuple[str, ...] | None) -> int:
    """What a reader does with a receive buffer; gives the number of rows."""
    return sum(network(scan, columns).num_rows for scan in scanner.scan_stream(buffer))


def _check(sent: Traffic, scanner: Scanner, buffer: Bytes) -> None:
    """Raises AssertionError unless all that was sent is there."""
    rows = payload = 0
    for scan in scanner.scan_stream(buffer):
        batch = network(scan)
        batch.validate(full=True)
        rows += batch.num_rows
        payload += pc.sum(pc.binary_length(batch["payload"])).as_py() or 0
    assert (rows, payload) == (sent.messages, sent.payload)
