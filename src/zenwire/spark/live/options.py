"""The options of ``format("zenoh")``, in the words of Spark's Kafka source where it has them."""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from zenwire.spark.live.columns import COLUMNS
from zenwire.spark.live.recorder import LIVE_OPTIONS, LiveOptions, is_live
from zenwire.spark.live.refused import refuse
from zenwire.spark.live.said import CONFIG, flag, keys, known, number, parts
from zenwire.spool.reader import MANIFEST

__all__ = ["EARLIEST", "LATEST", "PARTITION", "Options", "Start", "columns_of"]

EARLIEST: Final = -2
LATEST: Final = -1
PARTITION: Final = "0"
"""A spool is one partition, as Kafka would call it."""
_NANO: Final = 1_000_000_000
_PARTITION_BYTES: Final = 64 << 20
_READER: Final = "query"
"""Whose rows stay in a spool of its own until they are read."""

Start = int | Mapping[str, int]
"""EARLIEST or LATEST of all spools, or an offset (or one of both) of each."""

_KNOWN: Final = (
    "columns",
    "endingOffsets",
    "endingTimestamp",
    "exclude",
    "excludeKeyexpr",
    "failOnDataLoss",
    "includeAttachment",
    "keyexpr",
    "maxBytesPerTrigger",
    "maxPartitionBytes",
    "maxRecordsPerTrigger",
    "minPartitions",
    "path",
    "paths",
    "reader",
    "spool",
    "startingOffsets",
    "startingTimestamp",
    "table",
)


@dataclass(frozen=True)
class Options:
    """What a query was told. ``starting`` and ``ending`` are offsets or times, in nanoseconds."""

    spools: tuple[str, ...]
    table: str = "samples"
    columns: tuple[str, ...] = COLUMNS
    keyexpr: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    starting: Start | None = None
    starting_time: int | None = None
    ending: Start | None = None
    ending_time: int | None = None
    records: int | None = None
    bytes: int | None = None
    partition_bytes: int = _PARTITION_BYTES
    min_partitions: int = 1
    fail_on_data_loss: bool = True
    reader: str | None = None
    live: LiveOptions | None = None

    @classmethod
    def of(cls, said: Mapping[str, str]) -> Options:
        """Raises ValueError, which says what is wrong and what to try."""
        refuse(said)
        live = LiveOptions.of(said) if is_live(said) else None
        known(said, (*_KNOWN, *LIVE_OPTIONS) if live else _KNOWN, "format zenoh")
        if live is None and (wrong := [name for name in said if name.lower().startswith(CONFIG)]):
            raise ValueError(f"{wrong[0]} is for live sessions; a spool was recorded before")
        table = said.get("table", "samples")
        # `ranges` are samples too, of which a row is a partition: ingest reads those by itself.
        if table not in ("samples", "losses", "ranges"):
            raise ValueError(f"table is samples or losses, not {table!r}")
        for what in ("starting", "ending"):
            if f"{what}Offsets" in said and f"{what}Timestamp" in said:
                raise ValueError(f"{what}Offsets and {what}Timestamp are two ways to say one thing")
        return cls(
            _spools(said) if live is None else (live.spool,),
            table,
            columns_of(said),
            # Tokens are recorded beside the samples.
            keys(said, "keyexpr", "liveliness"),
            keys(said, "exclude", "excludeKeyexpr"),
            _offsets(said, "startingOffsets"),
            _time(said, "startingTimestamp"),
            _offsets(said, "endingOffsets"),
            _time(said, "endingTimestamp"),
            number(said, "maxRecordsPerTrigger"),
            number(said, "maxBytesPerTrigger"),
            number(said, "maxPartitionBytes") or _PARTITION_BYTES,
            number(said, "minPartitions") or 1,
            flag(said, "failOnDataLoss", default=True),
            said.get("reader", None if live is None else _READER),
            live,
        )

    def for_batch(self) -> Options:
        """Raises ValueError for what a table cannot have."""
        if self.live is not None:
            raise ValueError(
                "connect with keyexpr goes on without end, and spark.read does not: ask with "
                'option("selector", "robot/**"), or read what was recorded with option("spool", ...)'
                " and without connect"
            )
        for name, value in (
            ("maxRecordsPerTrigger", self.records),
            ("maxBytesPerTrigger", self.bytes),
            ("reader", self.reader),
        ):
            if value is not None:
                raise ValueError(f"{name} is for streams")
        if _has(self.starting, LATEST):
            raise ValueError("startingOffsets: from the latest on there is nothing to read")
        if _has(self.ending, EARLIEST):
            raise ValueError("endingOffsets: before the earliest there is nothing to read")
        return self

    def for_stream(self) -> Options:
        """Raises ValueError for what a stream cannot have."""
        if self.ending is not None or self.ending_time is not None:
            raise ValueError(
                "endingOffsets and endingTimestamp are for spark.read: a stream goes on"
            )
        if self.table == "losses" and (self.live is not None or self.reader is not None):
            raise ValueError(
                "losses are read beside samples: option spool and table alone, without connect and "
                "reader"
            )
        return self


