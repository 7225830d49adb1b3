"""The object codec: a definition and bytes to an instance, and back.

Each class gets a ``Codec``, made once from its definition: a list of steps, one per element.
A step reads its bytes and puts the value into its slot of ``values``; flags that say whether
it applies are tested by the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire.buffer import Buffer, Reader, Writer
from zenwire.wire.define import BitsField, Ext, Plain, Spec, Unknown, Word, messages, spec_of
from zenwire.wire.kinds import ExtEncoding, FlaggedKind, Kind
from zenwire.wire.limits import EXTENSION_BODY_MAX, EXTENSIONS_MAX
from zenwire.wire.values import UnknownExt

__all__ = ["Codec", "OneOf", "Struct", "codec_of", "decode", "dispatch", "encode"]

T = TypeVar("T")
V = TypeVar("V")

Z_FLAG = 0x80
M_FLAG = 0x10
ID_MASK = 0x1F

Step = Callable[[Reader, list[int], list[Any]], None]
"""Reads one element. Values are of the fields' types, which the definitions check."""


class Codec(Generic[T]):
    """Reads and writes one class of messages or structs."""

    __slots__ = ("_cls", "_defaults", "_plan", "_setters", "_steps", "_values", "spec")

    def __init__(self, cls: type[T]) -> None:
        self.spec = spec = spec_of(cls)
        fields = spec.fields
        slots = {f.name: i for i, f in enumerate(fields)}
        self._cls = cls
        # What was read is valid: filling the slots skips a frozen dataclass's slow __init__.
        self._setters = tuple(getattr(cls, f.name).__set__ for f in fields)
        self._defaults = [() if isinstance(f, Unknown) else f.default for f in fields]
        self._values = _getter([f.name for f in fields])
        self._steps = tuple(_steps(spec, slots))
        self._plan = _WritePlan(spec, slots)

    def read(self, r: Reader, header: int = 0) -> T:
        """The rest of a message whose header was read, or a struct."""
        words = [header, 0]
        values = self._defaults.copy()
        try:
            for at, mask, slot, step in self._steps:
                if mask and not words[at] & mask:
                    continue
                if slot >= 0:
                    values[slot] = step(r)
                else:
                    step(r, words, values)
        except DecodeError as e:
            if not e.message:
                e.message = self.spec.name
            raise
        made = object.__new__(self._cls)
        for put, value in zip(self._setters, values, strict=True):
            put(made, value)
        return made

    def write(self, w: Writer, message: T) -> None:
        """The whole message, header included, or a struct."""
        plan = self._plan
        values = self._values(message)
        words = plan.words(values)
        present = [(e, values[slot]) for e, slot in plan.exts if values[slot] != e.default]
        unknown = () if plan.unknown is None else values[plan.unknown]
        if unknown:
            self._check_unknown(len(present), unknown)
        if self.spec.scope:
            w.out.append(words[0] | (Z_FLAG if present or unknown else 0))
        for at, mask, write, slot in plan.steps:
            if mask and not words[at] & mask:
                if slot == _WORD and words[1]:
                    raise EncodeError(f"{self.spec.name}: options without a place to put them")
            elif slot == _CHAIN:
                _write_chain(w, present, unknown)
            else:
                write(w, words[1] if slot == _WORD else values[slot])

    def _check_unknown(self, known: int, unknown: tuple[UnknownExt, ...]) -> None:
        """What we write as unknown must not be read as known, and must be read at all."""
        if known + len(unknown) > EXTENSIONS_MAX:
            raise EncodeError(f"{self.spec.name}: over {EXTENSIONS_MAX} extensions")
        headers = {e.header for e in self.spec.exts}
        for u in unknown:
            if u.header in headers:
                raise EncodeError(f"{self.spec.name} knows the extension {u.header:#04x}")


_NO_SLOT: Final = -1
_WORD: Final = -1
_CHAIN: Final = -2


