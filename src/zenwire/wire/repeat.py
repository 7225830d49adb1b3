"""Messages that repeat others: publications that differ in time and payload alone.

A publication is read and written in order, and its payload is the last of it. So bytes that are
those of an earlier one up to there mean the same, and a message whose other fields are the same
has the same bytes before its payload. Both are remembered here; whatever is not known
is read and written as ever. What is learnt is tried first, so no fact of the wire stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from zenwire.errors import DecodeError
from zenwire.wire import kinds as k
from zenwire.wire import structs as s
from zenwire.wire.batch import BatchMessage, decode_batch
from zenwire.wire.buffer import Reader, Writer
from zenwire.wire.data import Put
from zenwire.wire.define import spec_of
from zenwire.wire.network import Push
from zenwire.wire.objects import encode
from zenwire.wire.structs import Timestamp
from zenwire.wire.transport import Frame
from zenwire.wire.values import Priority, ZenohId

__all__ = ["FrameHeads", "Known", "KnownReader", "KnownWriter", "with_body", "with_payload"]

LEARN_MAX: Final = 1024
"""How many publications are learnt; who has more to say is read and written as ever."""
HEAD_MAX: Final = 512
"""Bytes before a payload that are remembered."""

_INDEX: Final = 3
"""So many bytes of a publication find what is known of it."""
_OTHER_SN: Final = 300
_OTHER_PAYLOAD: Final = bytes(range(200))
_OTHER_TIME: Final = Timestamp(time=0x0123_4567_89AB_CDEF, id=ZenohId(bytes(range(1, 12))))


def _replacer(cls: type, *others: str) -> Callable[..., Any]:
    """A function that copies a message but for some fields."""
    names: dict[str, Any] = {"new": object.__new__, "cls": cls}
    lines = [f"def replace(old, {', '.join(others)}):", "    made = new(cls)"]
    for field in spec_of(cls).fields:
        names[f"set_{field.name}"] = getattr(cls, field.name).__set__
        value = field.name if field.name in others else f"old.{field.name}"
        lines.append(f"    set_{field.name}(made, {value})")
    lines.append("    return made")
    exec("\n".join(lines), names)  # noqa: S102 - the text is made of definitions, not of input
    made: Callable[..., Any] = names["replace"]
    return made


def _comparer(cls: type, name: str) -> Callable[[Any, Any], bool]:
    """A function that says whether two messages have the same in all fields but one."""
    # Mostly they are the same objects, which is seen at once.
    names = [f.name for f in spec_of(cls).fields if f.name != name]
    same = [f"(a.{name} is b.{name} or a.{name} == b.{name})" for name in names]
    made: Callable[[Any, Any], bool] = eval(f"lambda a, b: {' and '.join(same)}")  # noqa: S307
    return made


with_body: Final[Callable[[Push, Any], Push]] = _replacer(Push, "body")
"""The same publication of something else."""
with_payload: Final[Callable[[Put, bytes], Put]] = _replacer(Put, "payload")
"""The same PUT of another value."""
_with_time: Final[Callable[[Put, Any, bytes], Put]] = _replacer(Put, "timestamp", "payload")
_same_push: Final = _comparer(Push, "body")
_same_put: Final = _comparer(Put, "payload")


def _written(kind: Any, value: object) -> bytes:
    w = Writer()
    kind.write(w, value)
    return bytes(w.out)


_SIZES: Final = tuple(_written(k.payload, bytes(n))[: -n or None] for n in range(128))
"""What stands before short payloads; one byte."""
_LOW: Final = tuple(_written(k.z32, 128 + n)[:1] for n in range(128))
"""The first byte of a number that has several, by its lowest seven bits."""


class FrameHeads:
    """The FRAMEs of one lane, before their messages."""

    __slots__ = ("_after", "_before", "_high", "_rest")

    def __init__(self, priority: Priority, reliable: bool) -> None:
        whole = encode(Frame(reliable=reliable, sn=0, priority=priority))
        zero = _written(k.z32, 0)
        self._before, self._after = whole[:1], whole[1 + len(zero) :]
        self._high = 0
        self._rest = b""

    def head(self, sn: int) -> bytes:
        """Numbers go up one by one: most of their bytes are those of the one before."""
        high = sn >> 7
        if not high:
            return self._before + _written(k.z32, sn) + self._after
        if high != self._high:
            self._high = high
            self._rest = _written(k.z32, high) + self._after
        return self._before + _LOW[sn & 0x7F] + self._rest


class Known(NamedTuple):
    """A publication without its payload and its time, and the FRAME it came in."""

    frame: Frame
    push: Push
    put: Put
    heads: FrameHeads
    head: bytes
    """What stands before the time, if it has one, else before the payload."""
    after: bytes | None
    """What stands between the time and the payload; None if there is no time."""
    tag: int


class KnownReader:
    """Reads batches of one FRAME with one PUT, if it knows all but number, time and payload.

    ``last`` is what was read last. Of two that differ in their ``tag``, only that is known.
    """

    __slots__ = ("_known", "_left", "_r", "last")

    def __init__(self) -> None:
        self.last: Known | None = None
        self._known: dict[bytes, Known] = {}
        self._left = LEARN_MAX
        self._r = Reader(b"")

    def read(self, content: bytes, sn: int) -> Push | None:
        """The only message of a FRAME with this number; None for whatever else it is."""
        known = self.last
        if known is None:
            return None
        start = known.heads.head(sn)
        at = len(start)
        if not content.startswith(start):
            return None
        if not content.startswith(known.head, at):
            found = self._known.get(content[at : at + _INDEX])
            if found is None or found.tag != known.tag or not content.startswith(found.head, at):
                return None
            known = self.last = found
        at += len(known.head)
        size = len(content) - at - 1
        if known.after is None and 0 <= size < 128 and content[at] == _SIZES[size][0]:
            return with_body(known.push, with_payload(known.put, content[at + 1 :]))
        return self._rest(content, at, known)

    def _rest(self, content: bytes, at: int, known: Known) -> Push | None:
        """The same for what has a time, or a payload that is not short."""
        r = self._r
        r.buf, r.pos, r.end = content, at, len(content)
        time = None
        try:
            if known.after is not None:
                time = s.timestamp.read(r)
                if not content.startswith(known.after, r.pos):
                    return None
                r.pos += len(known.after)
            payload = k.payload.read(r)
        except DecodeError:
            return None
        if r.pos != r.end:
            return None
        return with_body(known.push, _with_time(known.put, time, payload))

    def learn(self, content: bytes, messages: list[BatchMessage], tag: int) -> None:
        """What a batch was read as: the next one may be known by it."""
        if len(messages) != 2 or not self._left:
            return
        frame, push = messages
        if type(frame) is not Frame or type(push) is not Push or type(push.body) is not Put:
            return
        self._left -= 1
        put = push.body
        heads = FrameHeads(frame.priority, frame.reliable)
        start = len(heads.head(frame.sn))
        head = content[start : len(content) - len(_written(k.payload, put.payload))]
        after: bytes | None = None
        other: Timestamp | None = None
        if put.timestamp is not None:
            head, _, after = head.partition(_written(s.timestamp, put.timestamp))
            other = _OTHER_TIME
        empty = _with_time(put, None, b"")
        known = Known(frame, with_body(push, empty), empty, heads, head, after, tag)
        if len(head) + len(after or b"") <= HEAD_MAX and self._holds(known, other):
            self.last = self._known[head[:_INDEX]] = known

    def _holds(self, known: Known, time: Timestamp | None) -> bool:
        """Whether another message that is known by this one is read as it should be."""
        frame = known.frame
        tail = b"" if time is None else _written(s.timestamp, time) + (known.after or b"")
        content = known.heads.head(_OTHER_SN) + known.head + tail
        try:
            tried = decode_batch(content + _written(k.payload, _OTHER_PAYLOAD))
        except DecodeError:
            return False
        return tried == [
            Frame(reliable=frame.reliable, sn=_OTHER_SN, priority=frame.priority),
            with_body(known.push, _with_time(known.put, time, _OTHER_PAYLOAD)),
        ]


class KnownWriter:
    """Writes PUTs whose fields but for the payload are those of one before."""

    __slots__ = ("_known", "_left")

    def __init__(self) -> None:
        self._known: dict[int, tuple[Push, Put, bytes]] = {}
        self._left = LEARN_MAX

    def write(self, push: Push) -> bytes:
        """The whole message. Raises EncodeError."""
        body = push.body
        if type(body) is not Put:
            return encode(push)
        # By what is slow to compare; it is kept, so that nothing else has this id.
        known = self._known.get(id(push.key))
        if known is not None and _same_push(known[0], push) and _same_put(known[1], body):
            payload = body.payload
            size = len(payload)
            if size < 128:
                return known[2] + _SIZES[size] + payload
            return known[2] + _written(k.payload, payload)
        data = encode(push)
        # What differs from one to the next is not worth it.
        varies = body.timestamp or body.attachment or body.source_info or push.timestamp_stack
        if known is None and varies is None and self._left:
            self._learn(push, body, data)
        return data

    def _learn(self, push: Push, put: Put, data: bytes) -> None:
        self._left -= 1
        head = data[: len(data) - len(_written(k.payload, put.payload))]
        other = encode(with_body(push, with_payload(put, _OTHER_PAYLOAD)))
        if len(head) <= HEAD_MAX and other == head + _written(k.payload, _OTHER_PAYLOAD):
            empty = with_payload(put, b"")
            self._known[id(push.key)] = with_body(push, empty), empty, head
