"""Publishers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from zenwire.api import publisher as aio
from zenwire.api.values import (
    CongestionControl,
    Encoding,
    IntoZBytes,
    Priority,
    Reliability,
    SourceInfo,
    Timestamp,
    TimestampInstrumentation,
)
from zenwire.sync.checks import check, encoding_of, payload_of
from zenwire.sync.lanes import BURST, SMALL, Burst
from zenwire.sync.matching import Matcher

if TYPE_CHECKING:
    from zenwire.api.put_batch import IntoTable, Written
    from zenwire.sync.session import Session

__all__ = ["Publisher"]


class Publisher(Matcher):
    """Publishes on one key, and knows whether anybody subscribes to it."""

    _inner: aio.Publisher

    def __init__(self, session: Session, inner: aio.Publisher) -> None:
        super().__init__(session, inner)
        self._loop = session.loop
        self._lane = session.access.lane(inner.priority)
        self._burst = Burst(self._lane, inner)

    @property
    def encoding(self) -> Encoding:
        """What puts have that name none of their own."""
        return self._inner.encoding

    @property
    def congestion_control(self) -> CongestionControl:
        """CongestionControl of every put and delete of this publisher."""
        return self._inner.congestion_control

    @property
    def priority(self) -> Priority:
        """Priority of every put and delete of this publisher."""
        return self._inner.priority

    @property
    def express(self) -> bool:
        """True if each value is sent at once, instead of waiting for others to fill a batch."""
        return self._inner.express

    @property
    def reliability(self) -> Reliability:
        """Reliability of every put and delete of this publisher."""
        return self._inner.reliability

    def put(
        self,
        payload: IntoZBytes,
        *,
        encoding: Encoding | str | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish a value. Returns when it is on its way; waits if too many are."""
        if (
            encoding is None
            and attachment is None
            and timestamp is None
            and timestamp_instrumentation is None
            and source_info is None
            and type(payload) is bytes
            and len(payload) <= SMALL
        ):
            burst = self._burst
            if burst is not self._loop.newest:
                # Perhaps it was undeclared since.
                self._inner.check_alive("put")
                burst = self._burst = self._lane.begin(burst)
            items = burst.items
            items.append(payload)
            if not burst.queued or len(items) >= BURST:
                self._lane.go(burst)
            return
        inner, raw = self._inner, payload_of(payload)
        inner.check_alive("put")
        check(
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            source_info=source_info,
        )
        call = partial(
            inner.put,
            raw,
            encoding=encoding_of(encoding),
            attachment=None if attachment is None else payload_of(attachment, "attachment"),
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            source_info=source_info,
        )
        self._lane.send(call, len(raw))

    def put_batch(self, table: IntoTable, *, encoding: Encoding | str | None = None) -> Written:
        """Publish all rows of a table, or all values of an array: the same as a loop of ``put``.

        The columns are those of `zenwire.columns.samples`; ``payload`` is needed. Rows have the
        key, QoS and reliability of this publisher. Returns when there was room for all, or they
        were dropped, as its congestion control says. Nothing is sent if any row cannot be.
        Needs the extra ``fast``.
        """
        inner = self._inner
        inner.check_alive("put_batch")
        return self._loop.run(lambda: inner.put_batch(table, encoding=encoding_of(encoding)))

    def delete(
        self,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish that the key has no value any more."""
        self._inner.check_alive("delete")
        check(
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            source_info=source_info,
        )
        call = partial(
            self._inner.delete,
            attachment=None if attachment is None else payload_of(attachment, "attachment"),
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            source_info=source_info,
        )
        self._lane.send(call)
