"""Which faults of Spark are worth another try."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped] # comes with PySpark
from pyspark.errors import PySparkException

from zenwire.lake.errors import LakeConflictError, LakeError
from zenwire.spark.ingest.transient_errors import is_transient


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.spark.SparkException: Python worker failed to connect back.",
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "java.io.EOFException",
        "java.net.SocketException: Broken pipe",
        "Job aborted due to stage failure: ExecutorLostFailure (executor 1 exited)",
        "java.lang.IllegalStateException: Illegal size 5 of collection, expected 6",
    ],
)
def test_spark_tries_again(text: str) -> None:
    assert is_transient(PySparkException(text))


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):\n  ...\nValueError: not so",
        "x\nzenwire.lake.errors.LakeError: lake: No such file",
        "java.io.IOException: No space left on device",
        "java.lang.OutOfMemoryError: Java heap space",
        "org.apache.spark.sql.AnalysisException: no such column",
    ],
)
def test_what_lasts(text: str) -> None:
    assert not is_transient(PySparkException(text))


def test_what_comes_back_from_java() -> None:
    """A function of ours raised it, and Spark has only its text."""
    said = "Traceback (most recent call last):\n  ...\n"
    assert is_transient(
        PySparkException(f"{said}{LakeConflictError.__module__}.LakeConflictError: lake: gone")
    )
    assert is_transient(LakeConflictError("lake", "gone"))
    assert not is_transient(LakeError("lake", "gone"))


def test_spark_that_is_gone() -> None:
    assert not is_transient(Py4JNetworkError("Answer from Java side is empty"))
