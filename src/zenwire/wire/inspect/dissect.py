"""Bytes of any origin to the messages in them, for people who look at bytes.

Unlike the codec this goes on after a fault, where there is a way to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from zenwire.errors import DecodeError, Fault
from zenwire.wire.batch import (
    BATCH_MAX,
    LOW_LATENCY_PREFIX,
    NETWORK_ID_MIN,
    STREAM_PREFIX,
    expand_batch,
    frame_stream,
    split_stream,
    walk,
    walk_low_latency,
)
from zenwire.wire.buffer import Reader
from zenwire.wire.define import spec_of
from zenwire.wire.inspect.trace import Span, trace_message, trace_struct
from zenwire.wire.linkstate import OAM_LINKSTATE, LinkStateList, decode_linkstate
from zenwire.wire.network import Oam
from zenwire.wire.objects import ID_MASK, encode, read_message
from zenwire.wire.transport import Close, Fragment, Frame, InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import Priority

__all__ = ["Entry", "Form", "Section", "dissect", "trace"]


class Form(StrEnum):
    """What bytes can be, as a whole."""

    STREAM = "stream"
    BATCH = "batch"
    SCOUTING = "scouting"
    NETWORK = "network"
    LOWLATENCY = "lowlatency"
    COMPRESSED_STREAM = "compressed-stream"
    COMPRESSED = "compressed"
    DATA = "data"
    DECLARE = "declare"
    LINKSTATE = "linkstate"

    @property
    def description(self) -> str:
        return _DESCRIPTIONS[self]


_DESCRIPTIONS = {
    Form.STREAM: "a stream of batches, each after a length of 2 bytes",
    Form.BATCH: "a batch, or a datagram of a session",
    Form.SCOUTING: "a scouting datagram",
    Form.NETWORK: "network messages without a FRAME",
    Form.LOWLATENCY: "a low-latency stream, each message after a length of 4 bytes",
    Form.COMPRESSED_STREAM: "a stream of batches with a compression header",
    Form.COMPRESSED: "a batch with a compression header",
    Form.DATA: "a data message",
    Form.DECLARE: "a declaration",
    Form.LINKSTATE: "a link state list",
}


@dataclass(slots=True)
class Entry:
    """Bytes ``start`` to ``end`` of a section: a message, or something around messages.

    ``layer`` is the scope of the message, ``framing`` for what is around. With a fault there is
    no message, unless what is wrong is only the link state that it carries.
    """

    start: int
    end: int
    layer: str
    message: object | None = None
    name: str = ""
    linkstate: LinkStateList | None = None
    fault: DecodeError | None = None


@dataclass(slots=True)
class Section:
    """A batch, or what was made of some: ``data`` is what the offsets of its entries refer to.

    ``derived`` names what was made: an expanded batch, a message put together from fragments.
    """

    data: bytes
    entries: list[Entry] = field(default_factory=list)
    batch: int = 0
    derived: str = ""


def dissect(data: bytes, form: Form) -> Iterator[Section]:
    """The sections in order; those that are not derived cover ``data``. Faults are entries."""
    match form:
        case Form.STREAM:
            yield from _Stream(data).sections(STREAM_PREFIX)
        case Form.LOWLATENCY:
            yield from _Stream(data).sections(LOW_LATENCY_PREFIX)
        case Form.COMPRESSED_STREAM:
            yield from _Stream(data, compressed=True).sections(STREAM_PREFIX)
        case Form.BATCH | Form.COMPRESSED:
            stream = _Stream(data, compressed=form is Form.COMPRESSED)
            yield from stream.batch(0, min(len(data), BATCH_MAX), [])
            if len(data) > BATCH_MAX:
                yield Section(data, [_beyond(data)])
        case Form.NETWORK:
            found = _network(data)
            while some := list(islice(found, _AT_ONCE)):
                yield Section(data, some)
        case Form.LINKSTATE:
            yield Section(data, [_linkstate(data)])
        case _:
            yield Section(data, list(_single(data, form.value)))


_AT_ONCE = 1000
"""Messages of a section; so that a large input takes no more memory than a small one."""
_LAST_CLOSE = frame_stream(encode(Close(reason=0)))
"""The reference ends a low-latency session with a CLOSE that has the shorter prefix."""


class _Stream:
    """Batches one after the other, and what they agree on as they go."""

    def __init__(self, data: bytes, *, compressed: bool = False) -> None:
        self.data = data
        self.compressed = compressed
        self.lowlatency = False
        self.count = 0
        self._offer: InitSyn | InitAck | None = None
        self._fragments: dict[tuple[bool, Priority], _Fragments] = {}

    def sections(self, prefix: int) -> Iterator[Section]:
        self.lowlatency = prefix == LOW_LATENCY_PREFIX
        pos, size = 0, len(self.data)
        while pos < size:
            self.count += 1
            start = pos + self._prefix(pos)
            end = start + int.from_bytes(self.data[pos:start], "little")
            lead = [Entry(pos, min(start, size), "framing", name=f"batch {self.count}")]
            if start > size:
                lead[0].fault = DecodeError(Fault.TRUNCATED, size, "batch", "the length is cut")
                yield Section(self.data, lead, self.count)
            else:
                yield from self.batch(start, end, lead)
            pos = end

    def _prefix(self, pos: int) -> int:
        last = len(self.data) - pos == len(_LAST_CLOSE) and self.data.endswith(_LAST_CLOSE)
        return LOW_LATENCY_PREFIX if self.lowlatency and not last else STREAM_PREFIX

    def batch(self, start: int, end: int, lead: list[Entry]) -> Iterator[Section]:
        """One batch, or what there is of it, and what can be made of it."""
        section = content = Section(self.data, lead, self.count)
        after, missing = end, end - len(self.data)
        end = min(end, len(self.data))
        if self.compressed and end > start:
            expanded = self._expand(section, start, end)
            yield section
            if expanded is None:
                return
            content = Section(expanded, [], self.count, "expanded batch")
            start, end = 0, len(expanded)
        read = _low_latency if self.lowlatency else _batch
        content.entries += read(content.data, start, end)
        if missing > 0 and not (content.entries and content.entries[-1].fault):
            fault = DecodeError(Fault.TRUNCATED, end, "batch", f"{missing} bytes are missing")
            content.entries.append(Entry(end, end, "framing", name="rest", fault=fault))
        yield content
        for entry in content.entries:
            yield from self._follow(entry, after)

    def _expand(self, section: Section, start: int, end: int) -> bytes | None:
        name = {0: "stored", 1: "LZ4"}.get(self.data[start], "compressed")
        entry = Entry(start, end, "framing", name=name)
        section.entries.append(entry)
        try:
            return expand_batch(self.data[start:end])
        except DecodeError as e:
            entry.fault = DecodeError(e.fault, start + e.offset, e.message, e.detail)
            return None

    def _follow(self, entry: Entry, after: int) -> Iterator[Section]:
        """What a message changes for those that come ``after``."""
        match entry.message:
            case InitSyn() | InitAck():
                self._offer = entry.message
            case OpenSyn() | OpenAck() if self._offer is not None:
                self._agree(self._offer, after)
            case Fragment():
                yield from self._fragment(entry.message)

    def _agree(self, offer: InitSyn | InitAck, pos: int) -> None:
        """One side alone shows an offer, or an answer: what follows shows whether it holds."""
        if offer.lowlatency:
            rest = self.data[pos:].removesuffix(_LAST_CLOSE)
            self.lowlatency = _tiles(rest, LOW_LATENCY_PREFIX)
        if offer.compression:
            first = next(split_stream(self.data, start=pos), None)
            self.compressed = first is None or _is_compressed(self.data[slice(*first)])

    def _fragment(self, message: Fragment) -> Iterator[Section]:
        lane = (message.reliable, message.priority)
        if message.drop:
            self._fragments.pop(lane, None)
            return
        if message.first or lane not in self._fragments:
            self._fragments[lane] = _Fragments(certain=message.first)
        pieces = self._fragments[lane]
        pieces.data += message.payload
        pieces.count += 1
        if message.more:
            return
        del self._fragments[lane]
        whole = bytes(pieces.data)
        entries = list(_single(whole, "network")) if whole else []
        # Without its first fragment it is not a message.
        if entries and (pieces.certain or not any(entry.fault for entry in entries)):
            made = f"message of {pieces.count} fragments"
            yield Section(whole, entries, self.count, made)


@dataclass(slots=True)
class _Fragments:
    certain: bool
    data: bytearray = field(default_factory=bytearray)
    count: int = 0


def _batch(data: bytes, start: int, end: int) -> Iterator[Entry]:
    pos, framed = start, False
    try:
        for found in walk(data, start, end):
            pos = found.end
            network = framed and data[found.start] & ID_MASK >= NETWORK_ID_MIN
            framed = network or isinstance(found.message, Frame)
            layer = "network" if network else "transport"
            yield _opened(Entry(found.start, pos, layer, found.message))
            if isinstance(found.message, Close) and pos < end:
                yield Entry(pos, end, "framing", name="ignored after CLOSE")
    except DecodeError as fault:
        network = framed and data[pos] & ID_MASK >= NETWORK_ID_MIN
        yield Entry(pos, end, "network" if network else "transport", fault=fault)


def _low_latency(data: bytes, start: int, end: int) -> Iterator[Entry]:
    pos = start
    layer = "network" if start < end and data[start] & ID_MASK >= NETWORK_ID_MIN else "transport"
    try:
        for found in walk_low_latency(data, start, end):
            pos = found.end
            yield _opened(Entry(found.start, pos, layer, found.message))
            if isinstance(found.message, Close) and pos < end:
                yield Entry(pos, end, "framing", name="ignored after CLOSE")
    except DecodeError as fault:
        yield Entry(pos, end, layer if pos == start else "framing", fault=fault)


def _network(data: bytes) -> Iterator[Entry]:
    r = Reader(data)
    at = 0
    try:
        while r.pos < r.end:
            at = r.pos
            message = read_message(r, "network")
            yield _opened(Entry(at, r.pos, "network", message))
    except DecodeError as fault:
        yield Entry(at, len(data), "network", fault=fault)


def _beyond(data: bytes) -> Entry:
    """What is there after the longest batch."""
    detail = f"a batch has at most {BATCH_MAX} bytes"
    fault = DecodeError(Fault.LIMIT, BATCH_MAX, "batch", detail)
    return Entry(BATCH_MAX, len(data), "framing", fault=fault)


def _single(data: bytes, scope: str) -> Iterator[Entry]:
    r = Reader(data)
    try:
        message = read_message(r, scope)
    except DecodeError as fault:
        yield Entry(0, len(data), scope, fault=fault)
        return
    yield _opened(Entry(0, r.pos, scope, message))
    if r.pos < r.end:
        trailing = DecodeError(Fault.TRAILING, r.pos, spec_of(type(message)).name)
        yield Entry(r.pos, r.end, "framing", fault=trailing)


def _linkstate(data: bytes) -> Entry:
    try:
        return Entry(0, len(data), "linkstate", decode_linkstate(data))
    except DecodeError as fault:
        return Entry(0, len(data), "linkstate", fault=fault)


def _opened(entry: Entry) -> Entry:
    """With the link state that an OAM carries: its body is its end."""
    oam = entry.message
    if isinstance(oam, Oam) and oam.id == OAM_LINKSTATE and isinstance(oam.body, bytes):
        try:
            entry.linkstate = decode_linkstate(oam.body)
        except DecodeError as e:
            at = entry.end - len(oam.body) + e.offset
            entry.fault = DecodeError(e.fault, at, e.message, e.detail)
    return entry


def _tiles(data: bytes, prefix: int) -> bool:
    """Whether the lengths before the batches lead to the end exactly."""
    ends = [0]
    try:
        ends += [end for _, end in split_stream(data, prefix)]
    except DecodeError:
        return False
    return ends[-1] == len(data)


def _is_compressed(batch: bytes) -> bool:
    try:
        content = expand_batch(batch)
    except DecodeError:
        return False
    return bool(content) and not any(entry.fault for entry in _batch(content, 0, len(content)))


def trace(section: Section, entry: Entry) -> Span:
    """The fields of an entry of a section, by their places in the section's data."""
    if entry.layer == "framing":
        return Span(entry.name, entry.start, entry.end, whole=entry.fault is None)
    r = Reader(section.data, entry.start, entry.end)
    if entry.layer == "linkstate":
        return trace_struct(r, LinkStateList)[0]
    span, fault = trace_message(r, entry.layer)
    if entry.message is None and str(fault) != str(entry.fault):
        # Its fields may be well-formed, but it has no place here.
        return Span("", entry.start, entry.end, whole=False)
    body = span.find("body")
    if body is not None and isinstance(entry.message, Oam) and (entry.linkstate or entry.fault):
        start = body.end - len(body.value)
        inner = trace_struct(Reader(section.data, start, body.end), LinkStateList)[0]
        body.children = inner.children
    return span