class _WritePlan:
    """What writing needs of a definition, looked up once. Slots are places among the values."""

    def __init__(self, spec: Spec, slots: dict[str, int]) -> None:
        plain = [e for e in spec.elements if isinstance(e, Plain)]
        self.header = spec.id | spec.variant[1]
        self.presence = [(slots[e.name], e.when, e.default) for e in plain if e.when is not None]
        self.flagged = [
            (slots[e.name], e.kind, e.when is not None, e.default)
            for e in plain
            if isinstance(e.kind, FlaggedKind)
        ]
        self.bits = [(slots[e.name], e.bits) for e in spec.elements if isinstance(e, BitsField)]
        self.exts = [(e, slots[e.name]) for e in spec.exts]
        self.unknown = next((slots[e.name] for e in spec.elements if isinstance(e, Unknown)), None)
        self.steps: list[tuple[int, int, Callable[[Writer, Any], None], int]] = []
        for e in spec.elements:
            when = getattr(e, "when", None)
            at, mask = (when.word, when.mask) if when is not None else (0, 0)
            if isinstance(e, Word):
                self.steps.append((at, mask, e.kind.write, _WORD))
            elif isinstance(e, Plain):
                self.steps.append((at, mask, e.kind.write, slots[e.name]))
            elif isinstance(e, Ext | Unknown) and not any(s[3] == _CHAIN for s in self.steps):
                self.steps.append((0, 0, _nothing, _CHAIN))

    def words(self, values: tuple[Any, ...]) -> list[int]:
        """The header and the second flag word, as the values make them."""
        words = [self.header, 0]
        for slot, when, default in self.presence:
            if values[slot] != default:
                words[when.word] |= when.mask
        for slot, kind, optional, default in self.flagged:
            value = values[slot]
            if not optional or value != default:
                words[kind.word] |= kind.bits(value)
        for slot, bits in self.bits:
            words[bits.word] |= values[slot] << bits.shift
        return words


def _nothing(_w: Writer, _value: object) -> None:
    """Stands where the chain of extensions is written."""


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The attributes as a tuple, however many there are."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda message: tuple(getattr(message, name) for name in names)


def _steps(spec: Spec, slots: dict[str, int]) -> list[tuple[int, int, int, Callable[..., Any]]]:
    """(word, mask, slot, step) per element: it applies if mask is 0 or a bit of it is set.

    Most are a kind's own ``read``, whose value goes into the slot; others have no slot, and are
    handed the words and values.
    """
    steps: list[tuple[int, int, int, Callable[..., Any]]] = []
    chained = False
    for e in spec.elements:
        when = getattr(e, "when", None)
        at, mask = (when.word, when.mask) if when is not None else (0, 0)
        if isinstance(e, Word):
            steps.append((at, mask, _NO_SLOT, _word_step(e)))
        elif isinstance(e, Plain) and isinstance(e.kind, FlaggedKind):
            steps.append((at, mask, _NO_SLOT, _flagged_step(e.kind, slots[e.name])))
        elif isinstance(e, Plain):
            steps.append((at, mask, slots[e.name], e.kind.read))
        elif isinstance(e, BitsField):
            steps.append((0, 0, _NO_SLOT, _bits_step(e, slots[e.name])))
        elif not chained:
            chained = True
            # A struct's chain has no header to announce it: it is there if bytes are.
            mask = Z_FLAG if spec.scope else 0
            steps.append((0, mask, _NO_SLOT, _chain_step(spec, slots)))
    if spec.scope and not chained:
        # No extension of this message is known, but any message may announce some.
        steps.append((0, Z_FLAG, _NO_SLOT, _chain_step(spec, slots)))
    return steps


def _word_step(e: Word) -> Step:
    read = e.kind.read

    def step(r: Reader, words: list[int], _values: list[Any]) -> None:
        words[1] = read(r)

    return step


def _flagged_step(kind: FlaggedKind[Any], slot: int) -> Step:
    word, read = kind.word, kind.read

    def step(r: Reader, words: list[int], values: list[Any]) -> None:
        values[slot] = read(r, words[word])

    return step


def _bits_step(e: BitsField, slot: int) -> Step:
    word, mask, shift, make = e.bits.word, e.bits.mask, e.bits.shift, e.type

    def step(_r: Reader, words: list[int], values: list[Any]) -> None:
        values[slot] = make((words[word] & mask) >> shift)

    return step


def _chain_step(spec: Spec, slots: dict[str, int]) -> Step:
    known = {e.header: (e.kind, slots[e.name]) for e in spec.exts}
    keep = next((slots[e.name] for e in spec.elements if isinstance(e, Unknown)), None)
    announced = bool(spec.scope)

    def step(r: Reader, _words: list[int], values: list[Any]) -> None:
        more = announced or r.pos < r.end
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
                kind, slot = found
                sized = header & 0x60 == ExtEncoding.ZBUF
                values[slot] = _sized_body(r, kind) if sized else kind.read(r)
            elif header & M_FLAG:
                raise DecodeError(Fault.MANDATORY_EXTENSION, at, detail=f"header {header:#04x}")
            elif keep is None:
                _skip(r, header, at)
            else:
                unknown.append(UnknownExt(header & 0x6F, _skip(r, header, at)))
        if unknown and keep is not None:
            values[keep] = tuple(unknown)

    return step


