"""Each kind of bad bytes, with the fault they must give and where.

What is expected follows from the protocol's rules and from where the fields of a sample are, never
from what a reader said. ``ATTACKS`` are of one message; ``Place.put`` puts them into a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from fuzz.fields import Field, extension_end, put_z
from tests.hostile.samples import UNKNOWN, Sample
from zenwire.errors import Fault
from zenwire.wire import kinds as k
from zenwire.wire.define import Ext, Plain, messages, spec_of
from zenwire.wire.limits import EXTENSIONS_MAX, ZID_MAX
from zenwire.wire.objects import OneOf, Struct

HUGE = (2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1)
MANY = 10_000


class Case(NamedTuple):
    """Bytes, and their fault at an offset; no fault if they are fine."""

    data: bytes
    fault: Fault | None = None
    offset: int = 0


Attack = Callable[[Sample], Iterator[Case]]


# Lengths and numbers.


def huge_lengths(s: Sample) -> Iterator[Case]:
    """In every length and count; the lengths around it right, and as they were."""
    for f in s.fields:
        if f.form not in ("length", "count"):
            continue
        for value in HUGE:
            number = put_z(value)
            data, at = s.replaced(f, number)
            yield _too_long(data, f, value, at, len(data))
            data = s.data[: f.start] + number + s.data[f.end :]
            yield _too_long(data, f, value, f.start, f.bound if s.around(f) else len(data))


def _too_long(data: bytes, f: Field, value: int, at: int, bound: int) -> Case:
    end = at + len(put_z(value))
    if end > bound:
        return Case(data, Fault.TRUNCATED, bound)
    if value > f.limit:
        return Case(data, Fault.LIMIT, at)
    return Case(data, Fault.TRUNCATED, end)


def limits(s: Sample) -> Iterator[Case]:
    """One more than the limit is LIMIT, however many bytes there are."""
    for f in s.fields:
        if f.form in ("length", "count") and f.limit < 2**20:
            data, at = s.replaced(f, put_z(f.limit + 1))
            yield Case(data + bytes(f.limit + 1), Fault.LIMIT, at)


def wide_integers(s: Sample) -> Iterator[Case]:
    """Nine bytes: fine up to the top of the field, OVERFLOW above it."""
    for f in s.fields:
        if f.form != "z":
            continue
        bits = f.kind.bits if isinstance(f.kind, k.Z | k.EncodingKind) else 64
        top = 2**bits - 1
        data, at = s.replaced(f, put_z(top, 9))
        yield Case(data, Fault.INVALID, at) if _forbidden(f.kind, top) else Case(data)
        if bits == 64:
            continue
        for value in (top + 1, 2**32, 2**63, 2**64 - 1):
            if value > top:
                data, at = s.replaced(f, put_z(value, 9))
                yield Case(data, Fault.OVERFLOW, at)


def _forbidden(kind: object, value: int) -> bool:
    if isinstance(kind, k.ZValue):
        return kind.otherwise is None and value & kind.keep > kind.top
    return isinstance(kind, k.QoSLinkKind)


# Text.

BAD_TEXT = (
    *(b"\xc0\x80", b"\xc0\xaf", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf"),  # overlong
    *(b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf"),
    *(b"\xed\xa0\x80", b"\xed\xaf\xbf", b"\xed\xb0\x80", b"\xed\xbf\xbf"),  # surrogates
    *(b"\xc3", b"\xe2\x82", b"\xe2", b"\xf0\x9f\x92", b"\xf0\x9f", b"\xf0"),  # cut
    *(b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff"),
    *(b"\x80", b"\xbf", b"\xc3\xa9\xa9", b"\x80\x80"),  # continuation of nothing
    *(b"\xe2\x28\xa1", b"\xe2\x82\x28", b"\xf0\x28\x8c\xbc", b"\xf0\x90\x28\xbc"),  # broken off
)
GOOD_TEXT = "\0\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
_PADDING = ((0, 0), (1, 0), (0, 1), (7, 0), (8, 0), (0, 8), (3, 9), (9, 7), (15, 0), (13, 12))


def bad_text(s: Sample) -> Iterator[Case]:
    """In every text, at its start, at its end and in between, across the reader's eight bytes."""
    for f in s.fields:
        if f.form != "text":
            continue
        head = b"tcp/" if f.kind is k.locator_text else b""
        data, at = s.replaced(f, head + GOOD_TEXT.encode())
        yield Case(data)
        for bad in BAD_TEXT:
            for before, after in _PADDING:
                data, at = s.replaced(f, b"k" * before + bad + b"k" * after)
                yield Case(data, Fault.UTF8, at)


