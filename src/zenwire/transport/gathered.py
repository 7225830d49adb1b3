"""Batches that go out in one write: it wakes who reads it, so the fewer of them the better."""

from __future__ import annotations

from zenwire.wire.buffer import Buffer

__all__ = ["Gathered", "Taken", "alone", "joined"]

Taken = tuple[bytes, list[Buffer], int]
"""A batch: what stands before each of its parts but the first, the parts, and how many bytes it has."""


def alone(data: bytes) -> Taken:
    """A batch that is put together."""
    return b"", [data], len(data)


def joined(batch: Taken | None) -> bytes:
    """The bytes of a batch; nothing if there is none."""
    return b"" if batch is None else batch[0].join(batch[1])


class Gathered:
    """Batches, one after the other. Each of their bytes is copied once, when they are written."""

    __slots__ = ("_before", "_parts", "size")

    def __init__(self) -> None:
        self._before = b""
        self._parts: list[Buffer] = []
        self.size = 0

    def add(self, batch: Taken) -> None:
        """One more, whose parts are nobody else's."""
        before, parts, size = batch
        if not self.size:
            self._before, self._parts = before, parts
        elif before is self._before:
            if before:
                # It does not stand before the first part, which goes to the end of the last one.
                self._parts[-1] = b"".join((self._parts[-1], parts[0]))
                del parts[0]
            self._parts += parts
        else:
            if self._before:
                self._before, self._parts = b"", [self._before.join(self._parts)]
            self._parts += (before.join(parts),) if before else parts
        self.size += size

    def take(self) -> bytes:
        """All of them; nothing is left."""
        whole = self._before.join(self._parts)
        self._before, self._parts, self.size = b"", [], 0
        return whole