def _sized_body(r: Reader, kind: Kind[V]) -> V:
    """A known extension with a length, which its value must fill exactly."""
    n = r.length(EXTENSION_BODY_MAX)
    outer, r.end = r.end, r.pos + n
    value = kind.read(r)
    if r.pos != r.end:
        raise DecodeError(Fault.TRAILING, r.pos, detail="the extension's length says more")
    r.end = outer
    return value


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


def _write_chain(
    w: Writer, present: list[tuple[Ext, Any]], unknown: tuple[UnknownExt, ...]
) -> None:
    left = len(present) + len(unknown)
    for e, value in present:
        left -= 1
        w.out.append(e.header | (Z_FLAG if left else 0))
        if e.kind.encoding is ExtEncoding.ZBUF:
            body = Writer()
            e.kind.write(body, value)
            w.sized(bytes(body.out), EXTENSION_BODY_MAX)
        else:
            e.kind.write(w, value)
    for u in unknown:
        left -= 1
        w.out.append(u.header | (Z_FLAG if left else 0))
        if isinstance(u.body, bytes):
            w.sized(u.body, EXTENSION_BODY_MAX)
        elif u.body is not None:
            w.z(u.body)


_CODECS: dict[type, Codec[Any]] = {}


def codec_of(cls: type[T]) -> Codec[T]:
    """The codec of a message or struct class, made when it is first asked for."""
    codec = _CODECS.get(cls)
    if codec is None:
        codec = _CODECS[cls] = Codec(cls)
    return codec


class Struct(Kind[T]):
    """A struct as the kind of a field."""

    def __init__(self, cls: type[T]) -> None:
        self.cls = cls
        self.label = cls.__name__
        self._codec = codec_of(cls)

    def read(self, r: Reader) -> T:
        return self._codec.read(r)

    def write(self, w: Writer, value: T) -> None:
        self._codec.write(w, value)


Dispatch = tuple[Codec[Any] | None, ...]
"""The codec for each of the 256 header bytes."""


def dispatch(specs: tuple[Spec, ...]) -> Dispatch:
    """The table that finds a message's codec by its header byte."""

    def find(header: int) -> Codec[Any] | None:
        return next((codec_of(s.cls) for s in specs if s.matches(header)), None)

    return tuple(find(header) for header in range(256))


class OneOf(Kind[T]):
    """A sub-message: the header byte says which of some classes it is."""

    def __init__(self, *classes: type[T]) -> None:
        self.specs = tuple(spec_of(c) for c in classes)
        self.label = " or ".join(s.name for s in self.specs)
        self._table = dispatch(self.specs)

    def read(self, r: Reader) -> T:
        header = r.u8()
        codec = self._table[header]
        if codec is None:
            raise DecodeError(Fault.UNKNOWN_ID, r.pos - 1, detail=f"no {self.label}")
        return codec.read(r, header)  # type: ignore[no-any-return] # its classes are T

    def write(self, w: Writer, value: T) -> None:
        codec_of(type(value)).write(w, value)


@cache
def scope_table(scope: str) -> Dispatch:
    """The codec of each header byte of a scope."""
    return dispatch(messages(scope))


def read_message(r: Reader, scope: str) -> Any:  # Any: a message of that scope
    """The next message. Raises DecodeError."""
    if r.pos >= r.end:
        raise DecodeError(Fault.TRUNCATED, r.pos, scope, "no message at all")
    header = r.u8()
    codec = scope_table(scope)[header]
    if codec is None:
        raise unknown_id(header, r.pos - 1, scope)
    return codec.read(r, header)


def unknown_id(header: int, at: int, scope: str) -> DecodeError:
    """What is wrong with a header that no message of a scope has."""
    detail = f"no {scope} message has id {header & ID_MASK:#04x}"
    return DecodeError(Fault.UNKNOWN_ID, at, scope, detail)


def decode(data: Buffer, scope: str) -> Any:  # Any: a message of that scope
    """A message that fills ``data``. Raises DecodeError."""
    r = Reader(data)
    message = read_message(r, scope)
    if r.pos != r.end:
        raise DecodeError(Fault.TRAILING, r.pos, spec_of(type(message)).name)
    return message


def encode(message: object) -> bytes:
    """Any message or struct. Raises EncodeError."""
    w = Writer()
    codec_of(type(message)).write(w, message)
    return bytes(w.out)
