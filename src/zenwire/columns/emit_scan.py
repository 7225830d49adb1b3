"""Prints the scan loop: FRAME and PUSH read in place, everything else by the interpreter.

What is read in place is what a stream of data consists of, in its sound form. At the first
thing that is not in ``COMMON`` or not right, the message is left to the interpreter from its
start: so there is one place that knows faults, and this one is fast.
"""

from __future__ import annotations

from typing import Any

from zenwire.columns.emit import COMMON, Printer
from zenwire.columns.layout import (
    BODY_SHIFT,
    MESSAGE_SHIFT,
    NETWORK,
    TRANSPORT,
    Form,
    Layout,
    join_name,
)
from zenwire.wire import kinds as k
from zenwire.wire import limits
from zenwire.wire.batch import NETWORK_ID_MIN
from zenwire.wire.define import BitsField, Ext, Plain, Spec, Unknown, spec_of
from zenwire.wire.network import Push
from zenwire.wire.objects import OneOf, Struct
from zenwire.wire.transport import Close, Frame, KeepAlive

__all__ = ["scan_source"]


class _Reading(Printer):
    """Prints the reading of one message into a table. ``bound`` is the variable that ends it."""

    def __init__(self, printer: Printer, layout: Layout) -> None:
        super().__init__()
        self.lines = printer.lines
        self.depth = printer.depth
        self.layout = layout
        self.name, self.table, self.row = ("N", "", "r") if layout is NETWORK else ("T", "t", "w")
        self.bound = "be"
        self.loops = 0

    def leave_if(self, condition: str) -> None:
        with self.block(f"if {condition}:"):
            self("break")

    def put(self, name: str, value: str) -> None:
        table = "t" if self.layout.columns[name].form is Form.UINT64 else "c"
        self(f"{self.table}{table}[{self.name}_{name}, {self.row}] = {value}")
        self.mark(name)

    def put_span(self, name: str, start: str, size: str) -> None:
        self(f"{self.table}c[{self.name}_{name}, {self.row}] = {start}")
        self(f"{self.table}c[{self.name}_{name}_size, {self.row}] = {size}")
        self.mark(name)

    def mark(self, name: str) -> None:
        self(f"pr |= {self.name}B_{name}")

    def z(self, top: int) -> None:
        """A VLE into ``v``; one above ``top`` is left to the interpreter."""
        self.leave_if(f"p >= {self.bound}")
        self("v = U(b[p])")
        self("p += ONE")
        with self.block("if v > LOW_7:"):
            # Two bytes are common: scopes, and lengths of payloads.
            with self.block(f"if p < {self.bound} and b[p] < 128:"):
                self("v = v & LOW_7 | U(b[p]) << SEVEN")
                self("p += ONE")
            with self.block("else:"):
                self(f"v, p = vle(b, p - ONE, {self.bound})")
            self.leave_if("p == ZERO" if top >> 64 else f"p == ZERO or v > {top:#x}")

    def length(self, limit: int) -> None:
        """A declared length into ``v``."""
        self.z(limit)
        beyond = "" if limit >= 127 else f" or v > {limit}"
        self.leave_if(f"v > {self.bound} - p{beyond}")

    def zid(self, name: str) -> None:
        """``v`` bytes. One with zero high bytes is left to the interpreter."""
        self.leave_if(f"v == ZERO or v > {self.bound} - p or b[p + v - ONE] == 0")
        self.put_span(name, "p", "v")
        self("p += v")

    def kind(self, kind: k.Kind[Any] | k.FlaggedKind[Any], name: str, header: str) -> None:
        match kind:
            case k.Z():
                self.z(2**kind.bits if kind.bits == 64 else 2**kind.bits - 1)
                self.put(name, "v")
            case k.ZValue():
                self.z(2**64)
                self.put(name, f"v & {kind.keep:#x}")
            case k.Bytes():
                self.length(kind.limit)
                self.put_span(name, "p", "v")
                self("p += v")
            case k.Rest():
                self.put_span(name, "p", f"{self.bound} - p")
                self(f"p = {self.bound}")
            case k.Text():
                self.length(kind.limit)
                ascii_text = f"is_ascii(b, p, v, {self.bound})"
                self.leave_if(f"not {ascii_text} and not is_utf8(b, p, v)")
                self.put_span(name, "p", "v")
                self("p += v")
            case k.PlainZid():
                self.length(limits.ZID_MAX)
                self.zid(name)
            case k.PackedZid():
                self.leave_if(f"p >= {self.bound}")
                self("v = (U(b[p]) >> FOUR) + ONE")
                self("p += ONE")
                self.zid(name)
            case k.EncodingKind():
                self.z(2**kind.bits - 1)
                self.put(name, "v >> ONE")
                with self.block("if v & ONE:"):
                    self.kind(k.schema, join_name(name, "schema"), header)
            case k.WireExprKind(mapping=k.Bits() as mapping):
                self.kind(k.z16, join_name(name, "scope"), header)
                with self.block(f"if {header} & {kind.named.mask:#x}:"):
                    self.kind(k.key_suffix, join_name(name, "suffix"), header)
                with self.block(f"if {header} & {mapping.mask:#x}:"):
                    self.mark(join_name(name, "mapping"))
            case OneOf():
                self.one_of(kind)
            case Struct():
                self.elements(spec_of(kind.cls), header, name)
            case _:
                raise TypeError(f"no reading in place for {type(kind).__name__}")

    def elements(self, spec: Spec, header: str, prefix: str = "") -> None:
        """Everything after the header, which is in the variable of that name."""
        chained = False
        for e in spec.elements:
            if isinstance(e, Ext | Unknown):
                if not chained:
                    self.chain(spec, header)
                chained = True
            elif isinstance(e, BitsField):
                with self.block(f"if {header} & {e.bits.mask:#x}:"):
                    self.mark(e.name)
            elif isinstance(e, Plain) and e.when is not None:
                with self.block(f"if {header} & {e.when.mask:#x}:"):
                    self.kind(e.kind, join_name(prefix, e.column), header)
            elif isinstance(e, Plain):
                self.kind(e.kind, join_name(prefix, e.column), header)

    def chain(self, spec: Spec, header: str) -> None:
        """The common extensions; too long a chain is the interpreter's.

        Of each, every column is there whenever it is: a repeated one leaves nothing behind.
        """
        self.loops += 1
        more, ext = f"more{self.loops}", f"x{self.loops}"
        self(f"{more} = {header} & 0x80")
        self(f"left = {limits.EXTENSIONS_MAX}")
        with self.block(f"while {more}:"):
            self.leave_if(f"p >= {self.bound}")
            self(f"{ext} = b[p]")
            self("p += ONE")
            branch = "if"
            for e in spec.exts:
                if e.name in COMMON[spec.cls]:
                    with self.block(f"{branch} {ext} & 0x7F == {e.header:#04x}:  # {e.name}"):
                        self.ext(e)
                    branch = "elif"
            with self.block("else:"):
                self("break")
            self(f"{more} = {ext} & 0x80")
            self("left -= 1")
            self.leave_if("left == 0")
        self.leave_if(more)

    def ext(self, e: Ext) -> None:
        if e.kind.encoding is not k.ExtEncoding.ZBUF:
            self.kind(e.kind, e.column, "0")
            return
        self.length(limits.EXTENSION_BODY_MAX)
        outer, self.bound = self.bound, "xe"
        self("xe = p + v")
        self.kind(e.kind, e.column, "0")
        self.leave_if("p != xe")
        self.bound = outer

    def one_of(self, kind: OneOf[Any]) -> None:
        self.leave_if(f"p >= {self.bound}")
        self("body_at = p")
        self("m = b[p]")
        self("p += ONE")
        # The first of them is what comes by the million: another one is the interpreter's.
        spec = kind.specs[0]
        self.leave_if(f"m & 0x1F != {spec.id:#04x}")
        self(f"pr |= np.uint64({spec.id << BODY_SHIFT:#x})  # {spec.name}")
        self.elements(spec, "m")

    def message(self, cls: type) -> None:
        """In a loop of one turn: ``done`` says that it was read to its end."""
        spec = spec_of(cls)
        with self.block("while True:"):
            self(f"pr = np.uint64({spec.id << MESSAGE_SHIFT:#x})  # {spec.name}")
            self("p += ONE")
            self.elements(spec, "h")
            self("done = True")
            self("break")


