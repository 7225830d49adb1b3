"""What others still have of the time when nobody listened: storages and advanced publishers."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from zenwire.api.columnar import Columnar
from zenwire.api.ext.keys import all_of
from zenwire.api.handlers import Callback
from zenwire.api.values import (
    ConsolidationMode,
    KeyExpr,
    QueryTarget,
    Reply,
    ReplyKeyExpr,
    Selector,
)
from zenwire.wire.values import QoS

if TYPE_CHECKING:
    import pyarrow as pa

    from zenwire.api.session import Session

__all__ = ["BYTES_MAX", "TIMEOUT", "History", "pull"]

TIMEOUT: Final = 10.0
"""Seconds that others have to answer."""
BYTES_MAX: Final = 256 * 2**20
"""Of one history; what is more is counted as lost."""
_ROWS: Final = 65_536
_QOS: Final = QoS()


class History:
    """What came in answer, as record batches."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.lost = 0
        """Samples that found no room."""
        self._bytes = 0
        self._collected = Columnar.collector(_ROWS, None)

    def take(self, reply: Reply) -> None:
        """A reply came."""
        sample = reply.ok
        if sample is None:
            return
        body, key = sample.body, str(sample.key_expr)
        if "*" in key or (body.timestamp is None and body.source_info is None):
            # The answer of some queryable, not a sample that was published.
            return
        if self._bytes > BYTES_MAX:
            self.lost += 1
            return
        # Replies travel with the QoS of their query, which says nothing of the sample.
        self._collected.put(key, body, _QOS, True, time.time_ns())
        if self._collected.full:
            self.cut()

    def cut(self) -> None:
        """No more comes for now."""
        batch = self._collected.cut()
        if batch is not None:
            self._bytes += batch.nbytes
            self.batches.append(batch)


async def pull(session: Session, key: str, within: float = TIMEOUT) -> History:
    """Ask storages for what they have on a key, and advanced publishers for their caches."""
    history, expression = History(), KeyExpr(key)
    asked = []
    for selector, accept in (
        (Selector(expression), ReplyKeyExpr.MATCHING_QUERY),
        (Selector(all_of(expression)), ReplyKeyExpr.ANY),
    ):
        done = asyncio.Event()
        replies = session.get(
            selector,
            Callback(history.take, done.set, indirect=False),
            target=QueryTarget.ALL,
            consolidation=ConsolidationMode.NONE,
            accept_replies=accept,
            timeout=within,
        )
        asked.append((replies, done))
    try:
        for replies, done in asked:
            await replies
            await done.wait()
    finally:
        for replies, _ in asked:
            replies.cancel()
    history.cut()
    return history
