"""What every link offers, whatever carries it: bytes in, bytes out, and an end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol

from zenwire.links.errors import LinkError
from zenwire.wire.locator import EndPoint, Locator

__all__ = [
    "BATCH_MAX",
    "HIGH_WATER",
    "LOW_WATER",
    "Attach",
    "Counters",
    "Facts",
    "Link",
    "Listener",
    "Receiver",
]

HIGH_WATER: Final = 256 * 1024
"""Unsent bytes from which on a link is not writable."""
LOW_WATER: Final = 64 * 1024
"""Unsent bytes at which it is writable again."""
BATCH_MAX: Final = 65_535
"""The largest batch there is: its length has two bytes."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a transport must know of the link it runs on.

    ``streamed``: bytes without boundaries, so batches need their length before them; otherwise
    each write and each ``received`` is one batch. ``mtu`` bounds a batch, with its length.
    ``interfaces`` are names, for access control; ``common_name`` is that of the certificate
    the other side has proven to own.
    """

    streamed: bool
    reliable: bool
    mtu: int
    interfaces: tuple[str, ...] = ()
    common_name: str | None = None


class Receiver(Protocol):
    """Who takes what a link brings. Called in the thread of the event loop, never reentrantly.

    It may have ``received_many(data: memoryview, fresh: int) -> int`` too: a link of streams then
    calls that with what it has read, in a place that it uses again. ``fresh`` bytes of it are new;
    those before them, and any that the call says are not done with, have come before, and come
    again with what follows.
    """

    def received(self, data: bytes) -> None:
        """Bytes of a stream, or one datagram. The receiver may keep them."""

    def drained(self) -> None:
        """The link is writable again."""

    def closed(self, error: LinkError | None) -> None:
        """The last call, exactly once. No error: one of both sides has closed."""


class Link(ABC):
    """One way to one other node.

    ``endpoint`` is what was asked for, ``src`` and ``dst`` are the addresses it became.
    """

    __slots__ = ("bytes_in", "bytes_out", "dropped", "dst", "endpoint", "facts", "src", "writable")

    has_file: ClassVar[bool] = True
    """Whether its end frees a file of the process."""

    def __init__(self, endpoint: EndPoint, src: Locator, dst: Locator, facts: Facts) -> None:
        self.endpoint = endpoint
        self.src = src
        self.dst = dst
        self.facts = facts
        self.writable = True
        self.bytes_in = 0
        self.bytes_out = 0
        self.dropped = 0

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The names of those that it runs over: some links find them when they are asked."""
        return self.facts.interfaces

    @abstractmethod
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or keep for sending; nothing happens on a closed link.

        Always takes the data: whoever goes on writing to a link that is not ``writable`` fills
        the memory. A datagram above the mtu raises LinkError.
        """

    @property
    def unsent(self) -> bool:
        """Whether it may still refer to what was written: that must stay as it is."""
        return True

    @property
    def on_its_way(self) -> int:
        """Bytes that were written and have not arrived, as far as that is known."""
        return 0

    def set_read_size(self, size: int) -> None:  # noqa: B027 # most have no such buffer
        """Read up to so many bytes at once. Without effect where datagrams are read."""

    @abstractmethod
    def pause(self) -> None:
        """Ask for no more ``received``; what is read already may still come.

        Of datagrams, those beyond a bound are then dropped, and counted.
        """

    @abstractmethod
    def resume(self) -> None:
        """Undo ``pause``."""

    @abstractmethod
    def close(self) -> None:
        """Send what was written, for a bounded time, and end. Calls ``closed`` later."""

    def part(self) -> None:
        """As ``close``, but the other side has time to hear everything, and to close too."""
        self.close()

    @abstractmethod
    def abort(self, error: LinkError | None = None) -> None:
        """End now; what was not sent is lost. The error is handed to ``closed``."""

    def established(self) -> None:  # noqa: B027 # most links have nothing to do here
        """Told by the node once the session is open: the link is no longer a mere attempt."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.src} -> {self.dst}>"


Attach = Callable[[Link], Receiver]
"""Called once with a link that works, before anything is received: who takes its bytes?"""


@dataclass(slots=True)
class Counters:
    """What a listener has done."""

    accepted: int = 0
    """Links that were handed on."""
    failed: int = 0
    """Handshakes of TLS or WebSocket that failed or took too long."""
    evicted: int = 0
    """Attempts that gave way because too many were under way."""
    errors: int = 0
    """Failures of accept(2) itself, such as too many open files."""
    dropped: int = 0
    """Datagrams that belonged to no link."""


@dataclass(slots=True)
class Listener(ABC):
    """Where others connect to.

    ``endpoint`` has the port that was chosen; ``last_error`` is the latest failure that is
    counted in ``counters`` and concerned one attempt only. ``relieve`` is called when somebody waits
    and the process has no file to spare: it ends an accepted link, and says whether it did.
    """

    endpoint: EndPoint
    counters: Counters = field(default_factory=Counters)
    last_error: LinkError | None = None
    relieve: Callable[[], bool] | None = None

    @abstractmethod
    def locators(self, *, loopback: bool = True) -> list[Locator]:
        """Where others reach this listener; a wildcard becomes the addresses of this machine."""

    @abstractmethod
    async def close(self) -> None:
        """Accept no more. Stream links live on; those of a UDP listener end with its socket."""
