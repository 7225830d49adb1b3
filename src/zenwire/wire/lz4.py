"""The LZ4 block format, without any frame around it, as compressed batches use it."""

from __future__ import annotations

__all__ = ["compress", "decompress"]

_MIN_MATCH = 4
# The format's end conditions: the last match starts at least 12 bytes before the end, and the
# last five bytes are literals.
_LAST_MATCH = 12
_LAST_LITERALS = 5
_WINDOW = 65_535


def decompress(block: bytes, limit: int) -> bytes:
    """The original bytes. Raises ValueError if the block is damaged or expands above ``limit``."""
    out = bytearray()
    pos, end = 0, len(block)
    while pos < end:
        token = block[pos]
        pos += 1
        literals, pos = _length(block, pos, token >> 4)
        if literals > end - pos:
            raise ValueError("literals reach beyond the block")
        if len(out) + literals > limit:
            raise ValueError(f"expands to more than {limit} bytes")
        out += block[pos : pos + literals]
        pos += literals
        if pos == end:
            return bytes(out)
        if pos + 2 > end:
            raise ValueError("a match has no offset")
        offset = block[pos] | block[pos + 1] << 8
        match, pos = _length(block, pos + 2, token & 15)
        match += _MIN_MATCH
        if not 0 < offset <= len(out):
            raise ValueError("a match starts before the block")
        if len(out) + match > limit:
            raise ValueError(f"expands to more than {limit} bytes")
        start = len(out) - offset
        # A match may run into what it is itself writing: repeat the window that is there.
        window = bytes(out[start : start + match])
        out += (window * (match // len(window) + 1))[:match]
    raise ValueError("the block does not end with literals")


def _length(block: bytes, pos: int, value: int) -> tuple[int, int]:
    if value < 15:
        return value, pos
    while pos < len(block):
        byte = block[pos]
        pos += 1
        value += byte
        if byte < 255:
            return value, pos
    raise ValueError("a length has no end")


def compress(data: bytes) -> bytes:
    """A block that any LZ4 reader expands. Greedy: the newest place of four equal bytes wins."""
    out = bytearray()
    seen: dict[bytes, int] = {}
    anchor = pos = 0
    while pos < len(data) - _LAST_MATCH:
        quad = data[pos : pos + _MIN_MATCH]
        found = seen.get(quad)
        seen[quad] = pos
        if found is None or pos - found > _WINDOW:
            pos += 1
            continue
        end = pos + _MIN_MATCH
        last = len(data) - _LAST_LITERALS
        while end < last and data[end] == data[found + end - pos]:
            end += 1
        _sequence(out, data[anchor:pos], pos - found, end - pos)
        anchor = pos = end
    _sequence(out, data[anchor:], 0, 0)
    return bytes(out)


def _sequence(out: bytearray, literals: bytes, offset: int, match: int) -> None:
    """Literals, then a match unless ``match`` is 0."""
    extra = match - _MIN_MATCH if match else 0
    out.append(min(len(literals), 15) << 4 | min(extra, 15))
    _put_length(out, len(literals))
    out += literals
    if match:
        out += offset.to_bytes(2, "little")
        _put_length(out, extra)


def _put_length(out: bytearray, value: int) -> None:
    value -= 15
    while value >= 255:
        out.append(255)
        value -= 255
    if value >= 0:
        out.append(value)
