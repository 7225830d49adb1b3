"""Register the formats in a Spark session that did not find them by itself.

Spark looks for formats with the first ``python3`` of the PATH, or with PYSPARK_PYTHON. It does not
find them where that Python lacks zenwire: in a program that is run as ``/venv/bin/python app.py``
without activating the environment, and where zenwire comes with ``--py-files``.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import zenwire

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Register ``format("zenoh")`` and ``format("zenoh.capture")`` in a running session.

    A local Spark runs its Python workers with this interpreter from then on, unless PYSPARK_PYTHON
    names another. If zenwire was imported from a wheel or zip file (``--py-files``), the workers
    get that file; its dependencies must be installed where they run.
    """
    from zenwire.spark.live.source import ZenohSource  # noqa: PLC0415 - needs Spark
    from zenwire.spark.source import CaptureSource  # noqa: PLC0415 - the same

    # A session of Spark Connect has no context; the server's Python counts there.
    context: SparkContext | None = getattr(spark, "_sc", None)
    if context is not None:
        _prepare(context)
    spark.dataSource.register(ZenohSource)
    spark.dataSource.register(CaptureSource)


def _prepare(context: SparkContext) -> None:
    """Let workers run a Python that has zenwire."""
    if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    archive = getattr(getattr(zenwire.__spec__, "loader", None), "archive", None)
    if archive is None:
        return
    # Spark puts files on the path of its workers only if their names end with .zip or the like.
    folder = Path(tempfile.mkdtemp(prefix="zenwire-spark-"))
    # Executors fetch the copy when they need it.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / f"{Path(archive).stem}.zip"
    shutil.copyfile(archive, copy)
    context.addPyFile(str(copy))
