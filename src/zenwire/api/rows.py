"""Samples of rows: each is made of its row when a program looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from zenwire.api.values import Reliability, Sample, ZBytes

if TYPE_CHECKING:
    from zenwire.node.plane import RowsReceived

__all__ = ["RowSample", "samples_of"]


class RowSample(Sample):
    """A sample that was not looked at so far, but for its payload.

    What a Sample has is not set before it is asked for; then the row is let go, so that whoever
    keeps one sample does not keep what came with it.
    """

    __slots__ = ("_at", "_kept")

    def __init__(self, kept: Any, at: int) -> None:
        # It is not one of Sample yet, so that one is not called.
        self._kept = kept
        """A ``Kept`` of `zenwire.columns.kept`; None when it is let go."""
        self._at = at

    def __getattr__(self, name: str) -> Any:
        # Python asks here for what is not set.
        kept = None if name == "_kept" else self._kept
        if kept is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}", name=name)
        key, push = kept.message(self._at)
        reliable = Reliability.RELIABLE if kept.reliable else Reliability.BEST_EFFORT
        Sample.__init__(self, key, push.body, push.qos, reliable)
        self._kept = None
        return object.__getattribute__(self, name)

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        kept = self._kept
        if kept is None:
            return len(self.payload) + len(self._body.attachment or b"")
        found: int = kept.size(self._at)
        return found

    @property
    def payload(self) -> ZBytes:
        kept = self._kept
        if kept is None:
            return ZBytes(getattr(self._body, "payload", b""))
        return ZBytes(kept.payload(self._at))


def samples_of(output: RowsReceived, subscriber: int) -> Iterator[Sample]:
    """Those for a subscriber, one after the other: most are gone before the next one is made."""
    rows, count = output.rows(subscriber)
    if not count:
        return iter(())
    return map(partial(RowSample, output.part.keep(rows, count)), range(count))