def _spools(said: Mapping[str, str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in ("spool", "path"):
        found += parts(said.get(name, ""))
    found += json.loads(said.get("paths") or "[]")
    if not found:
        raise ValueError(
            'format zenoh reads spools, option("spool", "spools/fleet"); or live, with connect and '
            "keyexpr; or what others have, with connect and selector"
        )
    spools: dict[str, None] = {}
    for path in found:
        if glob.has_magic(path) and not (Path(path) / MANIFEST).exists():
            matched = sorted(p for p in glob.iglob(path) if (Path(p) / MANIFEST).exists())  # noqa: PTH207 - absolute too
            if not matched:
                raise ValueError(f"spool: no spool is like {path}")
            spools |= dict.fromkeys(matched)
        else:
            spools[path] = None
    return tuple(spools)


def columns_of(said: Mapping[str, str]) -> tuple[str, ...]:
    """Those that are asked for. Raises ValueError."""
    names = parts(said.get("columns", "")) or COLUMNS
    for name in names:
        if name not in COLUMNS:
            raise ValueError(f"columns: there is no {name}; there are {', '.join(COLUMNS)}")
    if not flag(said, "includeAttachment", default=True):
        names = tuple(name for name in names if name != "attachment")
    return names


def _offsets(said: Mapping[str, str], name: str) -> Start | None:
    text = said.get(name)
    if text is None:
        return None
    if text.lower() in ("earliest", "latest"):
        return EARLIEST if text.lower() == "earliest" else LATEST
    try:
        return {spool: _offset(at) for spool, at in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, KeyError):
        raise ValueError(
            f'{name} is earliest, latest, or as {{"fleet": {{"{PARTITION}": 17}}}}, '
            f"where {EARLIEST} is the earliest and {LATEST} the latest; not {text!r}"
        ) from None


def _offset(at: Any) -> int:  # of JSON
    if isinstance(at, dict):
        # As a checkpoint has it, with the spool's id, or as Kafka would write it.
        if at.keys() - {PARTITION, "id"}:
            raise KeyError(*at)
        at = at[PARTITION]
    if type(at) is not int or at < EARLIEST:
        raise ValueError(at)
    return at


def _has(start: Start | None, what: int) -> bool:
    if isinstance(start, Mapping):
        return what in start.values()
    return start == what


def _time(said: Mapping[str, str], name: str) -> int | None:
    text = said.get(name)
    if text is None:
        return None
    if text.lstrip("-").isdigit():
        return int(text) * 1_000_000
    try:
        day = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{name} is a time as 2026-03-01T12:00:00Z, or milliseconds since 1970; not {text!r}"
        ) from None
    day = day if day.tzinfo else day.replace(tzinfo=UTC)
    since = day - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * _NANO + since.microseconds * 1000
