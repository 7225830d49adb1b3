"""The traffic that is measured: streams of batches, each with its length before it.

The uniform sets are what the reference's publisher sends, byte for byte, for the puts that their
names say; batches are full. ``mix`` has every optional part of a publication at random, so that
nothing can be guessed from the message before. ``recorded`` is a capture. ``control`` is what
nodes say about queries and declarations.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Final

from tests import recorded
from zenwire.wire.batch import decode_batch, encode_batch, frame_stream
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import (
    Declaration,
    Declare,
    Interest,
    NetworkMessage,
    Push,
    Request,
    Response,
    ResponseFinal,
)
from zenwire.wire.structs import ResponderId, SourceInfo, Timestamp
from zenwire.wire.transport import Frame
from zenwire.wire.values import Mapping, QoS, QueryableInfo, WireExpr, ZenohId

__all__ = ["DATA", "NAMES", "Traffic", "build"]

BATCH_SIZE: Final = 65_480
"""What the reference negotiates on loopback."""
STREAM_SIZE: Final = 4 * 2**20
QUICK_SIZE: Final = 2**20

_BLOCK = QoS(0x0D)
_ZID = ZenohId(bytes(range(1, 17)))
_TIME = 0x6AFA05EA7C787F40


@dataclass(frozen=True)
class Traffic:
    """Batches, with ``messages`` network messages and ``payload`` bytes of payload in them."""

    name: str
    batches: tuple[bytes, ...]
    messages: int
    payload: int

    @property
    def stream(self) -> bytes:
        return b"".join(map(frame_stream, self.batches))

    def head(self, messages: int) -> Traffic:
        """Whole batches with so many messages or some more: for contenders that are slow."""
        some: list[bytes] = []
        for batch in self.batches:
            if messages <= 0:
                break
            some.append(batch)
            messages -= sum(isinstance(m, NetworkMessage) for m in decode_batch(batch))
        return _of_batches(self.name, tuple(some))

    def data(self) -> Traffic:
        """The batches that have nothing but publications in them."""
        return _of_batches(self.name, tuple(filter(_is_data, self.batches)))


@cache
def build(name: str, *, quick: bool = False) -> Traffic:
    """The set of that name; always the same bytes."""
    if name == "recorded":
        path = next(p for p in recorded.CAPTURES if p.stem == "thousands")
        batches = tuple(b.data for b in recorded.batches(path))
        return _of_batches(name, batches[: len(batches) // 16 if quick else None])
    # Seeded by the name: a set does not depend on which others are built.
    messages = _SETS[name](random.Random(name))
    size = QUICK_SIZE if quick else STREAM_SIZE
    # The messages of ``control`` are all different, and take long to make.
    return _pack(name, messages, size if name in DATA else size // 4)


def _pack(name: str, messages: Iterator[NetworkMessage], size: int) -> Traffic:
    """Full batches of one FRAME each, until ``size`` bytes are reached."""
    batches: list[bytes] = []
    count = payload = 0
    sn = 2**21  # four bytes, as most have
    batch = bytearray(encode_batch([Frame(sn=sn, reliable=True)]))
    raw, known = b"", None
    for message in messages:
        if message is not known:
            raw, known = encode_batch([message]), message
        if len(batch) + len(raw) > BATCH_SIZE:
            batches.append(bytes(batch))
            size -= len(batch)
            if size <= 0:
                break
            sn += 1
            batch = bytearray(encode_batch([Frame(sn=sn, reliable=True)]))
        batch += raw
        count += 1
        payload += _payload(message)
    return Traffic(name, tuple(batches), count, payload)


def _of_batches(name: str, batches: tuple[bytes, ...]) -> Traffic:
    found = [m for b in batches for m in decode_batch(b) if isinstance(m, NetworkMessage)]
    return Traffic(name, batches, len(found), sum(map(_payload, found)))


def _payload(message: object) -> int:
    """Bytes of the payload, however deep it stands."""
    while (body := getattr(message, "body", None)) is not None:
        message = body
    return len(getattr(message, "payload", b""))


def _is_data(batch: bytes) -> bool:
    return all(isinstance(message, Frame | Push) for message in decode_batch(batch))


def _uniform(message: Push) -> Callable[[random.Random], Iterator[Push]]:
    return lambda _: repeat(message)


def _put(size: int, qos: QoS = _BLOCK) -> Callable[[random.Random], Iterator[Push]]:
    return _uniform(Push(key=WireExpr(1), qos=qos, body=Put(payload=bytes(size))))


def _routed(size: int) -> Callable[[random.Random], Iterator[Push]]:
    """As a router passes it on: with a timestamp, and the receiver's own id for the key."""
    key = WireExpr(1, mapping=Mapping.RECEIVER)
    body = Put(payload=bytes(size), timestamp=Timestamp(time=_TIME, id=_ZID))
    return _uniform(Push(key=key, qos=_BLOCK, body=body))