# ZenohIDs.


def bad_zids(s: Sample) -> Iterator[Case]:
    """Of no bytes, of zeros, of too many bytes, and those that are just right."""
    for f, value in zip(s.fields, s.fields[1:], strict=False):
        if isinstance(f.kind, k.PlainZid) and f.form == "length":
            yield from _plain_zids(s, f, value)
        elif isinstance(f.kind, k.PackedZid | k.OptionalPackedZid):
            yield from _packed_zids(s, f, value)


def _plain_zids(s: Sample, f: Field, value: Field) -> Iterator[Case]:
    both = Field("", f.start, value.end, f.bound)
    for size in range(ZID_MAX + 1):
        data, at = s.replaced(both, put_z(size) + bytes(size))
        yield Case(data, Fault.INVALID, at + 1)
    for size in range(1, ZID_MAX + 1):
        yield Case(s.replaced(both, put_z(size) + b"\1" + bytes(size - 1))[0])
        yield Case(s.replaced(both, put_z(size) + b"\xff" * size)[0])
    for size in (ZID_MAX + 1, ZID_MAX + 2, 255, 256):
        data, at = s.replaced(both, put_z(size) + b"\1" * size)
        yield Case(data, Fault.LIMIT, at)


def _packed_zids(s: Sample, f: Field, value: Field) -> Iterator[Case]:
    """It cannot be too long: the length has four bits."""
    low = s.data[f.start] & 0x0F
    both = Field("", f.start, value.end, f.bound)
    for size in range(1, ZID_MAX + 1):
        head = bytes([size - 1 << 4 | low])
        data, at = s.replaced(both, head + bytes(size))
        yield Case(data, Fault.INVALID, at + 1)
        yield Case(s.replaced(both, head + b"\1" + bytes(size - 1))[0])
        yield Case(s.replaced(both, head + b"\xff" * size)[0])


# Ids and extensions.


def unknown_ids(s: Sample) -> Iterator[Case]:
    """In every place of a sub-message, whatever the flags are."""
    for f in s.fields:
        if isinstance(f.kind, OneOf):
            ids = {spec.id for spec in f.kind.specs}
            for header in range(256):
                if header & 0x1F not in ids:
                    data = s.data[: f.start] + bytes([header]) + s.data[f.end :]
                    yield Case(data, Fault.UNKNOWN_ID, f.start)


def every_extension(s: Sample) -> Iterator[Case]:
    """Each of the 256 headers as the first extension, with a body of its encoding."""
    if not has_chain(s):
        return
    at = s.chain[0]
    bodies = _bodies(s)
    for header in range(256):
        known = bodies.get(header & 0x7F)
        body = _BODY[header & 0x60] if known is None else known
        more = bytes([UNKNOWN]) if header & 0x80 else b""
        data = s.chained(bytes([header]) + body + more)
        if known is not None:
            yield Case(data)
        elif header & 0x10:
            yield Case(data, Fault.MANDATORY_EXTENSION, at)
        elif header & 0x60 == 0x60:
            yield Case(data, Fault.RESERVED_ENCODING, at)
        else:
            yield Case(data)


_BODY = {0x00: b"", 0x20: b"\xac\x02", 0x40: b"\x03xyz", 0x60: b""}


def has_chain(s: Sample) -> bool:
    return bool(s.spec.scope or s.spec.exts)


def _bodies(s: Sample) -> dict[int, bytes]:
    """What each known extension of the sample has in it, by header."""
    found = {}
    at, end = s.chain
    while at < end:
        after = extension_end(s.data, at)
        found[s.data[at] & 0x7F] = s.data[at + 1 : after]
        at = after
    return {e.header: found[e.header] for e in s.spec.exts}


