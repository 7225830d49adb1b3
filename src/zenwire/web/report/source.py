"""What a report is made of: captures, spools, or tables of ``zenwire tables`` or ``ingest``."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zenwire.errors import CaptureError, ZError
from zenwire.spool.reader import MANIFEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TABLES", "InputError", "Source", "open_source", "tables_of"]

TABLES: Final = (
    "messages",
    "sessions",
    "declarations",
    "queries",
    "losses",
    "malformed",
    "accounts",
)
"""Those that a report reads."""
_ELSE: Final = ("batches", "key_stats", "latest", "replies", "samples")
"""By which a directory is known too."""

_FORMATS: Final = ("_delta_log", "metadata")
"""By which a table is known to be of another format: which of its files count is said there."""


class InputError(ZError):
    """There is nothing to report on."""


@dataclass(frozen=True, slots=True)
class Source:
    """``kind`` is captures, tables, lake or spools."""

    kind: str
    paths: list[str]


def open_source(given: Iterable[str]) -> Source:
    """What the paths are. Reads the beginning of each file, and needs no Spark.

    Raises InputError, or CaptureError for a file that is no capture or cannot be read.
    """
    files: dict[str, None] = {}
    directories = []
    spools = []
    for path in given:
        if Path(path).is_dir():
            if (Path(path) / MANIFEST).is_file():
                spools.append(path)
                continue
            if _has_tables(path):
                directories.append(path)
                continue
            found = sorted(str(p) for p in Path(path).iterdir() if p.is_file())
            if not found:
                raise InputError(
                    f"{path}: neither captures nor tables are in this directory, and it is no spool"
                )
        elif glob.has_magic(path) and not Path(path).exists():
            found = sorted(p for p in glob.iglob(path, recursive=True) if Path(p).is_file())  # noqa: PTH207 - absolute too
            if not found:
                raise CaptureError(path, "no such file")
        else:
            found = [path]
        files |= dict.fromkeys(found)
    if (directories and (files or spools or len(directories) > 1)) or (files and spools):
        raise InputError("give captures, or spools, or one directory of tables")
    if spools:
        return Source("spools", spools)
    if directories and _is_lake(directories[0]):
        return Source("lake", directories)
    if directories:
        _readable(directories[0])
        return Source("tables", directories)
    if not files:
        raise InputError("give a capture, a spool, or a directory that zenwire tables wrote")
    for file in files:
        _check_capture(file)
    return Source("captures", list(files))


def _has_tables(path: str) -> bool:
    return any((Path(path) / name).is_dir() for name in (*TABLES, *_ELSE))


def _is_lake(path: str) -> bool:
    """Whether ``zenwire ingest`` wrote it. Raises InputError for one that cannot be read."""
    from zenwire.lake.lake import is_lake  # noqa: PLC0415 - slow to load

    if not is_lake(Path(path)):
        return False
    if next((Path(path) / "samples").rglob("*.parquet"), None) is None:
        raise InputError(f"{path}: no samples are in this lake yet")
    return True


def _readable(path: str) -> None:
    """Raises InputError where no table of a report is there, or one that cannot be read."""
    present = [Path(path) / name for name in TABLES if (Path(path) / name).is_dir()]
    if not present:
        raise InputError(
            f"{path}: none of the tables {', '.join(TABLES)} is there; "
            "zenwire tables writes them all"
        )
    for table in present:
        if not os.access(table, os.R_OK | os.X_OK):
            raise InputError(f"{table}: permission denied")
        if next(table.rglob("*.parquet"), None) is None:
            raise InputError(f"{table}: no Parquet file is in this directory")
        if any((table / name).is_dir() for name in _FORMATS):
            raise InputError(f"{table}: only tables that are plain Parquet can be read")


def _check_capture(path: str) -> None:
    from zenwire.capture import RecordReader  # noqa: PLC0415 - compiled code, slow to load

    try:
        with closing(RecordReader(path, window=1 << 16)) as records:
            next(iter(records), None)
    except OSError as e:
        raise CaptureError(path, e.strerror or str(e)) from None


@contextmanager
def tables_of(spark: SparkSession, source: Source) -> Iterator[dict[str, DataFrame]]:
    """The tables by name, kept in memory or on local disk as long as they are in use.

    ``messages`` has the first bytes of payloads only, with ``payload_bytes`` beside them.
    """
    if source.kind == "tables":
        yield _written(spark, source.paths[0])
        return
    if source.kind == "lake":
        from zenwire.web.report.lake import lake_tables  # noqa: PLC0415 - only where Spark is

        yield lake_tables(spark, source.paths[0])
        return
    if source.kind == "spools":
        from zenwire.web.report.lake import spool_tables  # noqa: PLC0415 - only where Spark is

        yield spool_tables(spark, source.paths)
        return
    from zenwire.spark import tables  # noqa: PLC0415 - only where Spark is

    kept: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        kept.append(frame.persist())
        return kept[-1]

    batches = keep(spark.read.format("zenoh.capture").load(source.paths))
    messages = keep(_narrow(tables.messages(batches)))
    found = {
        "messages": messages,
        "sessions": keep(tables.sessions(batches, messages)),
        "declarations": keep(tables.declarations(messages)),
        "queries": keep(tables.queries(messages)),
        "losses": keep(tables.losses(batches, messages)),
        "malformed": keep(tables.malformed(batches)),
        "accounts": tables.accounts(batches),
    }
    try:
        yield found
    finally:
        for frame in reversed(kept):
            frame.unpersist()


def _written(spark: SparkSession, path: str) -> dict[str, DataFrame]:
    found = {}
    for name in TABLES:
        where = Path(path) / name
        if where.is_dir():
            frame = spark.read.parquet(str(where))
            found[name] = _narrow(frame) if name == "messages" else frame
    return found


_PREFIX: Final = 64
"""Bytes of a payload that are looked at: enough for the error that means a timeout."""


def _narrow(messages: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own custom

    return (
        messages.withColumn("payload_bytes", F.octet_length("payload"))
        .withColumn("payload", F.substring("payload", 1, _PREFIX))
        .withColumn("attachment", F.lit(None).cast("binary"))
    )
