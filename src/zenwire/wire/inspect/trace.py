"""Where each field of a message is: a definition and bytes to a tree of spans.

For people who look at bytes. It walks the same definitions and calls the same kinds as the
object codec, slower, and keeps what was read before a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from zenwire.errors import DecodeError, Fault
from zenwire.wire import kinds as k
from zenwire.wire.buffer import Reader
from zenwire.wire.define import Element, Ext, Plain, Spec, Unknown, Word, messages, spec_of
from zenwire.wire.diagram import word_name
from zenwire.wire.limits import EXTENSION_BODY_MAX, EXTENSIONS_MAX
from zenwire.wire.objects import ID_MASK, OneOf, Struct
from zenwire.wire.specialise import M_FLAG, Z_FLAG

__all__ = ["Span", "trace_message", "trace_struct"]

AnyKind = k.Kind[Any]  # Any: whatever the field holds


@dataclass(slots=True)
class Span:
    """Bytes ``start`` to ``end``: a message, a field or an extension.

    The children come after the bytes that are the span's own, and fill it. ``value`` is what
    was read, of a span without children; a span that a fault broke off is not ``whole``.
    """

    name: str
    start: int
    end: int = -1
    value: Any = None  # Any: of the field's type
    owner: Spec | None = None
    """The definition that the field belongs to."""
    spec: Spec | None = None
    """The definition, of a message or a struct."""
    header: int | None = None
    """The first byte of a message or an extension."""
    ext: Ext | None = None
    children: list[Span] = field(default_factory=list)
    whole: bool = True

    @property
    def own_end(self) -> int:
        """Where the children start."""
        return self.children[0].start if self.children else self.end

    def find(self, name: str) -> Span | None:
        """The field or extension of that name."""
        return next((child for child in self.children if child.name == name), None)


def trace_message(r: Reader, scope: str) -> tuple[Span, DecodeError | None]:
    """The next message. After a fault, the rest up to the end belongs to the span it broke."""
    span = Span("", r.pos)

    def fill(trace: _Trace) -> None:
        if r.pos >= r.end:
            raise DecodeError(Fault.TRUNCATED, r.pos, scope, "no message at all")
        trace.message(span, messages(scope), scope, f"no {scope} message has id {{:#04x}}")

    return span, _run(r, span, fill)


def trace_struct(r: Reader, cls: type, name: str = "") -> tuple[Span, DecodeError | None]:
    """A struct that fills what is left."""
    span = Span(name, r.pos)

    def fill(trace: _Trace) -> None:
        trace.elements(span, spec_of(cls), 0)
        if r.pos != r.end:
            raise DecodeError(Fault.TRAILING, r.pos, cls.__name__)

    return span, _run(r, span, fill)


def _run(r: Reader, span: Span, fill: Callable[[_Trace], None]) -> DecodeError | None:
    end = r.end
    try:
        fill(_Trace(r))
    except DecodeError as fault:
        _break(span, end)
        return fault
    span.end = r.pos
    return None


def _break(span: Span, end: int) -> None:
    """Close what a fault left open. What it could not read belongs to the innermost span."""
    while span.end < 0:
        span.end, span.whole = end, False
        if not span.children:
            return
        last = span.children[-1]
        if last.end >= 0:
            span.children.append(Span("", last.end, end, whole=False))
            return
        span = last


class _Trace:
    """Walks definitions as the codec does; spans are opened before, and closed after reading."""

    __slots__ = ("r",)

    def __init__(self, r: Reader) -> None:
        self.r = r

    def message(self, span: Span, specs: tuple[Spec, ...], among: str, missing: str) -> None:
        """A message of some kinds; ``missing`` says that it is none of them."""
        at = self.r.pos
        span.header = header = self.r.u8()
        spec = next((s for s in specs if s.id == header & ID_MASK and s.matches(header)), None)
        if spec is None:
            raise DecodeError(Fault.UNKNOWN_ID, at, among, missing.format(header & ID_MASK))
        self.elements(span, spec, header)

    def elements(self, span: Span, spec: Spec, header: int) -> None:
        span.spec = spec
        try:
            self._elements(span, spec, header)
        except DecodeError as fault:
            fault.message = fault.message or spec.name
            raise

    def _elements(self, span: Span, spec: Spec, header: int) -> None:
        words = [header, 0]
        chained = False
        for e in spec.elements:
            if isinstance(e, Word):
                if _applies(e, words):
                    words[1] = self._leaf(span, word_name(spec), spec, e.kind)
            elif isinstance(e, Plain):
                if _applies(e, words):
                    self._field(span, spec, e, words)
            elif isinstance(e, Ext | Unknown) and not chained:
                chained = True
                self._chain(span, spec, header)
        if not chained:
            self._chain(span, spec, header)

    def _field(self, parent: Span, spec: Spec, e: Plain, words: list[int]) -> None:
        span = Span(e.name, self.r.pos, owner=spec)
        parent.children.append(span)
        kind = e.kind
        if isinstance(kind, k.FlaggedKind):
            span.value = kind.read(self.r, words[kind.word])
        else:
            self._fill(span, kind)
        span.end = self.r.pos

    def _leaf(self, parent: Span, name: str, spec: Spec | None, kind: AnyKind) -> Any:
        span = Span(name, self.r.pos, owner=spec)
        parent.children.append(span)
        self._fill(span, kind)
        span.end = self.r.pos
        return span.value

    def _fill(self, span: Span, kind: AnyKind) -> None:
        """Read a value into an open span: compound kinds make children, others the value."""
        r = self.r
        match kind:
            case Struct():
                self.elements(span, spec_of(kind.cls), 0)
            case OneOf():
                self.message(span, kind.specs, "", f"no {kind.label}")
            case k.Sequence():
                at = r.pos
                n = r.z()
                if n > kind.limit:
                    raise DecodeError(Fault.LIMIT, at, detail=f"count {n} is above {kind.limit}")
                self._items(span, kind.kind, n)
            case k.Repeat():
                self._items(span, kind.kind, kind.times)
            case _:
                span.value = kind.read(r)

    def _items(self, span: Span, kind: AnyKind, n: int) -> None:
        span.value = n
        for i in range(n):
            self._leaf(span, f"[{i}]", None, kind)

    def _chain(self, parent: Span, spec: Spec, header: int) -> None:
        """The extensions, where they are announced; a struct's are there if bytes are."""
        r = self.r
        if spec.scope:
            more = header & Z_FLAG != 0
        else:
            more = bool(spec.exts) and r.pos < r.end
        left = EXTENSIONS_MAX
        while more:
            at = r.pos
            if not left:
                raise DecodeError(Fault.LIMIT, at, detail=f"over {EXTENSIONS_MAX} extensions")
            left -= 1
            span = Span("", at, owner=spec)
            parent.children.append(span)
            span.header = got = r.u8()
            span.ext = found = _known(spec.cls).get(got & 0x7F)
            if found is not None:
                span.name = found.name
                self._ext(span, found.kind)
            elif got & M_FLAG:
                raise DecodeError(Fault.MANDATORY_EXTENSION, at, detail=f"header {got:#04x}")
            else:
                span.value = self._skip(got, at)
            span.end = r.pos
            more = got & Z_FLAG != 0

    def _ext(self, span: Span, kind: AnyKind) -> None:
        r = self.r
        if kind.encoding is not k.ExtEncoding.ZBUF:
            self._fill(span, kind)
            return
        n = r.length(EXTENSION_BODY_MAX)
        outer, r.end = r.end, r.pos + n
        self._fill(span, kind)
        if r.pos != r.end:
            raise DecodeError(Fault.TRAILING, r.pos, detail="the extension's length says more")
        r.end = outer

    def _skip(self, header: int, at: int) -> int | bytes | None:
        r = self.r
        match header & 0x60:
            case k.ExtEncoding.UNIT:
                return None
            case k.ExtEncoding.Z64:
                return r.z()
            case k.ExtEncoding.ZBUF:
                return r.take(r.length(EXTENSION_BODY_MAX))
        raise DecodeError(Fault.RESERVED_ENCODING, at, detail=f"header {header:#04x}")


def _applies(e: Element, words: list[int]) -> bool:
    when = getattr(e, "when", None)
    return when is None or words[when.word] & when.mask != 0


@cache
def _known(cls: type) -> dict[int, Ext]:
    return {e.header: e for e in spec_of(cls).exts}
