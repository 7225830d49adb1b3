"""What a peer may say in an open session, good and bad, at random."""

from __future__ import annotations

from random import Random

from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.data import Del, Put
from zenwire.wire.declare import DeclareKeyExpr, DeclareSubscriber, UndeclareKeyExpr
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Declare, NetworkMessage, Push
from zenwire.wire.objects import encode
from zenwire.wire.structs import SourceInfo, StackEntry, Timestamp, TimestampStack
from zenwire.wire.transport import Close, Fragment, Frame, KeepAlive, TransportOam
from zenwire.wire.values import CongestionControl, Mapping, Priority, QoS, WireExpr, ZenohId

ZID = ZenohId(bytes(range(1, 17)))
KEYS = {1: "demo/one", 2: "demo/two", 3: "other"}
"""The aliases that a talk begins with."""


class Talk:
    """One direction of a session: the batches that it says, and the numbers of its lanes."""

    def __init__(self, seed: object, first_sn: int = 0, mask: int = 2**28 - 1) -> None:
        self.random = Random(str(seed))
        self.mask = mask
        self._next = dict.fromkeys(range(16), first_sn)
        self._undeclared: set[int] = set()

    def frame(self, priority: Priority = Priority.DATA, *, reliable: bool = True) -> Frame:
        return Frame(reliable=reliable, sn=self._sn(priority, reliable), priority=priority)

    def _sn(self, priority: Priority, reliable: bool) -> int:
        lane = 2 * priority + reliable
        sn = self._next[lane]
        self._next[lane] = sn + 1 & self.mask
        return sn

    def aliases(self) -> bytes:
        """What every talk begins with."""
        declared = [
            Declare(qos=QoS(0x08), body=DeclareKeyExpr(expr_id=one, key=WireExpr(0, key)))
            for one, key in KEYS.items()
        ]
        return encode_batch([self.frame(Priority.CONTROL), *declared])

    def push(self) -> Push:
        """A publication that may have anything."""
        r = self.random
        qos = r.choice(
            [QoS(), QoS(), QoS.of(congestion_control=CongestionControl.BLOCK), QoS(0x1F)]
        )
        return Push(key=self._key(), qos=qos, body=self._body(r.choice([True, True, True, False])))

    def _key(self) -> WireExpr:
        r = self.random
        kind = r.random()
        if kind < 0.6:
            return WireExpr(r.choice([1, 1, 1, 2]), "", Mapping.SENDER)
        if kind < 0.8:
            return WireExpr(1, f"/{r.randrange(5)}", Mapping.SENDER)
        if kind < 0.98:
            return WireExpr(0, r.choice(["demo/three", "other/é", f"demo/x/{r.randrange(99)}"]))
        # Unknown, and no keys.
        return r.choice([WireExpr(77, "", Mapping.SENDER), WireExpr(0, "a//b"), WireExpr(1)])

    def _body(self, put: bool) -> Put | Del:
        r = self.random
        maybe = r.random() < 0.5
        timestamp = (
            Timestamp(time=r.getrandbits(64), id=ZID) if maybe and r.random() < 0.5 else None
        )
        source = SourceInfo(zid=ZID, eid=r.getrandbits(32), sn=r.getrandbits(32))
        source_info = source if maybe and r.random() < 0.3 else None
        attachment = r.randbytes(r.randrange(20)) if maybe and r.random() < 0.3 else None
        if not put:
            return Del(timestamp=timestamp, source_info=source_info, attachment=attachment)
        encoding = Encoding()
        if maybe and r.random() < 0.4:
            schema = r.choice([None, b"", b"schema"])
            encoding = Encoding(r.choice([0, 3, 5]), schema)
        return Put(
            timestamp=timestamp,
            encoding=encoding,
            source_info=source_info,
            attachment=attachment,
            payload=r.randbytes(r.choice([0, 3, 8, 16, 17, 40, 100, 300])),
        )

    def plain(self, most: int = 40) -> bytes:
        """FRAMEs of publications."""
        r = self.random
        messages: list[object] = []
        for _ in range(r.choice([1, 1, 1, 2])):
            best_effort = r.random() < 0.15
            messages.append(
                self.frame(
                    r.choice([Priority.DATA] * 4 + [Priority.REAL_TIME]), reliable=not best_effort
                )
            )
            messages += [self.push() for _ in range(r.randrange(most))]
        if r.random() < 0.1:
            messages.append(KeepAlive())
        return encode_batch(messages)

    def other(self) -> list[bytes]:
        """Something else."""
        r = self.random
        stack = TimestampStack(record=7, entries=(StackEntry(point=0x81, stamp=b"12345678"),))
        match r.randrange(11):
            case 0:
                return [encode_batch([KeepAlive()])]
            case 1:
                return [b""]
            case 2:
                return self.fragments(self.push(), more=r.random() < 0.2)
            case 3:
                self._sn(Priority.DATA, True)  # lost on the way
                return []
            case 4:
                batch = self.plain()
                return [batch, batch]
            case 5:
                frame = Frame(reliable=True, sn=self._next[11] - 9 & self.mask)
                return [encode_batch([frame, self.push()])]
            case 6:
                return [encode_batch([TransportOam(id=7, body=b"x"), self.frame(), self.push()])]
            case 7:
                return [self.declare()]
            case 8:
                put = Put(payload=b"segment", shm=True)
                return [
                    encode_batch(
                        [self.frame(), Push(key=WireExpr(1, "", Mapping.SENDER), body=put)]
                    )
                ]
            case 9:
                push = Push(
                    key=WireExpr(0, "demo/stamped"), timestamp_stack=stack, body=Put(payload=b"")
                )
                return [encode_batch([self.frame(), push, self.push()])]
            case _:
                return [encode_batch([self.frame()])]

    def declare(self) -> bytes:
        """Keys come and go between publications."""
        r = self.random
        if self._undeclared:
            one = self._undeclared.pop()
            body: object = DeclareKeyExpr(expr_id=one, key=WireExpr(0, KEYS[one]))
        elif r.random() < 0.5:
            self._undeclared.add(2)
            body = UndeclareKeyExpr(expr_id=2)
        else:
            body = DeclareSubscriber(id=r.randrange(9), key=WireExpr(0, "of/theirs"))
        messages: list[NetworkMessage] = [self.push(), Declare(body=body), self.push()]  # type: ignore[arg-type]
        return encode_batch([self.frame(), *messages])

    def fragments(self, message: Push, *, more: bool = False) -> list[bytes]:
        """A message in pieces; ``more`` leaves out the last."""
        data = encode(message)
        cut = max(1, len(data) // 3)
        pieces = [data[at : at + cut] for at in range(0, len(data), cut)]
        found = [
            encode_batch(
                [
                    Fragment(
                        reliable=True,
                        more=at + 1 < len(pieces),
                        sn=self._sn(Priority.DATA, True),
                        first=at == 0,
                        payload=piece,
                    )
                ]
            )
            for at, piece in enumerate(pieces)
        ]
        return found[: -1 if more and len(found) > 1 else None]

    def batches(self, count: int, *, odd: float = 0.15) -> list[bytes]:
        """So many, or some more."""
        found = [self.aliases()]
        while len(found) < count:
            found += self.other() if self.random.random() < odd else [self.plain()]
        return found

    def ends(self) -> list[bytes]:
        """What may end it."""
        r = self.random
        match r.randrange(6):
            case 0:
                return [encode_batch([self.frame(), self.push(), Close(reason=2)]), self.plain()]
            case 1:
                batch = self.plain()
                return [batch[: -r.randrange(1, 5)], self.plain()]
            case 2:
                broken = bytearray(self.plain())
                for _ in range(3):
                    broken[r.randrange(len(broken))] = r.randrange(256)
                return [bytes(broken), self.plain()]
            case 3:
                return [encode_batch([Frame(reliable=True, sn=self.mask + 1)]), self.plain()]
            case 4:
                return [b"\xff\xff\xff", self.plain()]
            case _:
                return [self.plain()]

    def split(self, stream: bytes, most: int) -> list[bytes]:
        """A stream, cut anywhere."""
        pieces: list[bytes] = []
        while stream:
            size = self.random.choice([1, 2, 3, most // 10 + 1, most, most])
            pieces.append(stream[:size])
            stream = stream[size:]
        return pieces


def stream_of(batches: list[bytes]) -> bytes:
    return b"".join(map(frame_stream, batches))
