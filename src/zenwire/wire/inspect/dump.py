"""Traced bytes as lines of text: offset, hexadecimal, name and value of each field."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from zenwire.errors import DecodeError
from zenwire.wire.define import BitsField, Spec, Word
from zenwire.wire.diagram import flags_of, title, word_name
from zenwire.wire.encoding import Encoding
from zenwire.wire.inspect.dissect import Entry, Section, trace
from zenwire.wire.inspect.trace import Span
from zenwire.wire.linkstate import OAM_LINKSTATE, Link
from zenwire.wire.locator import Locator
from zenwire.wire.network import Oam
from zenwire.wire.structs import Timestamp
from zenwire.wire.transport import Close, Frame
from zenwire.wire.values import CloseReason, Mapping, QoS, Resolution, WireExpr, ZenohId

__all__ = ["Dump", "Paint", "value_text"]

Paint = Callable[[str, str], str]
"""(role, text) to text with its colour. Roles: offset, message, name, note, fault."""

_PER_LINE = 10
_WHOLE = 16
"""Longer fields are cut, unless every byte is asked for."""
_TEXT_MAX = 60
_UNITS = {"lease": "ms", "timeout": "ms", "batch_size": "bytes"}


def _uncoloured(_role: str, text: str) -> str:
    return text


@dataclass(slots=True)
class _Row:
    """A line, or as many as its bytes take."""

    start: int
    end: int
    depth: int
    label: str
    value: str
    role: str = "name"
    fault: DecodeError | None = None


class Dump:
    """Sections as text. ``full`` shows every byte, where long fields are cut otherwise."""

    def __init__(self, *, full: bool = False, paint: Paint | None = None) -> None:
        self.full = full
        self.paint = paint or _uncoloured

    def lines(self, section: Section, shown: Iterable[Entry]) -> Iterator[str]:
        """The lines of some entries of a section."""
        if section.derived:
            size = f"{_size(len(section.data))}; offsets count from its start"
            yield self.paint("note", f"-- {section.derived}: {size}")
        prefixed = section.entries[:1] and section.entries[0].name.startswith("batch")
        framed = False
        for entry in shown:
            framed = framed or isinstance(entry.message, Frame)
            depth = 0 if entry.layer == "framing" else int(bool(prefixed))
            depth += entry.layer == "network" and framed
            for row in _entry_rows(section, entry, depth):
                yield from self._row(section.data, row)

    def _row(self, data: bytes, row: _Row) -> Iterator[str]:
        width = max(4, len(f"{len(data):x}"))
        at = None if row.fault is None else min(max(row.fault.offset, row.start), row.end)
        label = "  " * row.depth + self.paint(row.role, row.label)
        text = f"{label}  {row.value}" if row.value else label
        for start, end, cut in self._chunks(row.start, row.end, at):
            shown = data[start:end].hex(" ") + (" .." if cut else "")
            here = start < row.end or row.fault is not None
            offset = self.paint("offset", f"{start:0{width}x}") if here else " " * width
            yield f"{offset}  {shown:<34}{text}".rstrip()
            text = ""
            if (
                row.fault is not None
                and at is not None
                and (start <= at < end or at == end == row.end)
            ):
                mark = " " * (width + 2 + 3 * (at - start))
                yield mark + self.paint("fault", f"^^ {_fault_text(row.fault)}")

    def _chunks(self, start: int, end: int, at: int | None) -> Iterator[tuple[int, int, bool]]:
        """(start, end, whether bytes are left out after it) of the lines that are shown."""
        count = max(-(-(end - start) // _PER_LINE), 1)
        if self.full or end - start <= _WHOLE:
            kept = list(range(count))
        elif at is None:
            kept = [0]
        else:
            of_fault = min((at - start) // _PER_LINE, count - 1)
            kept = sorted({0, max(of_fault - 1, 0), of_fault})
        for i in kept:
            cut = i + 1 < count and i + 1 not in kept
            first = start + i * _PER_LINE
            yield first, min(first + _PER_LINE, end), cut


def _entry_rows(section: Section, entry: Entry, depth: int) -> Iterator[_Row]:
    span = trace(section, entry)
    if entry.layer == "framing":
        size = span.end - span.start
        if entry.name.startswith("batch"):
            size = int.from_bytes(section.data[span.start : span.end], "little")
        label = entry.name or "not read"
        yield _Row(span.start, span.end, depth, label, _size(size), "note", entry.fault)
    else:
        yield from _rows(span, depth, "", entry.fault)


def _rows(span: Span, depth: int, prefix: str, fault: DecodeError | None) -> Iterator[_Row]:
    """A span without bytes of its own has no line: its name goes before those of its children."""
    name = prefix + span.name
    if not span.children:
        fault = None if span.whole else fault
        yield _Row(span.start, span.end, depth, *_told(span, name), fault)
    elif span.own_end == span.start:
        for child in span.children:
            yield from _rows(child, depth, f"{name}." if name else "", fault)
    else:
        yield _Row(span.start, span.own_end, depth, *_told(span, name))
        for child in span.children:
            yield from _rows(child, depth + 1, "", fault)


def _fault_text(fault: DecodeError) -> str:
    """As the error says it, but with the offset as the lines have it."""
    where = f" in {fault.message}" if fault.message else ""
    why = f": {_printable(fault.detail)}" if fault.detail else ""
    return f"{fault.fault.name} at {fault.offset:#06x}{where}{why}"


def _told(span: Span, name: str) -> tuple[str, str, str]:
    """Label, value and role."""
    if span.header is not None:
        if span.spec is not None and span.spec.scope:
            return title(span.spec), _header_text(span.spec, span.header), "message"
        if span.ext is not None or (span.owner is not None and not span.name):
            return _ext_label(span, name), _field_text(span), "name"
        return name or "?", f"header {span.header:#04x}", "message"
    return name or "not read", _field_text(span), "name"


def _header_text(spec: Spec, header: int) -> str:
    """``Z|R``, then the fields that are bits of the header."""
    told = ["|".join(_set_bits(spec, 0, header))]
    for e in spec.elements:
        if isinstance(e, BitsField) and e.bits.word == 0:
            value = e.type((header & e.bits.mask) >> e.bits.shift)
            if isinstance(value, IntEnum):
                told.append(f"{e.name} {value.name}")
            elif value:
                told.append(e.name)
    return "  ".join(t for t in told if t)


def _set_bits(spec: Spec, word: int, value: int) -> Iterator[str]:
    for name, bits in flags_of(spec, word).items():
        got = (value & bits.mask) >> bits.shift
        if got:
            yield name if bits.width == 1 else f"{name}={got}"


def _ext_label(span: Span, name: str) -> str:
    header = span.header or 0
    if span.ext is not None:
        return f"ext {name}{' (M)' if span.ext.mandatory else ''}"
    return f"ext {header & 0x0F:#x} (unknown)"


def _field_text(span: Span) -> str:
    if not span.whole and span.value is None:
        return ""
    owner, value = span.owner, span.value
    if value is None and span.header is not None and span.ext is None:
        return ""
    if value is None and span.children:
        # What an extension holds is told by its fields.
        return _size(span.end - span.own_end) if span.header is not None else ""
    if owner is not None and isinstance(value, int):
        if any(isinstance(e, Word) for e in owner.elements) and span.name == word_name(owner):
            return "|".join(_set_bits(owner, 1, value)) or "none"
        if owner.cls is Timestamp and span.name == "time":
            return f"{_ntp64_text(value)} ({value})"
        if owner.cls is Close and value in tuple(CloseReason):
            return f"{value} {CloseReason(value).name}"
        if owner.cls is Oam and span.name == "id" and value == OAM_LINKSTATE:
            return f"{value} link state"
        if span.name in _UNITS:
            return f"{value} {_UNITS[span.name]}"
    if isinstance(value, bytes) and span.children:
        return _size(len(value))
    return value_text(value)


def _ntp64_text(time: int) -> str:
    # The clock's id has no part in the time.
    return Timestamp(time=time, id=ZenohId(b"\1")).datetime.isoformat().replace("+00:00", "Z")


def value_text(value: object) -> str:
    """A field's value in one line, cut where it is long, with nothing a terminal would obey."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case IntFlag():
            return "|".join(str(member.name) for member in value)
        case IntEnum():
            return value.name
        case int() | ZenohId() | QoS():
            return str(value)
        case bytes():
            return _bytes_text(value)
        case str():
            return _quoted(value)
        case Encoding() | Locator():
            return _cut(_printable(str(value)))
        case WireExpr():
            return _key_text(value)
        case Resolution():
            return f"sequence numbers of {value.frame_sn} bits, request ids of {value.request_id}"
        case Link():
            return f"{value.psid} weight {value.weight}" if value.weight else str(value.psid)
        case tuple():
            return _cut(", ".join(value_text(item) for item in value) or "none")
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value)]
        return " ".join(f"{n} {value_text(getattr(value, n))}" for n in names)
    return _cut(_printable(str(value)))


def _key_text(key: WireExpr) -> str:
    if not key.scope:
        return _quoted(key.suffix)
    whose = "sender" if key.mapping is Mapping.SENDER else "receiver"
    suffix = f" + {_quoted(key.suffix)}" if key.suffix else ""
    return f"scope {key.scope} of the {whose}{suffix}"


def _bytes_text(data: bytes) -> str:
    size = _size(len(data))
    # A cut may go through a character, whose first bytes are then not text.
    head = data[: 4 * _TEXT_MAX]
    try:
        text = head.decode() if len(head) == len(data) else head.decode(errors="ignore")
    except UnicodeDecodeError:
        text = ""
    if not text or not all(c.isprintable() or c in "\t\r\n" for c in text):
        return size
    if text[0] in "{[" and _is_json(data):
        return f"{size}  JSON {_cut(_printable(text))}"
    return f"{size}  {_quoted(text)}"


def _size(n: int) -> str:
    return "1 byte" if n == 1 else f"{n} bytes"


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _quoted(text: str) -> str:
    return f'"{_cut(_printable(text))}"'


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 2] + ".."
