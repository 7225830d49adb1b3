"""Bit diagrams of messages, in the style of the specification, made from the definitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any

from zenwire.wire import kinds as k
from zenwire.wire import limits
from zenwire.wire.define import BitsField, Element, Ext, Plain, Spec, Unknown, Word, spec_of
from zenwire.wire.objects import OneOf

__all__ = [
    "AnyKind",
    "condition",
    "diagram",
    "flag_name",
    "flags_of",
    "hex_byte",
    "kind_label",
    "title",
    "word_name",
]

AnyKind = k.Kind[Any] | k.FlaggedKind[Any]  # Any: whatever the field holds

_RULER = " 7 6 5 4 3 2 1 0\n+-+-+-+-+-+-+-+-+"
_ID_WIDTH = 5


def title(spec: Spec) -> str:
    """The name, and the class where two messages share it."""
    return f"{spec.name} ({spec.cls.__name__})" if spec.variant[0] else spec.name


def hex_byte(value: int) -> str:
    """As the specification writes ids."""
    return f"0x{value:02X}"


def flags_of(spec: Spec, word: int = 0) -> dict[str, k.Bits]:
    """The bits of the header, or of the additional flag word, by name; the highest first.

    A bit that nothing but a field refers to has the field's name.
    """
    return _flags_of(spec.cls, word)


@cache
def _flags_of(cls: type, word: int) -> dict[str, k.Bits]:
    spec = spec_of(cls)
    named = {n: b for n, b in vars(cls).items() if isinstance(b, k.Bits) and b.word == word}
    taken = {(b.shift, b.width) for b in named.values()}
    of_word = [e for e in spec.elements if isinstance(e, BitsField) and e.bits.word == word]
    named |= {e.name: e.bits for e in of_word if (e.bits.shift, e.bits.width) not in taken}
    if word == 0 and spec.scope:
        named["Z"] = k.Bits(7)
    return dict(sorted(named.items(), key=lambda item: -item[1].shift))


@dataclasses.dataclass(frozen=True)
class _Row:
    """A line of a diagram. ``edge`` is ``|`` for bytes, ``%`` for a VLE integer, ``~`` for any length."""

    edge: str
    text: str
    note: str = ""
    below: str = "+---------------+"

    def lines(self) -> Iterator[str]:
        yield f"{self.edge}{self.text:^15}{self.edge}   {self.note}".rstrip()
        yield self.below


def _cells(parts: list[tuple[str, int]], note: str) -> _Row:
    """A byte by its bits: (text, bits) from the highest."""
    text = "|".join(f"{text:^{2 * bits - 1}}" for text, bits in parts)
    below = "+".join("-" * (2 * bits - 1) for _, bits in parts)
    return _Row("|", text, note, f"+{below}+")


def diagram(spec: Spec) -> str:
    """The bytes of a message or struct, in the style of the specification."""
    lines = [_RULER]
    for row in _spec_rows(spec):
        lines += row.lines()
    return "\n".join(lines)


def _spec_rows(spec: Spec) -> Iterator[_Row]:
    if spec.scope:
        yield _header_row(spec)
    chained = False
    for at, e in enumerate(spec.elements):
        if isinstance(e, Word):
            yield _word_row(spec, e)
        elif isinstance(e, Plain):
            following = spec.elements[at + 1] if at + 1 < len(spec.elements) else None
            yield from _Field(spec, e, following).rows()
        elif isinstance(e, Ext | Unknown) and not chained:
            chained = True
            yield _chain_row(spec)
    if spec.scope and not chained:
        yield _chain_row(spec)


def _header_row(spec: Spec) -> _Row:
    mask, value = spec.variant
    parts = _bit_parts(flags_of(spec), 7, _ID_WIDTH, (mask, value))
    fits = len(spec.name) <= 2 * _ID_WIDTH - 1
    parts.append((spec.name if fits else hex_byte(spec.id), _ID_WIDTH))
    return _cells(parts, f"ID = {hex_byte(spec.id)}" if fits else spec.name)


def _bit_parts(
    flags: dict[str, k.Bits], top: int, bottom: int, fixed: tuple[int, int] = (0, 0)
) -> list[tuple[str, int]]:
    """Bits ``top`` to ``bottom``: flags by name, ``fixed`` ones as 0 or 1, the others X."""
    by_top = {b.shift + b.width - 1: (name, b) for name, b in flags.items()}
    parts: list[tuple[str, int]] = []
    bit = top
    while bit >= bottom:
        name, bits = by_top.get(bit, ("X", k.Bits(bit)))
        if name == "X" and fixed[0] >> bit & 1:
            name = str(fixed[1] >> bit & 1)
        parts.append((_short(name, bits.width), bits.width))
        bit -= bits.width
    return parts


def _short(name: str, bits: int) -> str:
    """A name that fits its bits: WhatAmI is WAI, subscribers is S."""
    if len(name) <= 2 * bits - 1:
        return name
    capitals = "".join(c for c in name if c.isupper()) or name.upper()
    return capitals[: 2 * bits - 1]


def _word_row(spec: Spec, e: Word) -> _Row:
    flags = flags_of(spec, word=1)
    when = condition(spec, e.when)
    if e.kind is k.u8:
        told = [f"{_short(n, 1)} = {n}" for n in flags if n != _short(n, 1)]
        return _cells(_bit_parts(flags, 7, 0), when + ", ".join(told))
    listed = ", ".join(f"bit {b.shift} {n}" for n, b in reversed(flags.items()))
    return _Row("%", word_name(spec), f"{when}{e.kind.label}: {listed}")


def word_name(spec: Spec) -> str:
    """The name of the additional flag word."""
    return next(n.lower() for n, v in vars(spec.cls).items() if isinstance(v, Word))


def _chain_row(spec: Spec) -> _Row:
    known = ", ".join(e.name for e in spec.exts)
    if not spec.scope:
        return _Row("~", "[exts]", f"to the end: {known}")
    name = f"[{spec.name.lower()}_exts]"
    return _Row("~", name if len(name) <= 15 else "[exts]", f"if Z==1{known and ': ' + known}")


def condition(spec: Spec, *bits: k.Bits | None) -> str:
    """``if N==1: ``, or nothing where there is no condition."""
    tests = [f"{flag_name(spec, b)}{'==1' if b.width == 1 else '!=0'}" for b in bits if b]
    return f"if {' && '.join(tests)}: " if tests else ""


def flag_name(spec: Spec, bits: k.Bits) -> str:
    """The name of some bits of the definition."""
    return next(n for n, b in flags_of(spec, bits.word).items() if b.mask == bits.mask)


def _z(limit: int) -> str:
    """The integer of a length that goes up to ``limit``."""
    return next((f"z{n}" for n in (8, 16, 32) if limit == 2**n - 1), "z")


@dataclasses.dataclass(frozen=True)
class _Field:
    """One field of a definition, and what follows it: some share a byte."""

    spec: Spec
    element: Plain
    following: Element | None

    def rows(self) -> list[_Row]:
        name, kind = self.element.name, self.element.kind
        when = condition(self.spec, self.element.when)
        match kind:
            case k.PackedZid() | k.OptionalPackedZid():
                return self._packed()
            case k.Nibble():
                return []
            case k.ResolutionKind():
                parts = [("X", 1)] * 4 + [("RID", 2), ("FSN", 2)]
                return [_cells(parts, f"{when}{name}: request ids, sequence numbers")]
            case k.U16():
                low = _Row("|", name, f"{when}{kind.label}", "+-             -+")
                return [low, _Row("|", "")]
            case k.U8() | k.WhatAmIBitmap():
                return [_Row("|", name, f"{when}{kind.label}")]
            case k.Z() | k.ZValue():
                return [_typed("%", name, kind.label, when)]
            case k.EncodingKind():
                schema = f"{when[:-2]} && S==1: " if when else "if S==1: "
                return [
                    _Row("%", f"{name}_id", f"{when}id << 1 | S"),
                    _Row("~", "schema", f"{schema}<u8;{_z(limits.SCHEMA_MAX)}>"),
                ]
            case k.WireExprKind():
                suffix = condition(self.spec, self.element.when, kind.named)
                return [
                    _typed("%", f"{name}_scope", "z16", when),
                    _Row("~", f"{name}_suffix", f"{suffix}<utf8;{_z(limits.KEY_SUFFIX_MAX)}>"),
                ]
            case k.Lease():
                unit = f"in seconds if {flag_name(self.spec, kind.seconds)}==1, else milliseconds"
                return [_Row("%", name, f"{when}{unit}")]
            case k.Sequence():
                count = _Row("%", f"n_{name}", f"{when}z")
                return [count, _Row("~", name, f"{when}n x {kind_label(kind.kind)}")]
            case k.Bytes() | k.Text():
                return [_typed("~", name, kind_label(kind), when)]
            case k.FlaggedKind():
                names = [n for n, b in flags_of(self.spec, kind.word).items() if b.mask & kind.mask]
                return [_Row("~", name, f"{when}as {', '.join(names)} says: {kind.label}")]
        return [_Row("~", name, f"{when}{kind_label(kind)}")]

    def _packed(self) -> list[_Row]:
        """A ZenohID whose first byte has room for another field."""
        name = self.element.name
        flags: dict[str, k.Bits] = {}
        note, when = "", condition(self.spec, self.element.when)
        follows = when
        if isinstance(self.element.kind, k.OptionalPackedZid):
            flags["I"] = k.Bits(3)
            follows = "if I==1: "
        if isinstance(self.following, Plain) and isinstance(self.following.kind, k.Nibble):
            kind = self.following.kind
            flags[kind.label] = k.Bits(0, 2 if len(kind.values) <= 4 else 3)
            note = f"{_short(kind.label, flags[kind.label].width)} = {self.following.name}"
        parts = [(f"{name}_len", 4), *_bit_parts(flags, 3, 0)]
        return [
            _cells(parts, when + note),
            _Row("~", name, f"{follows}ZenohID, 1 + {name}_len bytes"),
        ]


def _typed(edge: str, name: str, label: str, when: str) -> _Row:
    """``name:type`` in the box, or the type beside it where that is too narrow."""
    both = f"{name}:{label}"
    return _Row(edge, both, when[:-2]) if len(both) <= 15 else _Row(edge, name, when + label)


def kind_label(kind: AnyKind) -> str:
    """A kind in a few words."""
    match kind:
        case k.Bytes():
            return f"<u8;{_z(kind.limit)}>"
        case k.Text():
            return f"<utf8;{_z(kind.limit)}>"
        case k.Sequence():
            return f"z n, n x {kind_label(kind.kind)}"
        case k.Repeat():
            return f"{kind.times} x {kind_label(kind.kind)}"
        case OneOf() if len(kind.specs) > 3:
            return f"any {kind.specs[0].scope} message"
    return kind.label
