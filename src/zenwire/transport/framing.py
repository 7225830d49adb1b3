"""Bytes of a link to batches, and back: lengths of streams, compression, low latency."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

from zenwire.errors import DecodeError, Fault
from zenwire.transport import limits
from zenwire.transport.budget import Share
from zenwire.transport.settings import LinkFacts
from zenwire.transport.stats import Cause, Stats
from zenwire.wire.batch import (
    LOW_LATENCY_PREFIX,
    STREAM_PREFIX,
    compress_batch,
    expand_batch,
    frame_stream,
    split_stream,
)

__all__ = ["FEW", "Framing", "Spans", "Unwrap"]

FEW: Final = 4
"""Batches that come together and are read the short way: a reply and its end are two."""

Spans = Sequence[tuple[int, int]]
"""Where things start and end."""


class Framing:
    """How batches of one link are wrapped: as in the handshake, until ``agree`` says otherwise."""

    __slots__ = ("batch_size", "compression", "lowlatency", "message_max", "prefix", "stream")

    def __init__(self, link: LinkFacts, message_max: int = limits.MAX_MESSAGE_SIZE) -> None:
        self.stream = link.stream
        self.prefix = STREAM_PREFIX if link.stream else 0
        self.batch_size = limits.BATCH_MAX
        self.message_max = message_max
        self.compression = False
        self.lowlatency = False

    def agree(self, batch_size: int, *, compression: bool, lowlatency: bool) -> None:
        """What holds after OpenAck."""
        self.batch_size = batch_size
        self.compression = compression
        self.lowlatency = lowlatency
        if self.stream and lowlatency:
            self.prefix = LOW_LATENCY_PREFIX

    @property
    def room(self) -> int:
        """How many bytes the content of a batch may have.

        The reference reads low-latency messages up to the batch size, without their prefix, and
        breaks the link at longer ones; it sends longer ones itself.
        """
        if self.lowlatency:
            return self.batch_size
        return self.batch_size - self.prefix - self.compression

    @property
    def limit(self) -> int:
        """The longest batch that may come: as declared before it, or as a datagram."""
        if self.lowlatency and self.stream:
            return self.message_max
        return self.batch_size - self.prefix

    def wrap(self, content: bytes) -> bytes:
        """A batch as it is written to the link."""
        if self.compression:
            content = compress_batch(content)
        return frame_stream(content, self.prefix) if self.stream else content

    def expand(self, batch: bytes) -> bytes:
        """The content of a batch. Raises DecodeError."""
        if not self.compression:
            return batch
        return expand_batch(batch, self.batch_size)


class Unwrap:
    """What came over a link, as contents of batches.

    Not more is kept than was received, and no more of it than one batch, unless whoever takes the
    batches stops before the last one. A low-latency batch is a message of any length: after
    ``charge``, the bytes of one that is larger than other batches are charged to the share of the
    session.
    """

    __slots__ = ("_kept", "_share", "_skip", "_stats", "framing", "held")

    def __init__(self, framing: Framing) -> None:
        self.framing = framing
        self.held = 0
        """Bytes that are charged to the share."""
        self._kept = bytearray()
        self._share: Share | None = None
        self._stats: Stats | None = None
        self._skip = 0

    def charge(self, share: Share, stats: Stats) -> None:
        """Charge long messages to a share, and count those that are evicted."""
        self._share, self._stats = share, stats

    def release(self) -> None:
        """Drop an unfinished message: nothing more comes."""
        if self.held:
            self.evict(Cause.FRAGMENT_INTERRUPTED)
        self._share = None

    def evict(self, cause: Cause) -> None:
        """See `Unfinished`."""
        kept, prefix = self._kept, self.framing.prefix
        assert self._share is not None
        assert self._stats is not None
        self._share.end(self)
        self.held = 0
        self._stats.dropped[cause] += 1
        self._skip = prefix + int.from_bytes(kept[:prefix], "little") - len(kept)
        kept.clear()

    def _hold(self) -> None:
        """Charge what is kept, if it is more than a batch of any other link."""
        share, size = self._share, len(self._kept)
        if share is None or size <= limits.BATCH_MAX:
            return
        if not self.held:
            share.begin(self)
        if share.reserve(self, size - self.held):
            self.held = size

    def _unhold(self) -> None:
        if self.held and self._share is not None:
            self._share.end(self)
            self.held = 0

    def few(self, data: bytes) -> Spans:
        """Where contents start and end, if what came is a few whole batches; else nothing."""
        framing = self.framing
        prefix, most, whole = framing.prefix, framing.batch_size, len(data)
        if self._kept or framing.compression:
            return ()
        if not prefix:
            return ((0, whole),) if whole <= most else ()
        end = prefix + int.from_bytes(data[:prefix], "little")
        if end == whole:
            # As most often.
            return ((prefix, end),) if end <= most else ()
        found: list[tuple[int, int]] = []
        at = 0
        while end <= whole and end - at <= most and len(found) < FEW:
            found.append((at + prefix, end))
            at = end
            end += prefix + int.from_bytes(data[end : end + prefix], "little")
        return found if at == whole else ()

    def lacks(self, data: bytes | memoryview) -> int:
        """How many bytes of these belong to the batch of which something was kept; 0 if none."""
        kept, prefix = self._kept, self.framing.prefix
        if not kept:
            return 0
        head = bytes(kept[:prefix]) + bytes(data[: max(prefix - len(kept), 0)])
        whole = (
            prefix + int.from_bytes(head, "little") if len(head) == prefix else len(data) + prefix
        )
        return min(max(whole - len(kept), 0), len(data))

    def feed(self, data: bytes) -> Generator[bytes, None, None]:
        """Each batch that is whole now. Raises DecodeError for one that is too long or damaged.

        The framing may be changed between two batches.
        """
        framing = self.framing
        if not framing.stream:
            if len(data) > framing.limit:
                detail = f"{len(data)} bytes are above {framing.limit}"
                raise DecodeError(Fault.LIMIT, 0, "batch", detail)
            yield framing.expand(data)
            return
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        kept = self._kept
        if kept:
            kept += data
            if not self._whole(kept):
                self._hold()
                return
            self._unhold()
            data = bytes(kept)
            kept.clear()
        done = 0
        try:
            while True:
                prefix, limit = framing.prefix, framing.limit
                for start, end in split_stream(data, prefix, start=done, limit=limit):
                    done = end
                    yield framing.expand(data[start:end])
                    if (framing.prefix, framing.limit) != (prefix, limit):
                        break
                else:
                    break
        finally:
            self._kept += memoryview(data)[done:]
            # Whole batches that nobody took yet are not unfinished.
            if not self._whole(self._kept):
                self._hold()

    def _whole(self, kept: bytearray) -> bool:
        """Whether there is a batch, or a fault, in what was kept: else it is not copied again."""
        prefix = self.framing.prefix
        if len(kept) < prefix:
            return False
        length = int.from_bytes(kept[:prefix], "little")
        return len(kept) >= prefix + length or length > self.framing.limit