def scan_source() -> str:
    """The function ``scan``."""
    out = Printer()
    out(_HEAD)
    out.depth = 3
    push, frame = spec_of(Push), spec_of(Frame)
    with out.block(f"if framed and h & 0x1F == {push.id:#04x}:"):
        _Reading(out, NETWORK).message(Push)
        with out.block("if done:"):
            out("c[N_body_at, r] = body_at")
            out("present[r] = pr")
    with out.block(f"elif h & 0x1F == {frame.id:#04x} and not low:"):
        _Reading(out, TRANSPORT).message(Frame)
        with out.block("if done:"):
            out("tpresent[w] = pr")
    out(_GENERAL)
    out.depth = 0
    out(_TAIL)
    return out.source


_HEAD = '''
@kernel(SCAN)
def scan(buffer, starts, ends, low, program, entry, c, t, present, tc, tt, tpresent, bad, faults, stack, st):
    """Rows of the batches ``starts[k]..ends[k]``, from batch ``st[0]`` on.

    Stops before a batch whose rows might not fit. ``low``: each batch is one bare message.
    ``entry``: where the program of a message starts, by its header byte, network messages 256
    further on. ``faults`` and ``stack`` are room to work in. ``st``: next batch, rows, transport rows, bad rows, and whether the next batch is
    outside of the buffer.
    """
    b, f, s = pointer(buffer), pointer(faults), pointer(stack)
    code, stride, tstride = pointer(program), U(c.shape[1]), U(tc.shape[1])
    k, r, w, x = st[0], st[1], st[2], st[3]
    size = U(len(buffer))
    batches, rows, trows, bads = U(len(starts)), U(len(present)), U(len(tpresent)), U(bad.shape[1])
    while k < batches:
        p = U(starts[k])
        be = U(ends[k])
        if p > be or be > size:
            st[4] = ONE
            break
        # No message is shorter than a byte.
        room = be - p + ONE
        if r + room > rows or w + room > trows or x >= bads:
            break
        fault = ZERO
        at = ZERO
        m0 = p
        fr = ~k
        body_at = ZERO
        framed = low
        while p < be:
            m0 = p
            h = b[p]
            done = False
'''

