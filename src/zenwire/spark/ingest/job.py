"""One Spark job per micro-batch: tasks that write ranges, and tasks that merge partial results.

Tasks give names and numbers only: no row of a spool goes through the JVM or to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.lake.tasks import Task, run_task

__all__ = ["run_batch", "run_tasks"]

_RESULT: Final = "result string"
_MARK: Final = "#"
"""Before the number of a task whose text is in the closure: texts of merges are long."""


def run_batch(ranges: DataFrame, task: Task, others: Sequence[str]) -> list[str]:
    """Run a task for each range of a micro-batch, and the other tasks beside them."""
    made = F.to_json(F.struct(F.lit("range").alias("do"), *ranges.columns)).alias("task")
    tasks = ranges.select(made)
    if others:
        tasks = tasks.unionAll(_numbered(ranges.sparkSession, len(others)))
    return _collected(tasks, task, others)


def run_tasks(spark: SparkSession, task: Task, texts: Sequence[str]) -> list[str]:
    """Run tasks in a job of their own."""
    return _collected(_numbered(spark, len(texts)), task, texts) if texts else []


def _numbered(spark: SparkSession, count: int) -> DataFrame:
    """A partition for each task."""
    numbers = spark.range(0, count, 1, count)
    return numbers.select(F.concat(F.lit(_MARK), F.col("id").cast("string")).alias("task"))


def _collected(tasks: DataFrame, task: Task, texts: Sequence[str]) -> list[str]:
    return [row[0] for row in tasks.mapInArrow(_running(task, texts), _RESULT).collect()]


def _running(
    task: Task, texts: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                own = texts[int(text[1:])] if text.startswith(_MARK) else text
                yield pa.record_batch([[run_task(task, own)]], names=["result"])

    return run
