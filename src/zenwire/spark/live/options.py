"""The options of ``format("zenoh")``, in the words of Spark's Kafka source where it has them."""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from zenwire.keyexpr import validate
from zenwire.spark.live.columns import COLUMNS
from zenwire.spool.reader import MANIFEST

__all__ = ["EARLIEST", "LATEST", "Options", "Start"]

EARLIEST: Final = -2
LATEST: Final = -1
PARTITION: Final = "0"
"""A spool is one partition, as Kafka would call it."""
_NANO: Final = 1_000_000_000
_PARTITION_BYTES: Final = 64 << 20

Start = int | Mapping[str, int]
"""EARLIEST or LATEST of all spools, or an offset (or one of both) of each."""

_KNOWN: Final = (
    "columns",
    "endingOffsets",
    "endingTimestamp",
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
_REFUSED: Final = {
    "connect": 'live sessions are not read yet: record to a spool, and read option("spool", ...)',
    "subscribe": 'Zenoh has key expressions: option("keyexpr", ...)',
    "subscribePattern": 'key expressions have wildcards: option("keyexpr", ...)',
    "assign": 'name the spools: option("spool", ...)',
    "maxOffsetsPerTrigger": "it is called maxRecordsPerTrigger here",
    "includeHeaders": "it is called includeAttachment here",
    "group.id": 'offsets are in the checkpoint; option("reader", ...) keeps rows from retention',
    "sourceId": "a spool has a name of its own",
}
"""What Kafka's source, or a live one, has; and what to say instead."""


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

    @classmethod
    def of(cls, said: Mapping[str, str]) -> Options:
        """Raises ValueError, which says what is wrong and what to try."""
        _check(said)
        table = said.get("table", "samples")
        if table not in ("samples", "losses"):
            raise ValueError(f"table is samples or losses, not {table!r}")
        for what in ("starting", "ending"):
            if f"{what}Offsets" in said and f"{what}Timestamp" in said:
                raise ValueError(f"{what}Offsets and {what}Timestamp are two ways to say one thing")
        return cls(
            _spools(said),
            table,
            _columns(said),
            _keys(said, "keyexpr"),
            _keys(said, "excludeKeyexpr"),
            _offsets(said, "startingOffsets"),
            _time(said, "startingTimestamp"),
            _offsets(said, "endingOffsets"),
            _time(said, "endingTimestamp"),
            _number(said, "maxRecordsPerTrigger"),
            _number(said, "maxBytesPerTrigger"),
            _number(said, "maxPartitionBytes") or _PARTITION_BYTES,
            _number(said, "minPartitions") or 1,
            _flag(said, "failOnDataLoss", default=True),
            said.get("reader"),
        )

    def for_batch(self) -> Options:
        """Raises ValueError for what a table cannot have."""
        for name, value in (("maxRecordsPerTrigger", self.records), ("reader", self.reader)):
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
        return self


def _check(said: Mapping[str, str]) -> None:
    known = {name.lower() for name in _KNOWN}
    refused = {name.lower(): text for name, text in _REFUSED.items()}
    for name in said:
        low = name.lower()
        if low in refused or low.removeprefix("kafka.") in refused:
            raise ValueError(f"{name}: {refused.get(low) or refused[low.removeprefix('kafka.')]}")
        if low.startswith("zenoh."):
            raise ValueError(f"{name} is for live sessions; a spool was recorded before")
        if low not in known:
            raise ValueError(f"format zenoh has no option {name}; it has {', '.join(_KNOWN)}")


def _spools(said: Mapping[str, str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in ("spool", "path"):
        text = said.get(name, "").strip()
        found += json.loads(text) if text.startswith("[") else _list(text)
    found += json.loads(said.get("paths") or "[]")
    if not found:
        raise ValueError('format zenoh reads spools: option("spool", "spools/fleet")')
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


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _columns(said: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(_list(said.get("columns", ""))) or COLUMNS
    for name in names:
        if name not in COLUMNS:
            raise ValueError(f"columns: there is no {name}; there are {', '.join(COLUMNS)}")
    if not _flag(said, "includeAttachment", default=True):
        names = tuple(name for name in names if name != "attachment")
    return names


def _keys(said: Mapping[str, str], name: str) -> tuple[str, ...]:
    keys = tuple(_list(said.get(name, "")))
    for key in keys:
        validate(key)
    return keys


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


def _number(said: Mapping[str, str], name: str) -> int | None:
    text = said.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ValueError(f"{name} is a number above 0, not {text!r}")
    return int(text)


def _flag(said: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = said.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name} is true or false, not {text!r}")
    return text == "true"
