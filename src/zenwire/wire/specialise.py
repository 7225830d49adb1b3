"""Definitions to Python functions: one that reads a class of messages, one that writes it.

What a loop over the definition would find out for every message is written out once per class,
as ``dataclasses`` does for ``__init__``. The text is a plain sequence of the definition's
elements; every wire fact in it comes from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire.buffer import Reader, Writer
from zenwire.wire.define import BitsField, Ext, Plain, Spec, Unknown, Word, blank_of
from zenwire.wire.kinds import ExtEncoding, FlaggedKind, Kind
from zenwire.wire.limits import EXTENSION_BODY_MAX, EXTENSIONS_MAX
from zenwire.wire.values import UnknownExt

__all__ = ["M_FLAG", "Z_FLAG", "Read", "Write", "reader_of", "writer_of"]

# Values are of the fields' types, which the definitions check.
Read = Callable[..., Any]
"""Takes a Reader and the header: the rest of a message whose header was read, or a struct."""
Write = Callable[[Writer, Any], None]
"""The whole message, header included, or a struct."""

Z_FLAG: Final = 0x80
M_FLAG: Final = 0x10

_WORDS: Final = ("header", "word")
"""What the flag words are called in the functions."""


class _Source:
    """Lines of a function, and the objects that they name."""

    def __init__(self, head: str) -> None:
        self.lines = [head]
        self.names: dict[str, Any] = {"DecodeError": DecodeError, "EncodeError": EncodeError}

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def name(self, value: object, of: str) -> str:
        self.names[of] = value
        return of

    def function(self, name: str, spec: Spec) -> Any:  # Any: one of the two signatures above
        code = compile("\n".join(self.lines), f"<{name} {spec.name}>", "exec")
        exec(code, self.names)  # noqa: S102 - the text is made of definitions, not of input
        return self.names[name]


def _test(e: Plain | Word) -> str:
    """The condition under which an element is there."""
    return f"{_WORDS[e.when.word]} & {e.when.mask:#x}" if e.when is not None else ""


# --- reading --------------------------------------------------------------------------------------


def reader_of(spec: Spec) -> Read:
    """A function that reads this class."""
    s = _Source("def read(r, header=0):")
    fields = spec.fields
    places = {f.name: f"v{i}" for i, f in enumerate(fields)}
    s.add(1, "try:", "    pass")
    if any(isinstance(e, Word) for e in spec.elements):
        s.add(2, "word = 0")
    chained = False
    for e in spec.elements:
        if isinstance(e, Word):
            _read_value(s, "word", e.kind, _test(e), "0")
        elif isinstance(e, Plain):
            v = places[e.name]
            default = s.name(e.default, f"d_{v}") if e.when is not None else ""
            _read_value(s, v, e.kind, _test(e), default)
        elif isinstance(e, BitsField):
            v = places[e.name]
            made = tuple(e.type(i) for i in range(1 << e.bits.width))
            every = s.name(made, f"every_{v}")
            s.add(2, f"{v} = {every}[({_WORDS[e.bits.word]} & {e.bits.mask:#x}) >> {e.bits.shift}]")
        elif not chained:
            chained = True
            _read_chain(s, spec, places)
    if spec.scope and not chained:
        # No extension of this message is known, but any message may announce some.
        _read_chain(s, spec, places)
    s.names["NAME"] = spec.name
    s.add(
        1,
        "except DecodeError as e:",
        "    if not e.message:",
        "        e.message = NAME",
        "    raise",
        "made = blank()",
    )
    # What was read is valid: filling the slots skips a frozen dataclass's slow __init__.
    s.names |= {"blank": blank_of(spec.cls), "cls": spec.cls}
    s.add(1, *(f"made.{f.name} = {places[f.name]}" for f in fields))
    s.add(1, "made.__class__ = cls", "return made")
    read: Read = s.function("read", spec)
    return read


def _read_value(
    s: _Source, v: str, kind: Kind[Any] | FlaggedKind[Any], test: str, default: str
) -> None:
    read = s.name(kind.read, f"read_{v}")
    depth = 2
    if test:
        s.add(2, f"if {test}:")
        depth = 3
    if isinstance(kind, FlaggedKind):
        s.add(depth, f"{v} = {read}(r, {_WORDS[kind.word]})")
    else:
        s.add(depth, f"{v} = {read}(r)")
    if test:
        s.add(2, "else:", f"    {v} = {default}")


def _read_chain(s: _Source, spec: Spec, places: dict[str, str]) -> None:
    chain = [e for e in spec.elements if isinstance(e, Ext | Unknown)]
    defaults = [() if isinstance(e, Unknown) else e.default for e in chain]
    kept = [places[e.name] for e in chain]
    s.name(_chain(chain), "chain")
    s.names |= {f"d_{v}": default for v, default in zip(kept, defaults, strict=True)}
    absent = [f"d_{v}" for v in kept]
    targets = "".join(f"{v}, " for v in kept)
    get = f"chain(r, [{', '.join(absent)}])"
    # A struct's chain has no header to announce it: it is there if bytes are.
    s.add(2, f"if header & {Z_FLAG:#x}:" if spec.scope else "if r.pos < r.end:")
    s.add(3, f"{targets}= {get}" if targets else get)
    if kept:
        s.add(2, "else:", *[f"    {v} = {d}" for v, d in zip(kept, absent, strict=True)])


def _chain(chain: list[Ext | Unknown]) -> Callable[[Reader, list[Any]], list[Any]]:
    """Reads a chain of extensions into the values of those that are known."""
    known = {
        e.header: (
            e.kind.read if e.kind.encoding is not ExtEncoding.ZBUF else _sized(e.kind),
            i,
        )
        for i, e in enumerate(chain)
        if isinstance(e, Ext)
    }
    keep = next((i for i, e in enumerate(chain) if isinstance(e, Unknown)), None)

    def read(r: Reader, values: list[Any]) -> list[Any]:
        more = True
        left = EXTENSIONS_MAX
        unknown: list[UnknownExt] = []
        while more:
            at = r.pos
            if not left:
                raise DecodeError(Fault.LIMIT, at, detail=f"over {EXTENSIONS_MAX} extensions")
            left -= 1
            header = r.u8()
            more = header & Z_FLAG != 0
            found = known.get(header & 0x7F)
            if found is not None:
                values[found[1]] = found[0](r)
            elif header & M_FLAG:
                raise DecodeError(Fault.MANDATORY_EXTENSION, at, detail=f"header {header:#04x}")
            elif keep is None:
                _skip(r, header, at)
            else:
                unknown.append(UnknownExt(header & 0x6F, _skip(r, header, at)))
        if unknown and keep is not None:
            values[keep] = tuple(unknown)
        return values

    return read


def _sized(kind: Kind[Any]) -> Callable[[Reader], Any]:
    """A known extension with a length, which its value must fill exactly."""
    read_value = kind.read

    def read(r: Reader) -> Any:  # Any: of the kind
        n = r.length(EXTENSION_BODY_MAX)
        outer, r.end = r.end, r.pos + n
        value = read_value(r)
        if r.pos != r.end:
            raise DecodeError(Fault.TRAILING, r.pos, detail="the extension's length says more")
        r.end = outer
        return value

    return read


def _skip(r: Reader, header: int, at: int) -> int | bytes | None:
    """The body of an extension that we do not know, by its encoding alone."""
    match header & 0x60:
        case ExtEncoding.UNIT:
            return None
        case ExtEncoding.Z64:
            return r.z()
        case ExtEncoding.ZBUF:
            return r.take(r.length(EXTENSION_BODY_MAX))
    raise DecodeError(Fault.RESERVED_ENCODING, at, detail=f"header {header:#04x}")


# --- writing --------------------------------------------------------------------------------------


def writer_of(spec: Spec) -> Write:
    """A function that writes this class."""
    s = _Source("def write(w, message):")
    places = {f.name: f"v{i}" for i, f in enumerate(spec.fields)}
    s.add(1, "out = w.out", *[f"{v} = message.{name}" for name, v in places.items()])
    s.add(1, f"header = {spec.id | spec.variant[1]:#x}")
    if any(isinstance(e, Word) for e in spec.elements):
        s.add(1, "word = 0")
    for e in spec.elements:
        if isinstance(e, Plain):
            _write_flags(s, e, places[e.name])
        elif isinstance(e, BitsField):
            s.add(1, f"{_WORDS[e.bits.word]} |= {places[e.name]} << {e.bits.shift}")
    chain = [e for e in spec.elements if isinstance(e, Ext | Unknown)]
    if chain:
        _count_chain(s, spec, chain, places)
    if spec.scope:
        s.add(
            1,
            f"out.append(header | {Z_FLAG:#x} if left else header)"
            if chain
            else "out.append(header)",
        )
    chained = False
    for e in spec.elements:
        if isinstance(e, Word | Plain):
            _write_value(s, spec, e, "word" if isinstance(e, Word) else places[e.name])
        elif not isinstance(e, BitsField) and not chained:
            chained = True
            _write_chain(s, chain, places)
    write: Write = s.function("write", spec)
    return write


def _differs(s: _Source, v: str, default: object) -> str:
    """Whether a value is to be sent. Most defaults are the same object."""
    if default is None:
        return f"{v} is not None"
    name = s.name(default, f"d_{v}")
    return f"{v} is not {name} and {v} != {name}"


def _write_flags(s: _Source, e: Plain, v: str) -> None:
    depth = 1
    if e.when is not None:
        s.add(
            1, f"if {_differs(s, v, e.default)}:", f"    {_WORDS[e.when.word]} |= {e.when.mask:#x}"
        )
        depth = 2
    if isinstance(e.kind, FlaggedKind):
        bits = s.name(e.kind.bits, f"bits_{v}")
        s.add(depth, f"{_WORDS[e.kind.word]} |= {bits}({v})")


def _write_value(s: _Source, spec: Spec, e: Plain | Word, v: str) -> None:
    write = s.name(e.kind.write, f"write_{v}")
    test = _test(e)
    if test:
        s.add(1, f"if {test}:")
    s.add(2 if test else 1, f"{write}(w, {v})")
    if test and isinstance(e, Word):
        text = f"{spec.name}: options without a place to put them"
        s.add(1, "elif word:", f"    raise EncodeError({text!r})")


def _count_chain(
    s: _Source, spec: Spec, chain: list[Ext | Unknown], places: dict[str, str]
) -> None:
    s.add(1, "left = 0")
    for e in chain:
        v = places[e.name]
        if isinstance(e, Ext):
            s.add(1, f"if {_differs(s, v, e.default)}:", "    left += 1")
        else:
            s.name(_unknown_check(spec), "check")
            s.add(1, f"if {v}:", f"    left += check(left, {v})")


def _unknown_check(spec: Spec) -> Callable[[int, tuple[UnknownExt, ...]], int]:
    """What we write as unknown must not be read as known, and must be read at all."""
    headers = {e.header for e in spec.exts}

    def check(known: int, unknown: tuple[UnknownExt, ...]) -> int:
        if known + len(unknown) > EXTENSIONS_MAX:
            raise EncodeError(f"{spec.name}: over {EXTENSIONS_MAX} extensions")
        for u in unknown:
            if u.header in headers:
                raise EncodeError(f"{spec.name} knows the extension {u.header:#04x}")
        return len(unknown)

    return check


def _write_chain(s: _Source, chain: list[Ext | Unknown], places: dict[str, str]) -> None:
    s.add(1, "if left:")
    for e in chain:
        v = places[e.name]
        if isinstance(e, Unknown):
            s.name(_write_unknown, "write_unknown")
            s.add(2, f"if {v}:", f"    write_unknown(w, {v})")
            continue
        sized = e.kind.encoding is ExtEncoding.ZBUF
        write = s.name(_write_sized(e.kind) if sized else e.kind.write, f"write_{v}")
        s.add(
            2,
            f"if {_differs(s, v, e.default)}:",
            "    left -= 1",
            f"    out.append({e.header | Z_FLAG:#x} if left else {e.header:#x})",
            f"    {write}(w, {v})",
        )


def _write_sized(kind: Kind[Any]) -> Write:
    write_value = kind.write

    def write(w: Writer, value: Any) -> None:  # Any: of the kind
        body = Writer()
        write_value(body, value)
        w.sized(bytes(body.out), EXTENSION_BODY_MAX)

    return write


def _write_unknown(w: Writer, unknown: tuple[UnknownExt, ...]) -> None:
    left = len(unknown)
    for u in unknown:
        left -= 1
        w.out.append(u.header | (Z_FLAG if left else 0))
        if isinstance(u.body, bytes):
            w.sized(u.body, EXTENSION_BODY_MAX)
        elif u.body is not None:
            w.z(u.body)
