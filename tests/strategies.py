"""Hypothesis strategies derived from the definitions: a new message is covered by existing.

Values are small as a rule and wild now and then: the ends of every width, lengths at which a
length takes another byte, every member of every enumeration, extensions nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import zenwire.wire  # noqa: F401 # defines every message
from zenwire.wire import define, limits
from zenwire.wire import kinds as k
from zenwire.wire.batch import BatchMessage
from zenwire.wire.define import BitsField, Ext, Plain, Spec, Unknown, Word, spec_of
from zenwire.wire.encoding import CUSTOM, ENCODINGS, Encoding
from zenwire.wire.linkstate import Link, LinksKind
from zenwire.wire.locator import Locator
from zenwire.wire.network import NetworkMessage
from zenwire.wire.objects import OneOf, Struct, encode
from zenwire.wire.transport import Close, Fragment, Frame, Join, KeepAlive, TransportOam
from zenwire.wire.values import (
    Mapping,
    Priority,
    QoS,
    QoSLink,
    QueryableInfo,
    Resolution,
    UnknownExt,
    WhatAmI,
    WireExpr,
    ZenohId,
)

T = TypeVar("T")
Any_ = SearchStrategy[Any]

SCOPES = ("scouting", "transport", "network", "declare", "data")


def specs() -> tuple[Spec, ...]:
    """Every definition there is: messages of all scopes, then structs."""
    return tuple(sorted(define._SPECS.values(), key=lambda s: not s.scope))


def message_specs() -> tuple[Spec, ...]:
    return tuple(s for s in specs() if s.scope)


def struct_specs() -> tuple[Spec, ...]:
    return tuple(s for s in specs() if not s.scope)


def label(spec: Spec) -> str:
    """Unique among all definitions: InitSyn and InitAck have one protocol name."""
    return f"{spec.scope or 'struct'}-{spec.cls.__name__}"


# Values.

_LENGTHS = (0, 1, 127, 128, 255, 16_384, 65_535)


def integers(bits: int, least: int = 0) -> SearchStrategy[int]:
    """Of at most ``bits`` bits: small, or at an end of some length of the coding."""
    edges = {1 << n for n in (*range(7, 64, 7), 8, 16, 32, 63, 64)}
    wild = {n for edge in edges for n in (edge - 1, edge) if least <= n < 1 << bits}
    top = min(200, (1 << bits) - 1)
    small = st.integers(least, top)
    return st.one_of(small, small, st.sampled_from(sorted(wild | {least, (1 << bits) - 1})))


def octets(limit: int = 2**32 - 1, least: int = 0) -> SearchStrategy[bytes]:
    """A few bytes; now and then as many as need a longer length."""
    small = st.binary(min_size=least, max_size=max(least, min(12, limit)))
    lengths = [n for n in _LENGTHS if least <= n <= limit]
    wild = st.sampled_from([bytes(i % 251 for i in range(n)) for n in lengths])
    return st.one_of(small, small, small, small, small, wild)


def texts(limit: int, least: int = 0) -> SearchStrategy[str]:
    """At most ``limit`` bytes of UTF-8."""
    small = st.text(
        st.characters(codec="utf-8"), min_size=least, max_size=max(least, min(8, limit // 4))
    )
    paths = st.sampled_from(["a", "demo/a/**", "/**", "a=1;b=2", "ключ/鍵/🔑", "@adv", "\0", "é"])
    lengths = [n for n in _LENGTHS if least <= n <= limit]
    wild = st.sampled_from(["k" * n for n in lengths] + ["é" * (n // 2) for n in lengths if n > 1])
    fitting = paths.filter(lambda text: len(text.encode()) <= limit)
    return st.one_of(small, small, fitting, fitting, fitting, wild)


def zids() -> SearchStrategy[ZenohId]:
    raw = st.binary(min_size=1, max_size=limits.ZID_MAX).filter(any)
    known = st.sampled_from([b"\x01", b"\x01\xaa", b"\0\xff", b"\xff" * 16, bytes(15) + b"\x01"])
    return st.builds(ZenohId, st.one_of(known, known, raw))


def encodings() -> SearchStrategy[Encoding]:
    ids = st.one_of(st.sampled_from(range(len(ENCODINGS))), st.sampled_from([53, 1023, CUSTOM]))
    schemas = st.one_of(st.none(), octets(limits.SCHEMA_MAX))
    return st.builds(Encoding, ids, schemas)


def locators() -> SearchStrategy[Locator]:
    addresses = st.sampled_from(["127.0.0.1:7447", "[::1]:0", "/tmp/sock", "h", "é:1"])
    metadata = st.sampled_from(["", "prio=1-3", "rel=1", "a?b"])
    usual = st.builds(
        Locator, st.sampled_from(["tcp", "udp", "unixsock-stream"]), addresses, metadata
    )
    return st.one_of(usual, usual, st.just(Locator("tcp", "x" * (limits.LOCATOR_MAX - 4))))


def wire_exprs(
    *, mapped: bool = True, limit: int = limits.KEY_SUFFIX_MAX
) -> SearchStrategy[WireExpr]:
    """Without a mapping flag the scope alone says whose table it is."""
    if mapped:
        return st.builds(WireExpr, integers(16), texts(limit), st.sampled_from(Mapping))
    return st.builds(
        lambda scope, suffix: WireExpr(scope, suffix, Mapping(not scope)),
        integers(16),
        texts(limit),
    )


def unknown_exts(known: frozenset[int]) -> SearchStrategy[tuple[UnknownExt, ...]]:
    """Optional extensions that no definition of the message knows."""

    def of(encoding: k.ExtEncoding, body: Any_) -> SearchStrategy[UnknownExt]:
        headers = [encoding | id for id in range(16) if encoding | id not in known]
        return st.builds(UnknownExt, st.sampled_from(headers), body)

    one = st.one_of(
        of(k.ExtEncoding.UNIT, st.none()),
        of(k.ExtEncoding.Z64, integers(64)),
        of(k.ExtEncoding.ZBUF, octets()),
    )
    some = st.lists(one, min_size=1, max_size=3).map(tuple)
    return st.one_of(st.just(()), st.just(()), some)


# Kinds.


@cache
def values(kind: k.Kind[Any] | k.FlaggedKind[Any]) -> Any_:
    """What a field of this kind may hold."""
    for cls in type(kind).__mro__:
        if cls in _KINDS:
            return _KINDS[cls](kind)
    raise TypeError(f"no strategy for {type(kind).__name__}: add one to tests/strategies.py")


_PRIORITIES = st.sampled_from(Priority)

# By the type that the kind's parser makes.
_PARSED: dict[Callable[[int], Any], Any_] = {
    QoS: st.builds(QoS, st.integers(0, 255)),
    QueryableInfo.parse: st.builds(QueryableInfo, st.booleans(), integers(16)),
}


def _parsed(kind: k.ZValue[Any]) -> Any_:
    parse = kind.parse
    if isinstance(parse, type) and issubclass(parse, IntEnum):
        return st.sampled_from(parse)
    return _PARSED[parse]


_KINDS: dict[type, Callable[[Any], Any_]] = {
    k.NonZeroU8: lambda _: integers(8, least=1),
    k.U8: lambda _: integers(8),
    k.U16: lambda _: integers(16),
    k.Z: lambda kind: integers(kind.bits),
    k.ZValue: _parsed,
    k.Optional32: lambda _: integers(32, least=1),
    k.Unit: lambda _: st.just(True),
    k.Bytes: lambda kind: octets(kind.limit),
    k.Text: lambda kind: texts(kind.limit),
    k.Rest: lambda _: octets(),
    k.RestText: lambda kind: texts(kind.limit, kind.least),
    k.PlainZid: lambda _: zids(),
    k.PackedZid: lambda _: zids(),
    k.OptionalPackedZid: lambda _: st.one_of(st.none(), zids()),
    k.Nibble: lambda kind: st.sampled_from(kind.values),
    k.WhatAmIBitmap: lambda _: st.sampled_from(WhatAmI),
    k.EncodingKind: lambda _: encodings(),
    k.LocatorKind: lambda _: locators(),
    k.ResolutionKind: lambda _: st.builds(Resolution, st.integers(0, 15)),
    k.QoSLinkKind: lambda _: st.builds(
        QoSLink,
        st.booleans(),
        st.one_of(st.none(), st.tuples(_PRIORITIES, _PRIORITIES)),
        st.sampled_from([None, False, True]),
    ),
    k.Sequence: lambda kind: st.lists(values(kind.kind), max_size=3).map(tuple),
    k.Repeat: lambda kind: st.tuples(*[values(kind.kind)] * kind.times),
    k.WireExprKind: lambda kind: wire_exprs(mapped=kind.mapping is not None),
    k.WireExprExt: lambda _: wire_exprs(),
    k.Lease: lambda _: st.one_of(integers(64), integers(64).map(lambda seconds: seconds * 1000)),
    k.OamBody: lambda _: st.one_of(st.none(), integers(64), octets()),
    Struct: lambda kind: messages(kind.cls),
    OneOf: lambda kind: st.one_of(*(messages(spec.cls) for spec in kind.specs)),
    LinksKind: lambda _: st.lists(st.builds(Link, integers(64), integers(16)), max_size=3).map(
        tuple
    ),
}


# Messages.


def messages(cls: type[T]) -> SearchStrategy[T]:
    """Any message or struct of a class that can be written."""
    if cls not in _MESSAGES:
        _MESSAGES[cls] = _messages(cls)
    return _MESSAGES[cls]


_MESSAGES: dict[type, Any_] = {}


def _messages(cls: type) -> Any_:
    spec = spec_of(cls)
    known = frozenset(e.header for e in spec.exts)
    fields = {e.name: _field(e, known) for e in spec.fields}
    return st.fixed_dictionaries(fields).map(lambda given: cls(**_without_place(spec, given)))


def _field(e: Plain | BitsField | Ext | Unknown, known: frozenset[int]) -> Any_:
    if isinstance(e, Unknown):
        return unknown_exts(known)
    if isinstance(e, BitsField):
        return st.sampled_from(tuple(e.type) if issubclass(e.type, IntEnum) else (False, True))
    if isinstance(e, Ext) or e.when is not None:
        return st.one_of(st.just(e.default), values(e.kind))
    return values(e.kind)


def _without_place(spec: Spec, given: dict[str, Any]) -> dict[str, Any]:
    """A flag word that is not sent, as the options of a final INTEREST, leaves its fields alone."""
    gate = next((e.when for e in spec.elements if isinstance(e, Word) and e.when), None)
    bits = [e for e in spec.fields if isinstance(e, BitsField)]
    if gate is None or any(given[e.name] for e in bits if e.bits is gate):
        return given
    defaults = {e.name: e.default for e in bits if e.bits.word}
    plain = [e for e in spec.fields if isinstance(e, Plain)]
    defaults |= {e.name: e.default for e in plain if e.when and e.when.word}
    return given | defaults


def any_of(scope: str) -> SearchStrategy[Any]:
    """Any message of a scope."""
    return st.one_of(*(messages(s.cls) for s in define.messages(scope)))


def batch(max_size: int = 4) -> SearchStrategy[list[BatchMessage]]:
    """Messages in an order that a batch may have.

    A FRAME is followed by its network messages; a FRAGMENT takes all the rest, and nothing is
    read after a CLOSE, so these come last; INIT and OPEN are alone.
    """
    handshake = {"INIT", "OPEN"}
    alone = st.one_of(
        *(messages(s.cls) for s in define.messages("transport") if s.name in handshake)
    ).map(lambda message: [message])
    network: SearchStrategy[list[NetworkMessage]] = st.lists(any_of("network"), max_size=3)
    framed = st.builds(lambda frame, inside: [frame, *inside], messages(Frame), network)
    single = st.one_of(messages(KeepAlive), messages(TransportOam), messages(Join)).map(
        lambda message: [message]
    )
    body = st.lists(st.one_of(framed, framed, single), max_size=max_size).map(
        lambda parts: [message for part in parts for message in part]
    )
    last = st.one_of(messages(Fragment), messages(Close)).map(lambda message: [message])
    run = st.builds(lambda body, last: body + last, body, st.one_of(st.just([]), st.just([]), last))
    return st.one_of(run, run, run, run, alone)


# Bytes.


def encoded(cls: type) -> SearchStrategy[bytes]:
    return messages(cls).map(encode)


def _cut(data: bytes, draw: Any) -> bytes:
    return data[: draw(st.integers(0, len(data)))]


def _extended(data: bytes, draw: Any) -> bytes:
    return data + draw(st.binary(min_size=1, max_size=8))


def _flipped(data: bytes, draw: Any) -> bytes:
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        if out:
            out[draw(st.integers(0, min(len(out), 4096) - 1))] ^= draw(st.integers(1, 255))
    return bytes(out)


def _span(data: bytes, draw: Any) -> tuple[int, int]:
    start = draw(st.integers(0, len(data)))
    return start, min(len(data), start + draw(st.integers(1, 16)))


def _doubled(data: bytes, draw: Any) -> bytes:
    start, end = _span(data, draw)
    return data[:end] + data[start:]


def _dropped(data: bytes, draw: Any) -> bytes:
    start, end = _span(data, draw)
    return data[:start] + data[end:]


def _overlong(data: bytes, draw: Any) -> bytes:
    """A byte becomes a longer spelling of the same number, if it was one."""
    at = draw(st.integers(0, len(data)))
    if at == len(data) or data[at] >= 0x80:
        return data
    zeros = draw(st.integers(0, 7))
    longer = bytes([data[at] | 0x80]) + b"\x80" * zeros + b"\0"
    return data[:at] + longer + data[at + 1 :]


def _huge(data: bytes, draw: Any) -> bytes:
    """A number that is not there, or a length that nothing has."""
    at = draw(st.integers(0, len(data)))
    number = draw(st.sampled_from([b"\xff" * 9, b"\xff\xff\xff\xff\x0f", b"\x80" * 8 + b"\x80"]))
    return data[:at] + number + data[at + draw(st.integers(0, 1)) :]


_MUTILATIONS = (
    _cut,
    _extended,
    _flipped,
    _flipped,
    _doubled,
    _dropped,
    _overlong,
    _overlong,
    _huge,
)


@st.composite
def mutilated(draw: st.DrawFn, source: bytes | SearchStrategy[bytes]) -> bytes:
    """Bytes that were cut, extended, changed, repeated or spelled otherwise in some places."""
    data = source if isinstance(source, bytes) else draw(source)
    for _ in range(draw(st.integers(1, 2))):
        data = draw(st.sampled_from(_MUTILATIONS))(data, draw)
    return data
