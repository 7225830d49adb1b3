"""Captures to ``samples`` on Spark, in a process of its own that is held to some cores.

``python -m benchmarks.capture_job CAPTURE... --cores 2`` prints a line of JSON for each capture.
A small capture given first pays for what happens once: kernels, the JVM's compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from pathlib import Path
from typing import Self

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark import tables
from zenwire.spark.session import spark_session


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture_job")
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--memory", default="1g", help="of the JVM's heap")
    args = parser.parse_args()
    # Everything that is started from here on inherits it: the JVM, Python's workers.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    config = {
        "spark.driver.memory": args.memory,
        "spark.sql.shuffle.partitions": str(2 * args.cores),
    }
    with spark_session("benchmark", cores=args.cores, config=config) as spark:
        for capture in args.captures:
            print(json.dumps(_run(spark, capture)), flush=True)


def _run(spark: SparkSession, capture: Path) -> dict[str, float]:
    batches = spark.read.format("zenoh.capture").load(str(capture))
    seen = Observation()
    found = tables.samples(batches).observe(
        seen,
        F.count(F.lit(1)).alias("rows"),
        F.count("key").alias("keys"),
        F.sum(F.octet_length("payload")).alias("payload"),
    )
    with _Memory() as memory:
        start = time.perf_counter()
        # Every column of every row is made, and thrown away.
        found.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "bytes": capture.stat().st_size, "peak": memory.peak, **seen.get}


class _Memory:
    """The most memory that this process and its descendants have had, shared pages once."""

    def __init__(self) -> None:
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            self.peak = max(self.peak, sum(map(_memory_of, _descendants(os.getpid()))))


def _descendants(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found = [root]
    for process in found:
        found += parents.get(process, [])
    return found


def _memory_of(process: int) -> int:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