_GENERAL = f"""
network = framed and h & 0x1F >= {NETWORK_ID_MIN:#04x}
if not done:
    p = m0
    pc = entry[U(h) + NETWORK_ENTRY] if network else entry[U(h)]
    bare = h & 0x1F == {spec_of(Close).id:#04x} or h & 0x1F == {spec_of(KeepAlive).id:#04x}
    if pc == NONE or (low and not network and not bare):
        fault = UNKNOWN_ID
        at = m0
        break
    if network:
        c[N_body_at, r] = -1
        p = run(b, p, be, code, pc, pointer(c), pointer(t), stride, pointer(present), r, f, s)
    else:
        p = run(b, p, be, code, pc, pointer(tc), pointer(tt), tstride, pointer(tpresent), w, f, s)
    if p == ZERO:
        fault = f[0]
        at = f[1]
        break
if network:
    c[N_frame, r] = fr
    c[N_at, r] = m0
    c[N_end, r] = p
    r += ONE
else:
    tc[T_batch, w] = k
    tc[T_at, w] = m0
    tc[T_end, w] = p
    framed = low
    if h & 0x1F == {spec_of(Frame).id:#04x}:
        fr = w
        framed = True
    w += ONE
    if h & 0x1F == {spec_of(Close).id:#04x}:
        break  # what follows a CLOSE is void
if low and p != be:
    fault = TRAILING
    at = p
    break
"""

_TAIL = """
        if fault:
            bad[ZERO, x] = k
            bad[ONE, x] = fault
            bad[TWO, x] = at
            bad[THREE, x] = m0
            x += ONE
        k += ONE
    st[0], st[1], st[2], st[3] = k, r, w, x
"""
