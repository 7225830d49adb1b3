"""Payloads and attachments: bytes that are looked at when they are needed."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["IntoZBytes", "ZBytes"]


class ZBytes:
    """Bytes, of text or of anything. Immutable, and equal to the same bytes or text.

    Made of a read-only ``memoryview``, it keeps the view, and copies nothing until asked to;
    what can change is copied at once.
    """

    __slots__ = ("_raw",)

    _raw: bytes | memoryview

    def __init__(self, bytes: IntoZBytes | None = None) -> None:  # noqa: A002 # eclipse-zenoh's name
        kind = type(bytes)
        if kind is _bytes:
            self._raw = bytes  # type: ignore[assignment] # its type was just looked at
        elif bytes is None:
            self._raw = b""
        elif isinstance(bytes, str):
            self._raw = bytes.encode()
        elif isinstance(bytes, ZBytes):
            self._raw = bytes._raw  # noqa: SLF001 # of this class
        else:
            self._raw = _raw_of(bytes)

    @classmethod
    def of(cls, value: IntoZBytes) -> ZBytes:
        """The ZBytes that an argument stands for."""
        return value if type(value) is ZBytes else cls(value)

    def to_bytes(self) -> bytes:
        """All of them; a copy only if they are a view."""
        raw = self._raw
        return raw if type(raw) is _bytes else _bytes(raw)

    def to_string(self) -> str:
        """As UTF-8 text. Raises ValueError if they are none."""
        return str(self._raw, "utf-8")

    def view(self) -> memoryview:
        """All of them, without a copy."""
        return memoryview(self._raw)

    def as_shm(self) -> None:
        """There is no shared memory here."""
        return

    def __len__(self) -> int:
        return len(self._raw)

    def __bool__(self) -> bool:
        return len(self._raw) > 0

    __bytes__ = to_bytes
    __str__ = to_string

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ZBytes):
            return self._raw == other._raw
        if isinstance(other, str):
            return self._raw == other.encode(errors="surrogatepass")
        if isinstance(other, _bytes | bytearray | memoryview):
            return self._raw == other
        return NotImplemented

    def __hash__(self) -> int:
        # Equal to the bytes, so it must hash like the bytes.
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        shown = _bytes(self._raw[:_SHOWN])
        more = f", {len(self)} bytes" if len(self) > _SHOWN else ""
        return f"ZBytes({shown!r}{more})"

    def __reduce__(self) -> tuple[type[ZBytes], tuple[bytes]]:
        return ZBytes, (self.to_bytes(),)


_bytes = bytes
_SHOWN = 64

IntoZBytes: TypeAlias = ZBytes | str | bytes | bytearray | memoryview


def _raw_of(value: object) -> bytes | memoryview:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    try:
        # Anything with a buffer, such as an array.
        view = memoryview(value)  # type: ignore[arg-type] # whether it has one is seen now
    except TypeError:
        found = type(value).__name__
        raise TypeError(
            f"expected bytes/str type, found {found!r}; encode it first, as with json.dumps"
        ) from None
    if view.readonly and view.contiguous and view.ndim == 1 and view.itemsize == 1:
        return view.cast("B") if view.format != "B" else view
    return view.tobytes()
