"""Prints the writer of publications: rows of PUSH to batches.

The counterpart of the reading in place: it writes what ``zenwire.columns.emit_scan`` reads there.
"""

from __future__ import annotations

from typing import Any, Final

from zenwire.columns.emit import COMMON, Printer
from zenwire.columns.layout import NETWORK, Form, column_names, join_name
from zenwire.wire import kinds as k
from zenwire.wire.data import Del, Put
from zenwire.wire.define import Ext, Plain, Spec, Unknown, spec_of
from zenwire.wire.network import Push
from zenwire.wire.objects import OneOf, Struct
from zenwire.wire.transport import Frame

__all__ = ["COLUMNS", "SPANS", "write_source"]


def _columns() -> tuple[str, ...]:
    names: list[str] = []
    for spec in (spec_of(Push), spec_of(Put), spec_of(Del)):
        for e in spec.elements:
            if isinstance(e, Plain) or (isinstance(e, Ext) and e.name in COMMON[spec.cls]):
                names += [name for name in column_names(e.kind, e.column) if name not in names]
    return tuple(names)


COLUMNS: Final = _columns()
"""The columns of NETWORK that publications are made of."""
SPANS: Final = tuple(name for name in COLUMNS if NETWORK.columns[name].form is Form.SPAN)
"""Those that are bytes: each has a buffer of its own."""


class _Writing(Printer):
    """Prints the writing of row ``i``. ``pr`` is its presence word, ``q`` the place in ``out``."""

    def has(self, name: str) -> str:
        """An expression: the row has this column, with a value that is sent."""
        default = NETWORK.columns[name].default
        if default is None:
            return f"pr & NB_{name}"
        sent = f"{self.value(name)} != {default}"
        if name == "encoding":
            sent = f"({sent} or pr & NB_encoding_schema)"
        return f"(pr & NB_{name} and {sent})"

    def value(self, name: str) -> str:
        table = "t" if NETWORK.columns[name].form is Form.UINT64 else "c"
        return f"{table}[N_{name}, i]"

    def z(self, value: str) -> None:
        self(f"v = {value}")
        with self.block("if v <= LOW_7:"):
            self("out[q] = v")
            self("q += ONE")
        with self.block("else:"):
            self("q = put_vle(out, q, v)")

    def number(self, name: str) -> None:
        column = NETWORK.columns[name]
        value = self.value(name)
        if column.form is Form.INT32:
            value = f"U({value}) & LOW_32" if column.wide else f"U({value})"
        self.z(value)

    def bytes(self, name: str, *, sized: bool = True) -> None:
        self(f"n = U(c[N_{name}_size, i])")
        if sized:
            self.z("n")
        self(f"q = put_bytes(out, q, {name}, U(c[N_{name}, i]), n)")

    def kind(self, kind: k.Kind[Any] | k.FlaggedKind[Any], name: str) -> None:
        match kind:
            case k.Z() | k.ZValue():
                self.number(name)
            case k.Bytes() | k.Text() | k.PlainZid():
                self.bytes(name)
            case k.PackedZid():
                self(f"out[q] = (c[N_{name}_size, i] - 1) << 4")
                self("q += ONE")
                self.bytes(name, sized=False)
            case k.EncodingKind():
                schema = join_name(name, "schema")
                self(f"odd = ONE if pr & NB_{schema} else ZERO")
                self(f"q = put_vle(out, q, U({self.value(name)}) << ONE | odd)")
                with self.block("if odd:"):
                    self.bytes(schema)
            case k.WireExprKind():
                self.number(join_name(name, "scope"))
                suffix = join_name(name, "suffix")
                with self.block(f"if {self.has(suffix)}:"):
                    self.bytes(suffix)
            case OneOf():
                self.one_of(kind)
            case Struct():
                for e in spec_of(kind.cls).elements:
                    assert isinstance(e, Plain)
                    self.kind(e.kind, join_name(name, e.column))
            case _:
                raise TypeError(f"no writing for {type(kind).__name__}")

    def message(self, spec: Spec) -> None:
        exts = [e for e in spec.exts if e.name in COMMON[spec.cls]]
        fields = [e for e in spec.elements if isinstance(e, Plain)]
        self(f"h = np.uint64({spec.id:#04x})  # {spec.name}")
        if exts:
            any_ext = " or ".join(self.has(column_names(x.kind, x.column)[0]) for x in exts)
            with self.block(f"if {any_ext}:"):
                self("h |= HIGH_BIT")
        for field in fields:
            self.flags(field)
        self("out[q] = h")
        self("q += ONE")
        chained = False
        for e in spec.elements:
            if isinstance(e, Plain) and e.when is not None:
                with self.block(f"if h & np.uint64({e.when.mask:#x}):"):
                    self.kind(e.kind, e.column)
            elif isinstance(e, Plain):
                self.kind(e.kind, e.column)
            elif isinstance(e, Ext | Unknown) and not chained:
                self.chain(exts)
                chained = True

    def flags(self, e: Plain) -> None:
        """Header bits that say what is there."""
        if e.when is not None:
            with self.block(f"if {self.has(column_names(e.kind, e.column)[0])}:"):
                self(f"h |= np.uint64({e.when.mask:#x})")
        if isinstance(e.kind, k.WireExprKind) and e.kind.mapping is not None:
            for part, mask in (("suffix", e.kind.named.mask), ("mapping", e.kind.mapping.mask)):
                with self.block(f"if {self.has(join_name(e.column, part))}:"):
                    self(f"h |= np.uint64({mask:#x})")

    def chain(self, exts: list[Ext]) -> None:
        """Each extension, with the Z bit if another one follows."""
        for i, e in enumerate(exts):
            with self.block(f"if {self.has(column_names(e.kind, e.column)[0])}:"):
                later = [self.has(column_names(x.kind, x.column)[0]) for x in exts[i + 1 :]]
                more = f" | (0x80 if {' or '.join(later)} else 0)" if later else ""
                self(f"out[q] = {e.header:#04x}{more}  # {e.name}")
                self("q += ONE")
                if isinstance(e.kind, k.Rest):
                    self.bytes(e.column)
                elif e.kind.encoding is k.ExtEncoding.ZBUF:
                    # Ids and numbers: far below 128 bytes, so the length is one byte.
                    self("length_at = q")
                    self("q += ONE")
                    self.kind(e.kind, e.column)
                    self("out[length_at] = q - length_at - ONE")
                else:
                    self.kind(e.kind, e.column)

    def one_of(self, kind: OneOf[Any]) -> None:
        branch = "if"
        for spec in kind.specs:
            with self.block(f"{branch} (pr >> BITS_48) & BYTE == np.uint64({spec.id}):"):
                self.message(spec)
            branch = "elif"


