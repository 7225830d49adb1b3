"""Options that Spark's Kafka source and sink have, and what to say here instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["refuse"]

_KEYEXPR: Final = 'Zenoh has key expressions, with wildcards: option("keyexpr", "robot/**")'
_TIMESTAMP: Final = "one time for all spools: {}Timestamp; or offsets of each: {}Offsets"
_RETRY: Final = "offsets are read from files, there is nothing to try again"
_REFUSED: Final = {
    "assign": 'name the spools: option("spool", ...); each is one partition',
    "subscribe": _KEYEXPR,
    "subscribePattern": _KEYEXPR,
    "topic": 'rows have a column key, or all of them option("key", ...)',
    "bootstrap.servers": 'option("connect", "tcp/192.0.2.1:7447")',
    "startingOffsetsByTimestamp": _TIMESTAMP.format("starting", "starting"),
    "endingOffsetsByTimestamp": _TIMESTAMP.format("ending", "ending"),
    "startingOffsetsByTimestampStrategy": "a time after the last row begins with the next one",
    "maxOffsetsPerTrigger": "it is called maxRecordsPerTrigger here",
    "minOffsetsPerTrigger": "a trigger with an interval waits for more: trigger(processingTime=...)",
    "maxTriggerDelay": "a trigger with an interval waits for more: trigger(processingTime=...)",
    "maxRecordsPerPartition": "partitions are cut by bytes: maxPartitionBytes",
    "includeHeaders": "it is called includeAttachment here",
    "group.id": 'offsets are in the checkpoint; option("reader", ...) keeps rows from retention',
    "groupIdPrefix": 'offsets are in the checkpoint; option("reader", ...) names who reads',
    "fetchOffset.numRetries": _RETRY,
    "fetchOffset.retryIntervalMs": _RETRY,
    "kafkaConsumer.pollTimeoutMs": _RETRY,
}


def refuse(said: Iterable[str]) -> None:
    """Raises ValueError."""
    lower = {name.lower(): text for name, text in _REFUSED.items()}
    for name in said:
        low = name.lower()
        text = lower.get(low) or lower.get(low.removeprefix("kafka."))
        if text is None and low.startswith("kafka."):
            text = "Zenoh's settings are zenoh.<config/path>"
        if text is not None:
            raise ValueError(f"{name}: {text}")
