"""Many batches at once: what a machine needs of a reader that does not make objects of messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from zenwire.transport.inbox import Inbox
    from zenwire.wire.network import NetworkMessage

__all__ = ["Bursts", "ReceivedRun", "Run"]


class Run(Protocol):
    """Publications in a row, of FRAMEs of one reliability, in whatever form the reader has."""

    @property
    def reliable(self) -> bool: ...

    def __len__(self) -> int: ...

    def messages(self) -> list[NetworkMessage]:
        """They as objects."""


@dataclass(slots=True)
class ReceivedRun:
    """An event: like ``Received``, but void when more bytes are received, by whichever link."""

    run: Run


class Bursts(Protocol):
    """Reads streams of batches.

    ``split`` finds the batches, up to one that is longer than ``limit``, and gives where the rest
    begins, which is then ``faulty``. ``parts`` gives, in order, runs of publications that are
    nothing else and that are new, and where in the data the other batches are. Each is dealt with
    before the next one is asked for, since sequence numbers of the inbox go on with them.
    """

    @property
    def faulty(self) -> bool: ...

    def split(self, data: memoryview, limit: int) -> int: ...

    def parts(self, inbox: Inbox) -> Iterator[Run | tuple[int, int]]: ...
