"""Captures of at least 1 GB and 10 million messages to ``samples``, on Spark.

``one flow`` is a publisher with full batches, ``thousand flows`` a fleet with small ones, both in
segments of Ethernet's size, with a timestamp in every message. Every column of every row is made
and thrown away. Each run is a process that is held to so many cores, with its JVM and Python
workers; start-up is not counted, nor what a small capture before it has warmed up.

``objects``: the same capture read in one plain Python process with the object codec, to a tuple
for each sample; a part of it is timed. ``tshark``: what it takes to read the file and follow TCP,
with nothing dissected above it, against ours for the whole way to samples. ``one core``: the
scaling from one core to two. ``an eighth``: peak memory of everything, JVM heap included, for the
whole capture against an eighth of it, where the ratio says how many times as much it takes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.fleet import Fleet, write
from benchmarks.report import Result, Skipped, progress
from tests import recorded
from zenwire.wire.batch import decode_batch
from zenwire.wire.declare import DeclareKeyExpr
from zenwire.wire.network import Declare, Push

__all__ = ["run"]

TOTAL: Final = 10_000_000
QUICK: Final = 200_000
OBJECTS: Final = 100_000
"""Messages for the object codec: it is slow, and each takes as long as the next."""
GOAL_OBJECTS: Final = 20
GOAL_TSHARK: Final = 1
SCALING: Final = 1.7


def run(quick: bool) -> list[Result]:
    try:
        import pyspark  # noqa: F401, PLC0415 - an extra
    except ImportError:
        raise Skipped("pyspark is not installed") from None
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="zenwire-bench-") as directory:
        for name, flows in (("one flow", 1), ("thousand flows", 1000)):
            results += _measure(Path(directory), name, flows, QUICK if quick else TOTAL)
    return results


def _measure(directory: Path, name: str, flows: int, total: int) -> list[Result]:
    whole, part, little = (directory / f"{size}.pcap" for size in ("whole", "part", "little"))
    progress(f"capture: {name}: writing {total:,} messages")
    fleet = Fleet.of(flows, total)
    size = write(whole, fleet)
    write(part, Fleet.of(flows, total // 8))
    few = Fleet.of(flows, OBJECTS)
    write(little, few)
    seconds: dict[int, float] = {}
    peaks: list[float] = []
    cores = min(2, len(os.sched_getaffinity(0)))
    for used in dict.fromkeys((1, cores)):
        progress(f"capture: {name}: on {used} of the cores")
        _, eighth, found = _job(used, little, part, whole)
        if (found["rows"], found["keys"]) != (fleet.total, fleet.total):
            raise AssertionError(f"{found} of {fleet.total} messages")
        seconds[used] = found["seconds"] / fleet.total
        peaks = [eighth["peak"], found["peak"]]
    progress(f"capture: {name}: as objects")
    objects = _objects(little) / few.total
    ours = f"{size / 1e6 / (seconds[1] * fleet.total):,.0f} MB/s"
    best = f"{size / 1e6 / (seconds[cores] * fleet.total):,.0f} MB/s"
    memory = f"{peaks[1] / 2**20:,.0f} MiB against {peaks[0] / 2**20:,.0f} MiB at an eighth"
    results = [
        Result(
            *("capture", name, "1 core", seconds[1]),
            other="objects",
            other_seconds=objects,
            goal=GOAL_OBJECTS,
            note=f"{name}: {fleet.total:,} messages in {size / 1e9:.2f} GB; {ours} on one core, "
            f"{best} on {cores}; peak memory {memory}",
        )
    ]
    if cores > 1:
        results.append(
            Result(
                *("capture", name, f"{cores} cores", seconds[cores]),
                other="1 core",
                other_seconds=seconds[1],
                goal=SCALING,
            )
        )
    tshark = shutil.which("tshark")
    if tshark:
        progress(f"capture: {name}: tshark")
        results.append(
            Result(
                *("capture", name, "1 core", seconds[1]),
                other="tshark",
                other_seconds=_tshark(tshark, whole) / fleet.total,
                goal=GOAL_TSHARK,
            )
        )
    return results


def _job(cores: int, *captures: Path) -> list[dict[str, float]]:
    command = [sys.executable, "-m", "benchmarks.capture_job", *map(str, captures)]
    done = subprocess.run(
        [*command, "--cores", str(cores)], check=True, stdout=subprocess.PIPE, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _objects(capture: Path) -> float:
    """Seconds for a plain pass: packets, streams, batches, messages, keys."""
    start = time.process_time()
    keys: dict[tuple[recorded.Flow, int], str] = {}
    samples: list[tuple[object, ...]] = []
    for batch in recorded.batches(capture):
        for message in decode_batch(batch.data):
            if isinstance(message, Push):
                key = keys[batch.flow, message.key.scope] + message.key.suffix
                samples.append((key, message.body, message.qos))
            elif isinstance(message, Declare) and isinstance(message.body, DeclareKeyExpr):
                keys[batch.flow, message.body.expr_id] = message.body.key.suffix
    return time.process_time() - start


def _tshark(tshark: str, capture: Path) -> float:
    """Seconds, on one core."""
    core = min(os.sched_getaffinity(0))
    start = time.perf_counter()
    subprocess.run(
        [tshark, "-r", str(capture), "-q", "-z", "conv,tcp"],
        check=True,
        capture_output=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    return time.perf_counter() - start
