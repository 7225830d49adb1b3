"""``option("selector", ...)``: what others have, asked for by Zenoh queries. A task for each.

A reply is a row, as it comes. An error reply is no row: it ends the query, as what it stands for is
missing; unless ``failOnDataLoss`` is false, when it is counted in the log, or ``includeErrors`` is
true, when it is a row of the kind ERROR on the key that was asked for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from zenwire.api.columnar import Columnar
from zenwire.api.handlers import Callback
from zenwire.api.values import (
    CongestionControl,
    ConsolidationMode,
    Priority,
    QueryTarget,
    ReplyError,
    ReplyKeyExpr,
    Selector,
)
from zenwire.columns.samples import SAMPLES
from zenwire.errors import ZError
from zenwire.spark.live.columns import COLUMNS, ERROR, sample_rows
from zenwire.spark.live.options import columns_of
from zenwire.spark.live.refused import refuse
from zenwire.spark.live.said import flag, known, parts, seconds, word
from zenwire.spark.live.session import SESSION_OPTIONS, SessionOptions
from zenwire.spark.live.spill import Spill
from zenwire.wire.data import Put
from zenwire.wire.encoding import Encoding
from zenwire.wire.values import QoS

if TYPE_CHECKING:
    from zenwire.api.values import Reply

__all__ = ["Asked", "QueryOptions", "SelectorReader"]

_log = logging.getLogger(__name__)

_KNOWN: Final = (
    *SESSION_OPTIONS,
    "acceptReplies",
    "columns",
    "consolidation",
    "failOnDataLoss",
    "includeAttachment",
    "includeErrors",
    "selector",
    "target",
    "timeout",
)
_TARGETS: Final = {
    one.name: one for one in (QueryTarget.BEST_MATCHING, QueryTarget.ALL, QueryTarget.ALL_COMPLETE)
}
_MODES: Final = {
    one.name: one
    for one in (
        ConsolidationMode.AUTO,
        ConsolidationMode.NONE,
        ConsolidationMode.MONOTONIC,
        ConsolidationMode.LATEST,
    )
}
_ACCEPTED: Final = {one.name: one for one in (ReplyKeyExpr.ANY, ReplyKeyExpr.MATCHING_QUERY)}
_TIMEOUT: Final = 10.0
_ROWS: Final = 16_384
_TOLD: Final = 3
"""Error replies whose text is told."""
_TEXT: Final = 200
"""Bytes of it."""
_FAREWELL: Final = "closed_by_peer"
_QOS: Final = QoS()
_KIND: Final = SAMPLES.get_field_index("kind")


@dataclass(frozen=True)
class QueryOptions:
    """What to ask, and how.

    Consolidation is none unless it is asked for: to hold replies back until the end is to keep
    them all in memory.
    """

    selectors: tuple[str, ...]
    session: SessionOptions
    columns: tuple[str, ...] = COLUMNS
    target: QueryTarget = QueryTarget.DEFAULT
    consolidation: ConsolidationMode = ConsolidationMode.NONE
    accept: ReplyKeyExpr = ReplyKeyExpr.DEFAULT
    timeout: float = _TIMEOUT
    include_errors: bool = False
    fail_on_data_loss: bool = True

    @classmethod
    def of(cls, said: Mapping[str, str]) -> QueryOptions:
        """Raises ValueError."""
        refuse(said)
        known(said, _KNOWN, "a selector of format zenoh")
        session = SessionOptions.of(said)
        if not (session.connect or session.listen or session.config):
            raise ValueError('whom to ask: option("connect", "tcp/192.0.2.1:7447")')
        return cls(
            _selectors(said["selector"]),
            session,
            columns_of(said),
            word(said, "target", _TARGETS, QueryTarget.DEFAULT),
            word(said, "consolidation", _MODES, ConsolidationMode.NONE),
            word(said, "acceptReplies", _ACCEPTED, ReplyKeyExpr.DEFAULT),
            seconds(said, "timeout") or _TIMEOUT,
            flag(said, "includeErrors", default=False),
            flag(said, "failOnDataLoss", default=True),
        )

    def reader(self) -> SelectorReader:
        """Asks."""
        return SelectorReader(self)


def _selectors(text: str) -> tuple[str, ...]:
    """One, or a JSON list of several: parameters may have commas. Raises ValueError."""
    found = parts(text) if text.lstrip().startswith("[") else (text.strip(),)
    for one in found:
        try:
            Selector(one)
        except ZError as e:
            hint = '; several are a JSON list, ["a/**", "b/*"]' if "," in one else ""
            raise ValueError(f"selector: {e}{hint}") from None
    if not found:
        raise ValueError("selector: the list is empty")
    return found


@dataclass
class Asked(InputPartition):
    """What a task asks."""

    selector: str


class SelectorReader(DataSourceReader):
    """A task asks, and gives rows as replies come."""

    def __init__(self, options: QueryOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        return [Asked(selector) for selector in self._options.selectors]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Asked)
        return _Replies(partition.selector, self._options).rows()


class _Replies:
    """The replies to one query: collected where the network is, read by the task."""

    def __init__(self, selector: str, options: QueryOptions) -> None:
        self._selector = selector
        self._key = str(Selector(selector).key_expr)
        self._options = options
        self._samples = Columnar.collector(_ROWS, None)
        self._failures = Columnar.collector(_ROWS, None)
        self._errors: list[str] = []
        self._error_count = 0
        self._spill = Spill(SAMPLES)
        self._qos: dict[tuple[Priority, CongestionControl, bool], QoS] = {}

    # Called by the network.

    def _take(self, reply: Reply) -> None:
        now, result = time.time_ns(), reply.result
        if isinstance(result, ReplyError):
            self._take_error(result, now)
            return
        how = result.priority, result.congestion_control, result.express
        qos = self._qos.get(how)
        if qos is None:
            # Members of the API's enumerations have those of the wire as values.
            qos = self._qos[how] = QoS.of(how[0].value, how[1].value, how[2])
        self._samples.put(str(result.key_expr), result.body, qos, True, now)
        if self._samples.full:
            self._cut()

    def _take_error(self, error: ReplyError, now: int) -> None:
        self._error_count += 1
        payload = bytes(error.payload)
        if len(self._errors) < _TOLD:
            self._errors.append(payload[:_TEXT].decode(errors="backslashreplace"))
        if self._options.include_errors:
            put = Put(payload=payload, encoding=Encoding.parse(str(error.encoding)))
            self._failures.put(self._key, put, _QOS, True, now)
            if self._failures.full:
                self._cut()

    def _cut(self) -> None:
        batch = self._samples.cut()
        if batch is not None:
            self._spill.put(batch)
        batch = self._failures.cut()
        if batch is not None:
            kinds = pa.array(np.full(batch.num_rows, ERROR, np.int8))
            self._spill.put(batch.set_column(_KIND, SAMPLES.field(_KIND), kinds))

    def _end(self) -> None:
        self._cut()
        self._spill.close()

    # Called by the task.

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Raises ZError."""
        import zenwire  # noqa: PLC0415 - in tasks alone

        options, first = self._options, 0
        with zenwire.open(options.session.made()) as session:
            session.get(
                self._selector,
                Callback(self._take, self._end, indirect=False),
                target=options.target,
                consolidation=options.consolidation,
                accept_replies=options.accept,
                timeout=options.timeout,
            )
            for batch in self._spill:
                yield sample_rows(self._selector, first, batch, options.columns, None)
                first += batch.num_rows
            stats = session.info.stats()
        # A peer that says farewell has answered, if it wanted to, and others are still there.
        ended = [how for how in stats.endings if how != _FAREWELL or not stats.neighbours]
        if ended:
            # A router also does that to whom it waits for too long.
            self._missing(f"the session was lost while replies came ({', '.join(ended)})")
        unkept = stats.routing.limit_replies
        if unkept:
            self._missing(
                f"{unkept} replies were of more keys than a query tells apart; try "
                "consolidation none"
            )
        if self._error_count and not options.include_errors:
            more = ", ..." if self._error_count > len(self._errors) else ""
            self._missing(f"{self._error_count} error replies: {', '.join(self._errors)}{more}")

    def _missing(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise ZError(
                f"{self._selector}: {what}; see the options timeout, includeErrors, failOnDataLoss"
            )
        _log.warning("%s: %s", self._selector, what)