def write_source() -> str:
    """The signature WRITE and the function ``write``."""
    out = _Writing()
    frame = spec_of(Frame)
    buffers = ", ".join("BYTES" for _ in SPANS)
    out(
        f"WRITE = U(TABLE32, TABLE64, UINT64, U, {buffers}, U, U, U, U, OUT, INT32_OUT, UINT64, UINT64)"
    )
    out("")
    out("")
    out("@kernel(WRITE)")
    spans = ", ".join(SPANS)
    out(
        f"def write(c, t, present, rows, {spans}, reliable, prefix, limit, mask, out, ends, sns, st):"
    )
    out.depth = 1
    out(_HEAD)
    out.depth = 2
    for name in SPANS:
        with out.block(f"if {out.has(name)}:"):
            out(f"need += U(c[N_{name}_size, i])")
    qos = NETWORK.columns["qos"]
    out(f"qos = c[N_qos, i] if pr & NB_qos else {qos.default}")
    out(
        _FRAME.format(
            header=f"{frame.id:#04x}",
            reliable=f"{Frame.R.mask:#04x}",
            default=qos.default,
            ext=f"{frame.exts[0].header:#04x}",
        )
    )
    out.message(spec_of(Push))
    out(_TAIL)
    out.depth = 1
    out(_END)
    return out.source


_HEAD = '''
"""Rows ``st[0]`` up to ``rows`` as batches, one after the other, from ``out[0]`` on.

``limit`` bounds a batch without its ``prefix``. ``sns`` has the next sequence number of each
priority, and counts up within ``mask``. ``ends[k]`` is where batch ``k`` ends. Stops when
``out`` or ``ends`` is full, or (``st[2]`` = 1) at a row that is too large for any batch.
``st``: next row, batches, whether too large. Gives the number of bytes.
"""
i = st[0]
q = ZERO
k = ZERO
begin = NONE
lane = -1
room = U(len(out)) - SIXTY_FOUR
batches = U(len(ends))
st[2] = ZERO
while i < rows:
    pr = present[i]
    # More than all ids and numbers of a message and the head of a batch take.
    need = ROOM
'''

_FRAME = """
if need - ROOM > limit:
    st[2] = ONE
    break
if q + need > room or k + TWO > batches:
    break
undo = q
same = begin != NONE and qos & 7 == lane
if begin == NONE:
    begin = q
    q += prefix
if not same:
    lane = qos & 7
    out[q] = {header} | ({reliable} if reliable else 0) | (0x80 if lane != {default} else 0)
    q = put_vle(out, q + ONE, sns[lane])
    if lane != {default}:
        out[q] = {ext}
        out[q + ONE] = lane
        q += TWO
"""

_TAIL = """
if q - begin - prefix > limit:
    # It goes into a batch of its own, or is too large for one.
    q = undo
    lane = -1
    if undo == begin:
        begin = NONE
        st[2] = ONE
        break
    put_length(out, begin, prefix, q)
    ends[k] = q
    k += ONE
    begin = NONE
    continue
if not same:
    sns[lane] = (sns[lane] + ONE) & mask
i += ONE
if qos & 0x10:
    # Express: nothing waits behind it.
    put_length(out, begin, prefix, q)
    ends[k] = q
    k += ONE
    begin = NONE
"""

_END = """
if begin != NONE:
    put_length(out, begin, prefix, q)
    ends[k] = q
    k += ONE
st[0] = i
st[1] = k
return q
"""