def many_extensions(s: Sample) -> Iterator[Case]:
    """10,000 of one kind, known or not: LIMIT at the first that is too many."""
    if not has_chain(s):
        return
    unknown = {0x0E: b"", 0x2E: b"\x01", 0x4E: b"\x01x", 0x2D: b"\xff" * 9}
    for header, body in (unknown | _bodies(s)).items():
        one = bytes([header | 0x80]) + body
        last = bytes([header]) + body
        too_many = s.chain[0] + EXTENSIONS_MAX * len(one)
        yield Case(s.chained(one * (EXTENSIONS_MAX - 1) + last))
        yield Case(s.chained(one * EXTENSIONS_MAX + last), Fault.LIMIT, too_many)
        yield Case(s.chained(one * MANY), Fault.LIMIT, too_many)


def trailing(s: Sample) -> Iterator[Case]:
    """More in an extension than its structure takes, and nothing where it needs something."""
    for e in s.spec.exts:
        if e.kind.encoding is not k.ExtEncoding.ZBUF:
            continue
        length = _length_of(s, e)
        body = Field("", length.end, length.end + s.value(length), 0)
        for more in (b"\0", b"\xff", bytes(100)):
            full = s.data[body.start : body.end]
            if isinstance(e.kind, k.WireExprExt):
                full = b"\x02\x05"  # without N there is no suffix to take the rest
            elif _takes_the_rest(e.kind):
                break
            data, at = s.replaced(body, full + more)
            yield Case(data, Fault.TRAILING, at + len(full))
        data, at = s.replaced(body, b"")
        if isinstance(e.kind, k.RestText):
            yield Case(data, Fault.LIMIT, at)
        elif isinstance(e.kind, k.Rest) or _is_chain(e.kind):
            yield Case(data)
        else:
            yield Case(data, Fault.TRUNCATED, at)


def _is_chain(kind: object) -> bool:
    return isinstance(kind, Struct) and bool(spec_of(kind.cls).exts)


def _length_of(s: Sample, e: Ext) -> Field:
    at, end = s.chain
    while at < end:
        if s.data[at] & 0x7F == e.header:
            return next(f for f in s.fields if f.start == at + 1)
        at = extension_end(s.data, at)
    raise LookupError(e.name)


def _takes_the_rest(kind: object) -> bool:
    if isinstance(kind, Struct):
        parts = [e for e in spec_of(kind.cls).elements if isinstance(e, Plain)]
        return bool(parts) and _takes_the_rest(parts[-1].kind)
    return isinstance(kind, k.Rest | k.RestText)


def reserved_body(s: Sample) -> Iterator[Case]:
    """The encoding 0b11 where header bits say how a body is coded."""
    for e in s.spec.elements:
        if isinstance(e, Plain) and isinstance(e.kind, k.OamBody):
            header = s.data[0] | e.kind.mask
            yield Case(bytes([header]) + s.data[1:], Fault.RESERVED_ENCODING, s.chain[1])
            bare = s.chained(b"")
            header = bare[0] | e.kind.mask
            yield Case(bytes([header]) + bare[1:], Fault.RESERVED_ENCODING, s.chain[0])


# Cuts.


def cut(s: Sample) -> Iterator[Case]:
    """After each byte but the last: TRUNCATED where the first field lacks something."""
    for n in range(1, len(s.data)):
        at = _lacks(s, n)
        yield Case(s.data[:n]) if at is None else Case(s.data[:n], Fault.TRUNCATED, at)


def _lacks(s: Sample, n: int) -> int | None:
    for i, f in enumerate(s.fields):
        if f.form == "length" and f.end <= n < f.end + s.value(f):
            return f.end
        if f.end > n:
            if f.form != "bytes":
                return n
            # Bytes without a length: of a packed ZenohID, or all that there is.
            packed = isinstance(s.fields[i - 1].kind, k.PackedZid | k.OptionalPackedZid)
            return f.start if packed else None
    return None


ATTACKS: dict[str, Attack] = {
    "huge_lengths": huge_lengths,
    "limits": limits,
    "wide_integers": wide_integers,
    "bad_text": bad_text,
    "bad_zids": bad_zids,
    "unknown_ids": unknown_ids,
    "every_extension": every_extension,
    "many_extensions": many_extensions,
    "trailing": trailing,
    "reserved_body": reserved_body,
    "cut": cut,
}


def unknown_headers(scope: str) -> list[int]:
    """Header bytes that no message of a scope has."""
    specs = messages(scope)
    return [header for header in range(256) if not any(s.matches(header) for s in specs)]
