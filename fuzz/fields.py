"""Where the fields of bytes are: a Reader that takes notes while the object codec reads.

So positions follow from the definitions, and a new message needs nothing here.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zenwire.errors import DecodeError
from zenwire.wire import kinds as k
from zenwire.wire.buffer import Buffer, Reader
from zenwire.wire.objects import read_message
from zenwire.wire.transport import Frame

__all__ = ["Field", "extension_end", "fields_of", "in_batch", "in_message", "put_z"]


@dataclass(frozen=True, slots=True)
class Field:
    """Bytes ``start`` to ``end`` that were read in one go.

    ``form`` is ``u8``, ``ext`` (the header of an extension), ``z``, ``length``, ``count``,
    ``bytes`` or ``text``; ``kind`` is what read it, ``limit`` bounds a length or a count, and
    ``bound`` is where the enclosing extension or batch ends.
    """

    form: str
    start: int
    end: int
    bound: int
    kind: object = None
    limit: int = 0


class Notes(Reader):
    """Writes down what is read. Slow: it looks at who asks."""

    __slots__ = ("fields",)

    def __init__(self, buf: Buffer, pos: int = 0, end: int | None = None) -> None:
        super().__init__(buf, pos, end)
        self.fields: list[Field] = []

    def _note(self, form: str, start: int, limit: int = 0) -> None:
        reader = _caller(2).get("self")
        kind = reader if isinstance(reader, k.Kind | k.FlaggedKind) else None
        self.fields.append(Field(form, start, self.pos, self.end, kind, limit))

    def u8(self) -> int:
        start = self.pos
        value = super().u8()
        # A chain counts down how many extensions it still takes; nothing else does.
        form = "ext" if "left" in _caller(1) else "u8"
        self._note(form, start)
        return value

    def z(self) -> int:
        start = self.pos
        value = super().z()
        kind = _caller(1).get("self")
        if kind is self:
            return value  # of a length, which is noted there
        if isinstance(kind, k.Sequence):
            self._note("count", start, kind.limit)
        else:
            self._note("z", start)
        return value

    def length(self, limit: int) -> int:
        start = self.pos
        n = super().length(limit)
        self._note("length", start, limit)
        return n

    def take(self, n: int) -> bytes:
        start = self.pos
        value = super().take(n)
        self._note("bytes", start)
        return value

    def sized(self, limit: int) -> bytes:
        kind = _caller(1).get("self")
        start = self.pos
        n = super().length(limit)
        self.fields.append(Field("length", start, self.pos, self.end, kind, limit))
        start = self.pos
        value = super().take(n)
        self.fields.append(Field("bytes", start, self.pos, self.end, kind))
        return value

    def text(self, n: int) -> str:
        start = self.pos
        value = super().text(n)
        self._note("text", start)
        return value


def _caller(depth: int) -> dict[str, Any]:
    """The variables of who called the caller of this."""
    frame = inspect.currentframe()
    for _ in range(depth + 1):
        frame = frame and frame.f_back
    assert frame is not None
    return frame.f_locals


def fields_of(data: Buffer, read: Callable[[Reader], Any]) -> tuple[Field, ...]:
    """What ``read`` reads up to its end, or to the first fault."""
    notes = Notes(data)
    with contextlib.suppress(DecodeError):
        read(notes)
    return tuple(notes.fields)


def in_message(scope: str) -> Callable[[Reader], Any]:
    """Reads a message of a scope."""
    return lambda r: read_message(r, scope)


def in_batch(r: Reader) -> None:
    """Reads a batch."""
    framed = False
    while r.pos < r.end:
        network = framed and r.buf[r.pos] & 0x1F >= 0x19
        message = read_message(r, "network" if network else "transport")
        framed = network or isinstance(message, Frame)


def put_z(value: int, size: int = 0) -> bytes:
    """A variable-length integer; of ``size`` bytes, if that is longer than it needs."""
    out = bytearray()
    while len(out) < 8 and (value > 0x7F or len(out) + 1 < size):
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def extension_end(data: bytes, start: int) -> int:
    """Where the extension ends whose header is at ``start``; the end of data if it is cut."""
    encoding = data[start] & 0x60
    r = Reader(data, start + 1)
    try:
        if encoding == k.ExtEncoding.Z64:
            r.z()
        elif encoding == k.ExtEncoding.ZBUF:
            r.take(r.length(2**32))
    except DecodeError:
        return len(data)
    return r.pos
