"""The object codec: a definition and bytes to an instance, and back.

Each class gets a ``Codec``, made from its definition when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar

from zenwire.errors import DecodeError, Fault
from zenwire.wire.buffer import Buffer, Reader, Writer
from zenwire.wire.define import Spec, messages, spec_of
from zenwire.wire.kinds import Kind
from zenwire.wire.specialise import reader_of, writer_of

__all__ = ["Codec", "OneOf", "Struct", "codec_of", "decode", "dispatch", "encode"]

T = TypeVar("T")

ID_MASK = 0x1F


class Codec(Generic[T]):
    """``read`` and ``write`` of one class of messages or structs.

    Each is made when it is first called: a node that starts needs few of them.
    """

    __slots__ = ("read", "spec", "write")

    def __init__(self, cls: type[T]) -> None:
        self.spec = spec_of(cls)
        # The header is that of a message; structs have none.
        self.read: Callable[..., T] = self._first_read
        self.write: Callable[[Writer, T], None] = self._first_write

    def made(self) -> Codec[T]:
        """The same, with nothing left to make: for who keeps the functions."""
        self.read, self.write = reader_of(self.spec), writer_of(self.spec)
        return self

    def _first_read(self, r: Reader, header: int = 0) -> T:
        self.read = reader_of(self.spec)
        return self.read(r, header)

    def _first_write(self, w: Writer, value: T) -> None:
        self.write = writer_of(self.spec)
        self.write(w, value)


_CODECS: dict[type, Codec[Any]] = {}


def codec_of(cls: type[T]) -> Codec[T]:
    """The codec of a message or struct class, made when it is first asked for."""
    codec = _CODECS.get(cls)
    if codec is None:
        codec = _CODECS[cls] = Codec(cls)
    return codec


class Struct(Kind[T]):
    """A struct as the kind of a field."""

    def __init__(self, cls: type[T]) -> None:
        self.cls = cls
        self.label = cls.__name__
        codec = codec_of(cls).made()
        # As attributes of the instance: a message has several, and each call counts.
        self.read = codec.read  # type: ignore[method-assign]
        self.write = codec.write  # type: ignore[method-assign,assignment] # names of arguments


Dispatch = tuple[Codec[Any] | None, ...]
"""The codec for each of the 256 header bytes."""


def dispatch(specs: tuple[Spec, ...]) -> Dispatch:
    """The table that finds a message's codec by its header byte."""

    def find(header: int) -> Codec[Any] | None:
        return next((codec_of(s.cls) for s in specs if s.matches(header)), None)

    return tuple(find(header) for header in range(256))


class OneOf(Kind[T]):
    """A sub-message: the header byte says which of some classes it is."""

    def __init__(self, *classes: type[T]) -> None:
        self.specs = tuple(spec_of(c) for c in classes)
        self.label = " or ".join(s.name for s in self.specs)
        self._table = dispatch(self.specs)

    def read(self, r: Reader) -> T:
        header = r.u8()
        codec = self._table[header]
        if codec is None:
            raise DecodeError(Fault.UNKNOWN_ID, r.pos - 1, detail=f"no {self.label}")
        return codec.read(r, header)  # type: ignore[no-any-return] # its classes are T

    def write(self, w: Writer, value: T) -> None:
        codec_of(type(value)).write(w, value)


@cache
def scope_table(scope: str) -> Dispatch:
    """The codec of each header byte of a scope."""
    return dispatch(messages(scope))


def read_message(r: Reader, scope: str) -> Any:  # Any: a message of that scope
    """The next message. Raises DecodeError."""
    if r.pos >= r.end:
        raise DecodeError(Fault.TRUNCATED, r.pos, scope, "no message at all")
    header = r.u8()
    codec = scope_table(scope)[header]
    if codec is None:
        raise unknown_id(header, r.pos - 1, scope)
    return codec.read(r, header)


def unknown_id(header: int, at: int, scope: str) -> DecodeError:
    """What is wrong with a header that no message of a scope has."""
    detail = f"no {scope} message has id {header & ID_MASK:#04x}"
    return DecodeError(Fault.UNKNOWN_ID, at, scope, detail)


def decode(data: Buffer, scope: str) -> Any:  # Any: a message of that scope
    """A message that fills ``data``. Raises DecodeError."""
    r = Reader(data)
    message = read_message(r, scope)
    if r.pos != r.end:
        raise DecodeError(Fault.TRAILING, r.pos, spec_of(type(message)).name)
    return message


def encode(message: object) -> bytes:
    """Any message or struct. Raises EncodeError."""
    w = Writer()
    codec_of(type(message)).write(w, message)
    return bytes(w.out)
