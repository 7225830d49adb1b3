"""Inputs made worse, by a random generator that decides everything.

First, where the fields of the seed are known, changes of fields: numbers spelled longer or huge,
extensions repeated and invented, header bits turned, text broken. Then changes of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from random import Random

from fuzz.fields import Field, extension_end, put_z
from fuzz.seeds import Seed

__all__ = ["LONGEST", "mutate"]

LONGEST = 8192

Change = Callable[[Random, bytes], bytes]
FieldChange = Callable[[Random, bytes, Field], bytes]

_NUMBERS = (
    *(0, 1, 16, 17, 31, 32, 33, 127, 128, 129, 255, 256, 2**14 - 1, 2**14, 65_535, 65_536),
    *(2**17 - 1, 2**17, 2**24, 2**24 + 1, 2**28, 2**31 - 1, 2**31, 2**32 - 1, 2**32),
    *(2**35, 2**49, 2**56 - 1, 2**56, 2**63 - 1, 2**63, 2**64 - 1),
)
_BYTES = (0x00, 0x01, 0x0F, 0x10, 0x1F, 0x20, 0x40, 0x60, 0x7F, 0x80, 0x81, 0xC0, 0xFF)
_BAD_TEXT = (
    *(b"\xc0\x80", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
    *(b"\xf5", b"\xff", b"\x80", b"\xe2\x82", b"\xf0\x9f\x92", b"\xc3"),
)
_TIMES = (1, 1, 1, 2, 3, 126, 127, 128, 129, 300)


def mutate(rng: Random, seeds: Sequence[Seed]) -> bytes:
    """A seed, now and then as it is."""
    seed = rng.choice(seeds)
    data = seed.data
    if seed.fields and rng.random() < 0.6:
        count = min(rng.choice((1, 1, 1, 2, 3)), len(seed.fields))
        # From behind, so that what is before a change stays where it was.
        for at in sorted(rng.sample(range(len(seed.fields)), count), reverse=True):
            field = seed.fields[at]
            if field.form == "ext" and rng.random() < 0.3:
                data = _other_extension(rng, data, field, tuple(seeds))
            else:
                data = rng.choice(_OF_FORM[field.form])(rng, data, field)
        if rng.random() < 0.7:
            return data[:LONGEST]
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 4, 8))):
        if rng.random() < 0.15:
            data = _splice(rng, data, rng.choice(seeds).data)
        else:
            data = rng.choice(_CHANGES)(rng, data)
    return data[:LONGEST]


# Fields.


def _other_extension(rng: Random, data: bytes, field: Field, seeds: tuple[Seed, ...]) -> bytes:
    """The same extension twice, with what another seed has in it first or last."""
    header = data[field.start] & 0x7F
    other = rng.choice(_extensions(seeds)[header])
    end = extension_end(data, field.start)
    more = data[field.start] & 0x80
    own = data[field.start + 1 : end]
    first, last = (own, other) if rng.random() < 0.5 else (other, own)
    both = bytes([header | 0x80]) + first + bytes([header | more]) + last
    return data[: field.start] + both + data[end:]


@cache
def _extensions(seeds: tuple[Seed, ...]) -> dict[int, list[bytes]]:
    """The bodies of all extensions that seeds have, by header."""
    found: dict[int, set[bytes]] = {}
    for seed in seeds:
        for f in seed.fields:
            if f.form == "ext":
                body = seed.data[f.start + 1 : extension_end(seed.data, f.start)]
                found.setdefault(seed.data[f.start] & 0x7F, set()).add(body)
    return {header: sorted(bodies) for header, bodies in found.items()}


def _other_number(rng: Random, data: bytes, field: Field) -> bytes:
    near = field.limit + rng.choice((-1, 0, 1)) if field.limit else rng.getrandbits(7)
    number = put_z(min(max(rng.choice((*_NUMBERS, near)), 0), 2**64 - 1), rng.choice((0, 0, 9)))
    return data[: field.start] + number + data[field.end :]


def _longer_number(rng: Random, data: bytes, field: Field) -> bytes:
    """The same number in more bytes."""
    value = _z(data[field.start : field.end])
    number = put_z(value, rng.randint(2, 9))
    return data[: field.start] + number + data[field.end :]


def _z(data: bytes) -> int:
    return sum((b if i == 8 else b & 0x7F) << 7 * i for i, b in enumerate(data))


def _unending(rng: Random, data: bytes, field: Field) -> bytes:
    """A number of high bytes only; what follows becomes a part of it."""
    return (
        data[: field.start]
        + bytes([rng.choice((0x80, 0xFF))]) * rng.randint(1, 9)
        + (data[field.end :])
    )


def _turn_bits(rng: Random, data: bytes, field: Field) -> bytes:
    return _put(data, field.start, data[field.start] ^ 1 << rng.randrange(8))


def _other_byte(rng: Random, data: bytes, field: Field) -> bytes:
    return _put(data, field.start, rng.choice(_BYTES))


def _announce(rng: Random, data: bytes, field: Field) -> bytes:
    """A header says that extensions follow, and they may."""
    at = rng.choice((field.end, field.end, min(field.end + rng.randrange(8), len(data))))
    return _put(data[:at], field.start, data[field.start] | 0x80) + _chain(rng) + data[at:]


def _repeat_extension(rng: Random, data: bytes, field: Field) -> bytes:
    end = extension_end(data, field.start)
    once = data[field.start : end]
    again = bytes([once[0] | 0x80]) + once[1:]
    times = rng.choice(_TIMES) if len(once) < 40 else 1
    return data[: field.start] + again * times + data[field.start :]


def _invent_extension(rng: Random, data: bytes, field: Field) -> bytes:
    """Some more before this one."""
    return data[: field.start] + _chain(rng, more=0x80) + data[field.start :]


def _chain(rng: Random, more: int = 0) -> bytes:
    out = b""
    for left in range(rng.choice((1, 1, 2, 3)), 0, -1):
        header = rng.randrange(128) & (0x6F if rng.random() < 0.7 else 0x7F)
        if header & 0x60 == 0x20:
            body = put_z(rng.choice(_NUMBERS), rng.choice((0, 0, 0, 9)))
        elif header & 0x60 == 0x40:
            content = rng.randbytes(rng.choice((0, 0, 1, 2, 8, 130)))
            body = put_z(len(content)) + content
        else:
            body = b""
        out += bytes([header | (0x80 if left > 1 else more)]) + body
    return out


def _break_text(rng: Random, data: bytes, field: Field) -> bytes:
    """Bad text of the same length, or near it."""
    bad = rng.choice(_BAD_TEXT)
    size = field.end - field.start
    at = field.start + rng.randint(0, max(size - len(bad), 0))
    return data[:at] + bad + data[at + len(bad) :]


def _change_bytes(rng: Random, data: bytes, field: Field) -> bytes:
    size = field.end - field.start
    new = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size), b"", bytes(size + 1)))
    return data[: field.start] + new + data[field.end :]


_OF_FORM: dict[str, tuple[FieldChange, ...]] = {
    "u8": (_turn_bits, _other_byte, _announce, _announce),
    "ext": (_turn_bits, _repeat_extension, _repeat_extension, _invent_extension),
    "z": (_other_number, _longer_number, _unending),
    "length": (_other_number, _longer_number, _unending),
    "count": (_other_number, _longer_number, _unending),
    "bytes": (_change_bytes,),
    "text": (_break_text, _change_bytes),
}


# Bytes.


def _put(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte & 0xFF]) + data[at + 1 :]


def _range(rng: Random, data: bytes) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    return start, min(len(data), start + rng.choice((1, 1, 2, 3, 4, 8, 16, 64)))


def _flip(rng: Random, data: bytes) -> bytes:
    if not data:
        return rng.randbytes(1)
    at = rng.randrange(len(data))
    return _put(data, at, data[at] ^ 1 << rng.randrange(8))


def _set(rng: Random, data: bytes) -> bytes:
    return _put(data, rng.randrange(len(data)), rng.choice(_BYTES)) if data else b"\xff"


def _cut(rng: Random, data: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def _behead(rng: Random, data: bytes) -> bytes:
    return data[rng.randint(0, len(data)) :]


def _insert(rng: Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.choice((1, 1, 2, 4, 16))) + data[at:]


def _drop(rng: Random, data: bytes) -> bytes:
    start, end = _range(rng, data)
    return data[:start] + data[end:]


def _repeat(rng: Random, data: bytes) -> bytes:
    start, end = _range(rng, data)
    times = rng.choice(_TIMES)
    return data[:end] + data[start:end] * times + data[end:]


def _swap(rng: Random, data: bytes) -> bytes:
    a, b, c = sorted(rng.randint(0, len(data)) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def _number(rng: Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    number = put_z(rng.choice(_NUMBERS), rng.choice((0, 0, 9)))
    return data[:at] + number + data[at + rng.randint(0, 1) :]


def _longer(rng: Random, data: bytes) -> bytes:
    low = [i for i, b in enumerate(data[:256]) if b < 0x80]
    if not low:
        return data
    at = rng.choice(low)
    return data[:at] + put_z(data[at], rng.randint(2, 9)) + data[at + 1 :]


def _splice(rng: Random, data: bytes, other: bytes) -> bytes:
    """The start of one and the end of the other; or all of both."""
    if rng.random() < 0.3:
        return data + other
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


_CHANGES: tuple[Change, ...] = (
    _flip,
    _flip,
    _flip,
    _set,
    _set,
    _cut,
    _behead,
    _insert,
    _drop,
    _repeat,
    _swap,
    _number,
    _longer,
)