def _key(rng: random.Random) -> WireExpr:
    scope = rng.randrange(1, 128) if rng.random() < 0.5 else rng.randrange(128, 16_384)
    suffix = rng.choice(["", "", "/a", "/temp", "/room/1", "/sensor/12/value"])
    return WireExpr(scope, suffix, rng.choice(list(Mapping)))


def _timestamp(rng: random.Random) -> Timestamp:
    return Timestamp(time=_TIME + rng.randrange(2**40), id=_ZID)


def _mix(rng: random.Random) -> Iterator[Push]:
    while True:
        timestamp = _timestamp(rng) if rng.random() < 0.5 else None
        source = None
        if rng.random() < 0.3:
            source = SourceInfo(zid=_ZID, eid=rng.randrange(1, 300), sn=rng.randrange(1, 30_000))
        attachment = rng.randbytes(rng.randrange(1, 30)) if rng.random() < 0.3 else None
        body: Put | Del
        if rng.random() < 0.05:
            body = Del(timestamp=timestamp, source_info=source, attachment=attachment)
        else:
            encoding = Encoding()
            if rng.random() < 0.4:
                schema = b"schema1" if rng.random() < 0.3 else None
                encoding = Encoding(rng.randrange(1, 53), schema)
            body = Put(
                timestamp=timestamp,
                encoding=encoding,
                source_info=source,
                attachment=attachment,
                payload=rng.randbytes(2 + int(359 * rng.random() ** 5)),
            )
        qos = _BLOCK if rng.random() < 0.5 else QoS()
        yield Push(key=_key(rng), qos=qos, body=body)


def _control(rng: random.Random) -> Iterator[NetworkMessage]:
    while True:
        yield rng.choice(_CONTROL)(rng)


def _request(rng: random.Random) -> Request:
    parameters = rng.choice(["", "_time=[now(-1h)..]", "a=1;b=2"])
    timeout = rng.choice([None, 10_000])
    body = Query(parameters=parameters)
    id_ = rng.randrange(10_000)
    return Request(request_id=id_, key=_key(rng), qos=_BLOCK, timeout=timeout, body=body)


def _response(rng: random.Random) -> Response:
    body: Reply | Err
    if rng.random() < 0.1:
        body = Err(payload=b"no such key", encoding=Encoding(1))
    else:
        put = Put(payload=rng.randbytes(rng.randrange(8, 64)), timestamp=_timestamp(rng))
        body = Reply(body=put)
    responder = ResponderId(zid=_ZID, eid=rng.randrange(1, 300))
    id_ = rng.randrange(10_000)
    key = _key(rng)
    return Response(request_id=id_, key=key, qos=_BLOCK, responder=responder, body=body)


def _response_final(rng: random.Random) -> ResponseFinal:
    return ResponseFinal(request_id=rng.randrange(10_000), qos=_BLOCK)


def _declare(rng: random.Random) -> Declare:
    id_, key = rng.randrange(1, 10_000), _key(rng)
    body: Declaration = rng.choice(
        (
            DeclareKeyExpr(expr_id=id_, key=WireExpr(0, "building/3/room/12")),
            DeclareSubscriber(id=id_, key=key),
            DeclareQueryable(id=id_, key=key, info=QueryableInfo(complete=True)),
            DeclareToken(id=id_, key=key),
            UndeclareSubscriber(id=id_),
            UndeclareToken(id=id_, key=key),
            DeclareFinal(),
        )
    )
    return Declare(interest_id=rng.choice([None, id_]), body=body)


def _interest(rng: random.Random) -> Interest:
    return Interest(id=rng.randrange(1, 10_000), subscribers=True, key=_key(rng))


_CONTROL: Final[tuple[Callable[[random.Random], NetworkMessage], ...]] = (
    _request,
    _response,
    _response,
    _response_final,
    _declare,
    _declare,
    _interest,
)

_SETS: Final[dict[str, Callable[[random.Random], Iterator[NetworkMessage]]]] = {
    "8 B": _put(8),
    "8 B default qos": _put(8, QoS()),
    "100 B": _put(100),
    "1 KiB": _put(1024),
    "8 B routed": _routed(8),
    "mix": _mix,
    "control": _control,
}

NAMES: Final = (*_SETS, "recorded")
DATA: Final = tuple(name for name in NAMES if name != "control")
"""The sets that are publications, or almost: ``recorded`` begins with a handshake."""
