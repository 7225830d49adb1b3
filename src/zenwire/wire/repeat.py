"""Messages that repeat others: all but numbers, times and payloads is what it was before.

A message is read and written in order. So bytes that are those of an earlier one up to a number, a
time or a payload, and again after it, mean the same, and a message whose other fields are the same
has the same bytes around them. Both are remembered here, for publications, queries, replies and
their ends; whatever is not known is read and written as ever. What is learnt is tried first, so no
fact of the wire stands here. `zenwire.wire.rewrite` writes by what is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from zenwire.errors import DecodeError
from zenwire.wire import kinds as k
from zenwire.wire import structs as s
from zenwire.wire.batch import BatchMessage, decode_batch, walk
from zenwire.wire.buffer import Reader, Writer
from zenwire.wire.data import Put, Reply
from zenwire.wire.define import blank_of, spec_of
from zenwire.wire.network import NetworkMessage, Push, Request, Response, ResponseFinal
from zenwire.wire.objects import encode
from zenwire.wire.structs import Timestamp
from zenwire.wire.transport import Frame
from zenwire.wire.values import Priority, ZenohId

__all__ = [
    "LEARN_MAX",
    "Counted",
    "FrameHeads",
    "Known",
    "KnownReader",
    "Lane",
    "final_of",
    "request_of",
    "response_of",
    "sized",
    "with_body",
    "with_payload",
    "with_reply",
    "with_timestamp",
]

LEARN_MAX: Final = 1024
"""How often something is learnt; who has more to say is read and written as ever."""
HEAD_MAX: Final = 512
"""Bytes before a payload that are remembered."""
LIKE_MAX: Final = 8
"""Messages that begin alike and are told apart by what follows their number."""
TOGETHER_MAX: Final = 4
"""Messages of a batch that are known; of longer ones, each costs little as it is."""

_INDEX: Final = 3
"""So many bytes of a publication find what is known of it."""
_NUMBER_MAX: Final = 0xFFFF_FFFF
_OTHER_NUMBER: Final = 300
_OTHER_PAYLOAD: Final = bytes(range(200))
_OTHER_TIME: Final = Timestamp(time=0x0123_4567_89AB_CDEF, id=ZenohId(bytes(range(1, 12))))


def _replacer(cls: type, *others: str) -> Callable[..., Any]:
    """A function that copies a message but for some fields."""
    names: dict[str, Any] = {"blank": blank_of(cls), "cls": cls}
    lines = [f"def replace(old, {', '.join(others)}):", "    made = blank()"]
    for field in spec_of(cls).fields:
        value = field.name if field.name in others else f"old.{field.name}"
        lines.append(f"    made.{field.name} = {value}")
    lines += ["    made.__class__ = cls", "    return made"]
    exec("\n".join(lines), names)  # noqa: S102 - the text is made of definitions, not of input
    made: Callable[..., Any] = names["replace"]
    return made


with_body: Final[Callable[[Push, Any], Push]] = _replacer(Push, "body")
"""The same publication of something else."""
with_payload: Final[Callable[[Put, bytes], Put]] = _replacer(Put, "payload")
"""The same PUT of another value."""
with_reply: Final[Callable[[Reply, Any], Reply]] = _replacer(Reply, "body")
"""The same reply of something else."""
with_timestamp: Final[Callable[[Put, Any], Put]] = _replacer(Put, "timestamp")
"""The same PUT with another time."""
request_of: Final[Callable[[Request, int, Any], Request]] = _replacer(Request, "request_id", "key")
"""The same request with another number, and its key in other words."""
response_of: Final[Callable[[Response, int, Any], Response]] = _replacer(
    Response, "request_id", "body"
)
"""The same response to another request, with something else in it."""
final_of: Final[Callable[[ResponseFinal, int], ResponseFinal]] = _replacer(
    ResponseFinal, "request_id"
)
"""The same final of another request."""


def _written(kind: Any, value: object) -> bytes:
    w = Writer()
    kind.write(w, value)
    return bytes(w.out)


_SIZES: Final = tuple(_written(k.payload, bytes(n))[: -n or None] for n in range(128))
"""What stands before short payloads; one byte."""
_SIZE_OF: Final = {before[0]: n for n, before in enumerate(_SIZES)}
_LOW: Final = tuple(_written(k.z32, 128 + n)[:1] for n in range(128))
"""The first byte of a number that has several, by its lowest seven bits."""


def sized(payload: bytes) -> bytes:
    """A payload as it is written."""
    size = len(payload)
    return _SIZES[size] + payload if size < 128 else _written(k.payload, payload)


class Counted:
    """The same bytes around a number that mostly goes up one by one."""

    __slots__ = ("_after", "_before", "_high", "_rest")

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before, self._after = before, after
        self._high = -1
        self._rest = b""

    @property
    def around(self) -> tuple[bytes, bytes]:
        """What stands before the number, and what after it."""
        return self._before, self._after

    def head(self, number: int) -> bytes:
        """Most bytes of a number are those of the one before."""
        if number >> 7 != self._high:
            written = _written(k.z32, number)
            if len(written) == 1:
                return self._before + written + self._after
            self._high, self._rest = number >> 7, written[1:] + self._after
        return self._before + _LOW[number & 0x7F] + self._rest


class FrameHeads(Counted):
    """The FRAMEs of one lane, before their messages."""

    __slots__ = ()

    def __init__(self, priority: Priority, reliable: bool) -> None:
        whole = encode(Frame(reliable=reliable, sn=0, priority=priority))
        super().__init__(whole[:1], whole[1 + len(_written(k.z32, 0)) :])


def _maker(outer: type, *inner: type) -> Callable[..., Any]:
    """A function that copies a message, and what is in its body, but for what varies in them."""
    varies = {"request_id": "number", "timestamp": "time", "payload": "payload"}
    names: dict[str, Any] = {}
    lines = ["def make(old, number, time, payload):"]
    lines += [f"    old{n} = old{n - 1 or ''}.body" for n in range(1, len(inner) + 1)]
    for depth, cls in reversed(list(enumerate((outer, *inner)))):
        names |= {f"cls{depth}": cls, f"blank{depth}": blank_of(cls)}
        lines.append(f"    made{depth} = blank{depth}()")
        for field in spec_of(cls).fields:
            value = f"old{depth or ''}.{field.name}"
            if field.name == "body" and depth < len(inner):
                value = f"made{depth + 1}"
            elif cls is Put or field.name == "request_id":
                value = varies.get(field.name, value)
            lines.append(f"    made{depth}.{field.name} = {value}")
        lines.append(f"    made{depth}.__class__ = cls{depth}")
    lines.append("    return made0")
    exec("\n".join(lines), names)  # noqa: S102 - the text is made of definitions, not of input
    made: Callable[..., Any] = names["make"]
    return made


_MAKE: Final[dict[type, Callable[[Any, int, Timestamp | None, bytes], NetworkMessage]]] = {
    Push: _maker(Push, Put),
    Request: _maker(Request),
    Response: _maker(Response, Reply, Put),
    ResponseFinal: _maker(ResponseFinal),
}
"""What varies in each kind of message: its number, the time and the payload of the PUT in it."""


def _put_in(message: Any) -> Put | None:
    """The PUT in a message."""
    body = message.body if type(message) in (Push, Response) else None
    inner = body.body if type(body) is Reply else body
    return inner if type(inner) is Put else None


def _repeats(message: Any) -> bool:
    """Whether a message is one of those that are known by others."""
    kind = type(message)
    return kind in (Request, ResponseFinal) or _put_in(message) is not None


@dataclass(frozen=True, slots=True)
class Lane:
    """Whose numbers FRAMEs have."""

    frame: Frame
    heads: FrameHeads
    tag: int


@dataclass(frozen=True, slots=True)
class Known:
    """A message without what varies in it."""

    make: Callable[[Any, int, Timestamp | None, bytes], NetworkMessage]
    like: Any
    put: Put | None
    before: bytes
    """What stands before the number, if it has one."""
    head: bytes
    """What stands between that and the time, the payload or the end."""
    after: bytes | None
    """What stands between the time and the payload; None if there is no time."""

    @classmethod
    def of(cls, data: bytes, message: Any) -> Known | None:
        """What one message teaches, and these are its bytes; None if it is not as expected."""
        put, before, after, time = _put_in(message), b"", None, None
        if type(message) is not Push:
            before, number = data[:1], _written(k.z32, message.request_id)
            if not data.startswith(number, 1):
                return None
            data = data[1 + len(number) :]
        if put is not None:
            data = data[: len(data) - len(_written(k.payload, put.payload))]
            if put.timestamp is not None:
                time = _OTHER_TIME
                data, _, after = data.partition(_written(s.timestamp, put.timestamp))
        make = _MAKE[type(message)]
        like = make(message, 0, None, b"")
        known = cls(make, like, _put_in(like), before, data, after)
        short = len(data) + len(after or b"") <= HEAD_MAX
        return known if short and known._holds(time) else None

    def _holds(self, time: Timestamp | None) -> bool:
        """Whether another message that is known by this one is read as it should be."""
        frame = Frame(reliable=True, sn=0)
        content = encode(frame) + self.before
        content += _written(k.z32, _OTHER_NUMBER) if self.before else b""
        content += self.head
        if time is not None:
            content += _written(s.timestamp, time) + (self.after or b"")
        if self.put is not None:
            content += _written(k.payload, _OTHER_PAYLOAD)
        try:
            tried = decode_batch(content)
        except DecodeError:
            return False
        return tried == [frame, self.make(self.like, _OTHER_NUMBER, time, _OTHER_PAYLOAD)]


class _Numbered:
    """A message with a number, and the number that it has next, mostly."""

    __slots__ = ("counted", "known", "next")

    def __init__(self, known: Known) -> None:
        self.known = known
        self.counted = Counted(known.before, known.head)
        self.next = 0


def _timed(r: Reader, content: bytes, known: Known, number: int) -> NetworkMessage | None:
    """A message of which the time, if it has one, and the payload are not read yet."""
    time, payload = None, b""
    if known.put is not None:
        if known.after is not None:
            time = s.timestamp.read(r)
            if not content.startswith(known.after, r.pos):
                return None
            r.pos += len(known.after)
        payload = k.payload.read(r)
    return known.make(known.like, number, time, payload)


class KnownReader:
    """Reads batches of one FRAME with few messages, if it knows all but what varies in them.

    ``last`` is the lane that was learnt last. Of two, only that is known.
    """

    __slots__ = ("_known", "_left", "_numbered", "_push", "_r", "last")

    def __init__(self) -> None:
        self.last: Lane | None = None
        self._push: Known | None = None
        self._known: dict[bytes, Known] = {}
        self._numbered: dict[int, list[_Numbered]] = {}
        self._left = LEARN_MAX
        self._r = Reader(b"")

    def read(
        self, content: bytes, sn: int, at: int = 0, end: int | None = None
    ) -> list[NetworkMessage] | None:
        """The messages of a batch that is one FRAME, with this number, from ``at`` to ``end``.

        None for whatever else it is.
        """
        lane = self.last
        if lane is None:
            return None
        head = lane.heads.head(sn)
        if not content.startswith(head, at):
            return None
        at += len(head)
        end = len(content) if end is None else end
        push = self._push
        if push is not None and push.after is None and content.startswith(push.head, at):
            after = at + len(push.head)
            size = end - after - 1
            if 0 <= size < 128 and content[after] == _SIZES[size][0]:
                return [push.make(push.like, 0, None, content[after + 1 : end])]
        numbered = self._numbered
        found: list[NetworkMessage] = []
        while at < end:
            if len(found) == TOGETHER_MAX:
                return None
            like = numbered.get(content[at])
            if like is not None:
                one = like[0]
                known, number = one.known, one.next
                expected = one.counted.head(number)
                if known.after is None and content.startswith(expected, at):
                    # As most often: the next number, and a short payload, or none.
                    start, size = at + len(expected), 0
                    if known.put is not None:
                        size = _SIZE_OF.get(content[start], end) if start < end else end
                        start += 1
                    if start + size <= end:
                        one.next = number + 1 & _NUMBER_MAX
                        at = start + size
                        found.append(known.make(known.like, number, None, content[start:at]))
                        continue
            r = self._r
            r.buf, r.pos, r.end = content, at, end
            try:
                message = self._message(r, content)
            except DecodeError:
                return None
            if message is None:
                return None
            found.append(message)
            at = r.pos
        # What is known may have been found in bytes of the next batch, too.
        return found if found and at == end else None

    def _message(self, r: Reader, content: bytes) -> NetworkMessage | None:
        like = self._numbered.get(content[r.pos])
        if like is not None:
            return self._other_number(r, content, like)
        known = self._known.get(content[r.pos : r.pos + _INDEX])
        if known is None or not content.startswith(known.head, r.pos):
            return None
        self._push = known
        r.pos += len(known.head)
        return _timed(r, content, known, 0)

    def _other_number(
        self, r: Reader, content: bytes, like: list[_Numbered]
    ) -> NetworkMessage | None:
        """A message of any number, like any that is known."""
        r.pos += 1
        number = k.z32.read(r)
        for one in like:
            if content.startswith(one.known.head, r.pos):
                r.pos += len(one.known.head)
                one.next = number + 1 & _NUMBER_MAX
                return _timed(r, content, one.known, number)
        return None

    def learn(self, content: bytes, messages: list[BatchMessage], tag: int) -> None:
        """What a batch was read as: the next one may be known by it."""
        if not self._left or not 1 < len(messages) <= 1 + TOGETHER_MAX:
            return
        frame, *others = messages
        if type(frame) is not Frame or not all(map(_repeats, others)):
            return
        self._left -= 1
        start, *rest = walk(content)
        heads = FrameHeads(frame.priority, frame.reliable)
        if heads.head(frame.sn) != content[: start.end]:
            return
        for one in rest:
            known = Known.of(content[one.start : one.end], one.message)
            if known is None:
                return
            self._keep(known)
        self.last = Lane(frame, heads, tag)

    def _keep(self, known: Known) -> None:
        if not known.before:
            self._push = self._known[known.head[:_INDEX]] = known
            return
        like = self._numbered.setdefault(known.before[0], [])
        others = [one for one in like if one.known.head != known.head]
        like[:] = [_Numbered(known), *others][:LIKE_MAX]
