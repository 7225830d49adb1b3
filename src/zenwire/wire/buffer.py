"""Reader and Writer: the only place of the object codec that indexes bytes."""

from __future__ import annotations

from zenwire.errors import DecodeError, EncodeError, Fault

__all__ = ["Buffer", "Reader", "Writer", "utf8"]

Buffer = bytes | bytearray | memoryview

_Z64_MAX = 2**64 - 1


class Reader:
    """A position in ``buf``, and the ``end`` it must not pass.

    ``nibble`` is the low half of the last packed ZenohID byte: other fields live there.
    """

    __slots__ = ("buf", "end", "nibble", "pos")

    def __init__(self, buf: Buffer, pos: int = 0, end: int | None = None) -> None:
        self.buf = buf
        self.pos = pos
        self.end = len(buf) if end is None else end
        self.nibble = 0

    def u8(self) -> int:
        pos = self.pos
        if pos >= self.end:
            raise DecodeError(Fault.TRUNCATED, pos)
        self.pos = pos + 1
        return self.buf[pos]

    def u16(self) -> int:
        """Two bytes, little endian."""
        return self.u8() | self.u8() << 8

    def z(self) -> int:
        """A variable-length integer of up to 64 bits: the ninth byte gives all its eight bits."""
        pos, buf, end = self.pos, self.buf, self.end
        if pos >= end:
            raise DecodeError(Fault.TRUNCATED, pos)
        byte = buf[pos]
        pos += 1
        if byte < 0x80:
            self.pos = pos
            return byte
        if end - pos >= 8 and buf[pos] & buf[pos + 1] & buf[pos + 2] & buf[pos + 3] >= 0x80:
            # Long ones are mostly timestamps, which have nine bytes.
            eight = int.from_bytes(buf[pos - 1 : pos + 7], "little")
            if eight & _CONTINUED == _CONTINUED:
                self.pos = pos + 8
                return _squeeze(eight) | buf[pos + 7] << 56
        value = byte & 0x7F
        for shift in range(7, 56, 7):
            if pos >= end:
                raise DecodeError(Fault.TRUNCATED, pos)
            byte = buf[pos]
            pos += 1
            if byte < 0x80:
                self.pos = pos
                return value | byte << shift
            value |= (byte & 0x7F) << shift
        if pos >= end:
            raise DecodeError(Fault.TRUNCATED, pos)
        self.pos = pos + 1
        return value | buf[pos] << 56

    def length(self, limit: int) -> int:
        """A declared length: within ``limit``, and within what remains."""
        start = self.pos
        n = self.z()
        if n > limit:
            raise DecodeError(Fault.LIMIT, start, detail=f"length {n} is above {limit}")
        left = self.end - self.pos
        if n > left:
            raise DecodeError(Fault.TRUNCATED, self.pos, detail=f"{n} bytes declared, {left} left")
        return n

    def take(self, n: int) -> bytes:
        pos = self.pos
        if n > self.end - pos:
            raise DecodeError(Fault.TRUNCATED, pos)
        self.pos = pos + n
        return bytes(self.buf[pos : pos + n])

    def sized(self, limit: int) -> bytes:
        """A declared length, then that many bytes."""
        pos = self.pos
        if pos < self.end and (n := self.buf[pos]) < 0x80 and n <= limit:
            stop = pos + 1 + n
            if stop <= self.end:
                self.pos = stop
                return bytes(self.buf[pos + 1 : stop])
        return self.take(self.length(limit))

    def text(self, n: int) -> str:
        pos = self.pos
        try:
            text = str(self.buf[pos : pos + n], "utf-8")
        except UnicodeDecodeError as e:
            raise DecodeError(Fault.UTF8, pos, detail=e.reason) from None
        self.pos = pos + n
        return text


_CONTINUED = 0x8080_8080_8080_8080


def _squeeze(eight: int) -> int:
    """Seven bits of each of eight bytes, side by side."""
    pairs = (eight & 0x007F_007F_007F_007F) | (eight & 0x7F00_7F00_7F00_7F00) >> 1
    fours = (pairs & 0x0000_3FFF_0000_3FFF) | (pairs & 0x3FFF_0000_3FFF_0000) >> 2
    return (fours & 0x0FFF_FFFF) | (fours & 0x0FFF_FFFF_0000_0000) >> 4


def utf8(text: str) -> bytes:
    """Raises EncodeError for a lone surrogate, which UTF-8 does not have."""
    try:
        return text.encode()
    except UnicodeEncodeError as e:
        raise EncodeError(f"{text!r} is not UTF-8: {e.reason}") from None


class Writer:
    """Bytes as they grow. ``nibble_at`` is where the last packed ZenohID byte stands."""

    __slots__ = ("nibble_at", "out")

    def __init__(self) -> None:
        self.out = bytearray()
        self.nibble_at = 0

    def u8(self, value: int) -> None:
        if not 0 <= value <= 0xFF:
            raise EncodeError(f"{value} does not fit in one byte")
        self.out.append(value)

    def u16(self, value: int) -> None:
        if not 0 <= value <= 0xFFFF:
            raise EncodeError(f"{value} does not fit in two bytes")
        self.out += value.to_bytes(2, "little")

    def z(self, value: int) -> None:
        """The shortest form; we never write another."""
        if 0 <= value < 0x80:
            self.out.append(value)
            return
        if not 0 <= value <= _Z64_MAX:
            raise EncodeError(f"{value} does not fit in 64 bits")
        out = self.out
        for _ in range(8):
            if value < 0x80:
                break
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)

    def text(self, value: str, limit: int) -> None:
        """A length, then the text as UTF-8."""
        self.sized(utf8(value), limit)

    def sized(self, data: bytes, limit: int) -> None:
        """A length, then the bytes."""
        if len(data) > limit:
            raise EncodeError(f"{len(data)} bytes are above the limit of {limit}")
        if len(data) < 0x80:
            self.out.append(len(data))
        else:
            self.z(len(data))
        self.out += data
