"""The definitions as a table of integers: what the interpreter kernel (``kernels.run``) runs.

One instruction is a row ``op, a, b, slot, bit, form, to``. Everything that the object codec does
with a kind is an instruction or a few; a fact such as a limit goes into ``a`` and ``b``, the
column that takes the value into ``slot``, ``bit`` and ``form``, a jump into ``to``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from zenwire.columns.layout import (
    NETWORK,
    TRANSPORT,
    Form,
    Layout,
    column_names,
    is_opaque,
    join_name,
)
from zenwire.errors import Fault
from zenwire.wire import kinds as k
from zenwire.wire import limits
from zenwire.wire.define import BitsField, Ext, Plain, Spec, Unknown, Word, messages, spec_of
from zenwire.wire.objects import OneOf, Struct

__all__ = ["NONE", "Op", "Program", "Store", "compile_program"]

NONE: Final = 2**64 - 1
"""No column, no jump: the table is unsigned."""


class Op(IntEnum):
    """What an instruction does. ``p`` is the position, ``v`` the last integer, ``h`` the header."""

    END = 0
    Z = 1
    """A VLE; above ``a`` is fault ``b`` where it starts. So are the lengths of the next three."""
    SPAN = 2
    """A length, and the bytes."""
    TEXT = 3
    """A length, and UTF-8."""
    PLAIN_ZID = 4
    """A length, and a ZenohID."""
    KEEP = 5
    """``v &= a``; above ``b`` is INVALID where it started, or becomes ``to`` if there is one."""
    QOS_LINK = 6
    """Priorities in ``v`` above 7 are INVALID where it started."""
    U8 = 7
    """A byte; ``a``: it must not be 0."""
    OPTIONS = 8
    """A byte into the second flag word."""
    PACKED_ZID = 9
    """A byte with a length in its high half, and a ZenohID; the low half is kept."""
    NIBBLE = 10
    """The low two bits of what was kept are below ``a``."""
    REST = 11
    """All bytes to the bound."""
    REST_TEXT = 12
    """UTF-8 to the bound, of ``b`` to ``a`` bytes."""
    SPAN_TO_END = 13
    """A span that reaches to the bound; the position stays."""
    MARK = 14
    """A column without a value is there."""
    MARK_IF = 15
    """The same if a bit of ``a`` is set in flag word ``b``."""
    MARK_ZERO = 16
    """The same if ``v`` is 0."""
    BITS = 17
    """Bits ``a`` of the header, shifted by ``b``, are a value."""
    IF = 18
    """Go on if a bit of ``a`` is set in flag word ``b``, else to ``to``."""
    IF_ODD = 19
    """Go on if ``v`` is odd, else to ``to``."""
    CASE = 20
    """Go on if ``h & a == b``, else to ``to``."""
    CHAIN = 21
    """Extensions; ``a``: announced by the Z flag. ``b`` entries follow; then on at ``to``."""
    EXT_END = 22
    """Back to the CHAIN at ``to``."""
    ONE_OF = 23
    """A sub-message of ``b`` entries; its header becomes ``h``."""
    ENTRY = 24
    """``a`` is a header of CHAIN or an id of ONE_OF, whose reading is at ``to``.

    ``b``: the bits of an extension's columns, or whether a sub-message carries no other.
    """
    TIMES = 25
    """What follows is done ``a`` times, or ``v`` times if ``a`` is NONE."""
    TIMES_END = 26
    """Back to ``to`` until it is done."""
    FAIL = 27
    """Fault ``a`` at the position."""


class Store(IntEnum):
    """How a value goes into its column."""

    NOT = 0
    INT32 = 1
    UINT64 = 2
    INT32_NOT_ZERO = 3
    HALF = 4
    """``v >> 1``, into the int32 array."""


@dataclass
class Program:
    """``rows`` for all messages of both tables; ``entry`` finds one by its header byte."""

    rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    network: list[int] = field(default_factory=lambda: [NONE] * 256)
    transport: list[int] = field(default_factory=lambda: [NONE] * 256)


def compile_program() -> Program:
    """The whole protocol."""
    program = Program()
    for spec in messages("network"):
        _enter(program.network, spec, _Compiler(program.rows, NETWORK).message(spec))
    with_columns = {spec.cls for spec in TRANSPORT.specs}
    for spec in messages("transport"):
        compiler = _Compiler(program.rows, TRANSPORT, store=spec.cls in with_columns)
        _enter(program.transport, spec, compiler.message(spec))
    return program


def _enter(table: list[int], spec: Spec, start: int) -> None:
    for header in range(256):
        if spec.matches(header):
            table[header] = start


class _Compiler:
    """Appends one message's instructions to ``rows``."""

    def __init__(
        self,
        rows: list[tuple[int, int, int, int, int, int, int]],
        layout: Layout,
        *,
        store: bool = True,
    ) -> None:
        self.rows = rows
        self.layout = layout
        self.store = store

    def message(self, spec: Spec) -> int:
        start = len(self.rows)
        self.elements(spec)
        self.add(Op.END)
        return start

    def add(self, op: Op, a: int = 0, b: int = 0, column: str = "", *, to: int = NONE) -> int:
        """One instruction; gives its place, so that a jump can be filled in later."""
        slot = bit = NONE
        form = Store.NOT
        if column and self.store:
            found = self.layout.columns[column]
            slot, bit = found.slot, found.bit
            form = Store.UINT64 if found.form is Form.UINT64 else Store.INT32
        self.rows.append((op, a, b, slot, bit, form, to))
        return len(self.rows) - 1

    def store_as(self, at: int, form: Store) -> None:
        row = self.rows[at]
        if row[5] != Store.NOT:
            self.rows[at] = (*row[:5], form, row[6])

    def land(self, at: int) -> None:
        """The jump of instruction ``at`` leads here."""
        row = self.rows[at]
        self.rows[at] = (*row[:6], len(self.rows))

    # --- elements ----------------------------------------------------------------------

    def elements(self, spec: Spec, prefix: str = "") -> None:
        chained = False
        for e in spec.elements:
            if isinstance(e, Ext | Unknown):
                if not chained:
                    self.chain(spec)
                chained = True
            elif isinstance(e, BitsField):
                if e.type is bool:
                    self.add(Op.MARK_IF, e.bits.mask, e.bits.word, e.name)
                else:
                    self.add(Op.BITS, e.bits.mask, e.bits.shift, e.name)
            else:
                skip = self.add(Op.IF, e.when.mask, e.when.word) if e.when else None
                if isinstance(e, Word):
                    self.add(Op.OPTIONS)
                else:
                    self.kind(e.kind, join_name(prefix, e.column))
                if skip is not None:
                    self.land(skip)
        if spec.scope and not chained:
            # No extension of this message is known, but any message may announce some.
            self.chain(spec)

    def chain(self, spec: Spec) -> None:
        keep = next((e.name for e in spec.elements if isinstance(e, Unknown)), "")
        head = self.add(Op.CHAIN, bool(spec.scope), len(spec.exts), keep)
        entries = [self.add(Op.ENTRY, e.header, self._bits(e)) for e in spec.exts]
        for e, entry in zip(spec.exts, entries, strict=True):
            self.land(entry)
            self.kind(e.kind, e.column)
            self.add(Op.EXT_END, to=head)
        self.land(head)

    def _bits(self, e: Ext) -> int:
        """The columns of an extension. The last one wins, so they are cleared when it begins."""
        if not self.store:
            return 0
        names = column_names(e.kind, e.column)
        return sum(1 << self.layout.columns[name].bit for name in names)

    def one_of(self, kind: OneOf[Any]) -> None:
        self.add(Op.ONE_OF, b=len(kind.specs))
        entries = [self.add(Op.ENTRY, spec.id, _is_leaf(spec)) for spec in kind.specs]
        for spec, entry in zip(kind.specs, entries, strict=True):
            self.land(entry)
            self.elements(spec)
            self.add(Op.END)

    # --- kinds -------------------------------------------------------------------------

    def kind(self, kind: k.Kind[Any] | k.FlaggedKind[Any], name: str) -> None:  # noqa: PLR0912, PLR0915 # one case per kind
        match kind:
            case OneOf():
                self.one_of(kind)
            case k.NonZeroU8():
                self.add(Op.U8, 1, 0, name)
            case k.U8() | k.ResolutionKind():
                self.add(Op.U8, 0, 0, name)
            case k.U16():
                self.add(Op.U8)
                self.add(Op.U8)
            case k.Z():
                self.add(Op.Z, 2**kind.bits - 1, Fault.OVERFLOW, name)
            case k.Optional32():
                at = self.add(Op.Z, 2**32 - 1, Fault.OVERFLOW, name)
                self.store_as(at, Store.INT32_NOT_ZERO)
            case k.ZValue():
                self.add(Op.Z, 2**64 - 1)
                otherwise = NONE if kind.otherwise is None else int(kind.otherwise)
                self.add(Op.KEEP, kind.keep, kind.top, name, to=otherwise)
            case k.QoSLinkKind():
                self.add(Op.Z, 2**64 - 1)
                self.add(Op.QOS_LINK)
            case k.Lease():
                self.add(Op.Z, 2**64 - 1)
            case k.Unit():
                self.add(Op.MARK, column=name)
            case k.Bytes():
                self.add(Op.SPAN, kind.limit, Fault.LIMIT, name)
            case k.Text():
                self.add(Op.TEXT, kind.limit, Fault.LIMIT, name)
            case k.Rest():
                self.add(Op.REST, column=name)
            case k.RestText():
                self.add(Op.REST_TEXT, kind.limit, kind.least, name)
            case k.PlainZid():
                self.add(Op.PLAIN_ZID, limits.ZID_MAX, Fault.LIMIT, name)
            case k.PackedZid():
                self.add(Op.PACKED_ZID, column=name)
            case k.Nibble():
                self.add(Op.NIBBLE, len(kind.values))
            case k.EncodingKind():
                at = self.add(Op.Z, 2**kind.bits - 1, Fault.OVERFLOW, name)
                self.store_as(at, Store.HALF)
                skip = self.add(Op.IF_ODD)
                self.kind(k.schema, join_name(name, "schema"))
                self.land(skip)
            case k.WireExprKind():
                self._wire_expr(kind, name)
            case k.WireExprExt():
                self.add(Op.OPTIONS)
                self.kind(k.z16, join_name(name, "scope"))
                skip = self.add(Op.IF, 1, 1)
                self.kind(k.rest_suffix, join_name(name, "suffix"))
                self.land(skip)
                self.add(Op.MARK_IF, 2, 1, join_name(name, "mapping"))
            case k.OamBody():
                self._oam_body(kind, name)
            case k.Sequence():
                self.add(Op.Z, kind.limit, Fault.LIMIT)
                self._times(NONE, kind.kind, name)
            case k.Repeat():
                self._times(kind.times, kind.kind, name)
            case Struct() if is_opaque(kind) and self.store:
                self.add(Op.SPAN_TO_END, column=name)
                self.store = False
                self.elements(spec_of(kind.cls), name)
                self.store = True
            case Struct():
                self.elements(spec_of(kind.cls), name)
            case _:
                raise TypeError(f"no instruction for {type(kind).__name__}")

    def _wire_expr(self, kind: k.WireExprKind, name: str) -> None:
        self.kind(k.z16, join_name(name, "scope"))
        mapping = join_name(name, "mapping")
        if kind.mapping is None:
            # Without an M flag only scope 0 is the sender's: see WireExprKind.
            self.add(Op.MARK_ZERO, column=mapping)
        skip = self.add(Op.IF, kind.named.mask, kind.named.word)
        self.kind(k.key_suffix, join_name(name, "suffix"))
        self.land(skip)
        if kind.mapping is not None:
            self.add(Op.MARK_IF, kind.mapping.mask, kind.mapping.word, mapping)

    def _oam_body(self, kind: k.OamBody, name: str) -> None:
        skip = self.add(Op.CASE, kind.mask, k.ExtEncoding.Z64)
        self.kind(k.z64, join_name(name, "value"))
        self.land(skip)
        skip = self.add(Op.CASE, kind.mask, k.ExtEncoding.ZBUF)
        self.kind(k.payload, join_name(name, "body"))
        self.land(skip)
        skip = self.add(Op.CASE, kind.mask, kind.mask)
        self.add(Op.FAIL, Fault.RESERVED_ENCODING)
        self.land(skip)

    def _times(self, times: int, kind: k.Kind[Any], name: str) -> None:
        head = self.add(Op.TIMES, times)
        self.kind(kind, name)
        self.land(head)
        self.add(Op.TIMES_END, to=head + 1)


def _is_leaf(spec: Spec) -> bool:
    """A sub-message that carries no other."""
    return not any(isinstance(e, Plain) and isinstance(e.kind, OneOf) for e in spec.elements)
