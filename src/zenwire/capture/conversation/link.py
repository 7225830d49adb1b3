"""What is remembered of one connection while its conversation is read.

Who speaks, which key-expression ids stand for what, which requests may still get replies, and
which pieces of messages wait for the rest.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from zenwire.capture.conversation.subscriptions import Subscriptions
from zenwire.wire.declare import (
    DeclareKeyExpr,
    DeclareSubscriber,
    UndeclareKeyExpr,
    UndeclareSubscriber,
)
from zenwire.wire.network import Declare
from zenwire.wire.transport import Fragment, InitAck, InitSyn, Join, OpenAck, OpenSyn
from zenwire.wire.values import Mapping, Resolution, WireExpr

__all__ = ["Asked", "Broken", "End", "Link", "Loss", "Pieces", "Whole"]

REQUESTS: Final = 65_536
"""Requests of a connection that a reply is looked for; the oldest are forgotten first."""
PIECES: Final = 256 << 20
"""Bytes that the pieces of one message may have."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What should be there and is not; a row of the table ``losses``.

    ``kind`` is sequence, source, not_sent, fragments or capture. ``from_sn`` to ``to_sn`` are the ``count``
    numbers that did not come; ``skipped`` and ``missing`` count bytes.
    """

    kind: str
    reason: str
    from_sn: int | None = None
    to_sn: int | None = None
    count: int = 0
    skipped: int = 0
    missing: int = 0


class Asked(NamedTuple):
    """A request: when it was seen, where, and what it asks for."""

    time: int
    sequence: int
    offset: int
    key: str | None


@dataclass(slots=True)
class End:
    """One of the two that speak; its ZenohID and mode are known once it said INIT or JOIN."""

    address: str
    port: int
    zid: str | None = None
    mode: str | None = None

    @property
    def name(self) -> str:
        """The ZenohID if it is known, else the address."""
        return self.zid or f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Whole:
    """The bytes of a message all of whose pieces came; ``sure`` if the first one was marked."""

    data: bytes
    from_sn: int
    count: int
    sure: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """Pieces that do not make a message."""

    loss: Loss


@dataclass(slots=True)
class Pieces:
    """FRAGMENTs of one lane; anything else in the lane ends a message in pieces."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    from_sn: int = 0
    last_sn: int = 0
    marked: bool = False
    """The first of these pieces said that it is one."""
    marks: bool = False
    """This lane marks first pieces."""

    def add(self, piece: Fragment, modulus: int) -> list[Whole | Broken]:
        """What this piece completes or breaks."""
        found: list[Whole | Broken] = []
        self.marks |= piece.first
        follows = bool(self.parts) and piece.sn == (self.last_sn + 1) % modulus
        if self.parts and (not follows or piece.first):
            found += self.give_up()
        if not self.parts:
            self.from_sn, self.marked = piece.sn, piece.first
        self.last_sn = piece.sn
        self.parts.append(piece.payload)
        self.size += len(piece.payload)
        if piece.drop:
            found += self.give_up("given up by the sender")
        elif self.size > PIECES:
            found += self.give_up(f"pieces of more than {PIECES >> 20} MiB are not kept")
        elif not piece.more:
            if self.marked or not self.marks:
                data = b"".join(self.parts)
                found.append(Whole(data, self.from_sn, len(self.parts), self.marked))
                self.clear()
            else:
                found += self.give_up()
        return found

    def give_up(self, reason: str = "pieces are missing") -> list[Whole | Broken]:
        """Nothing becomes of the pieces that are here."""
        if not self.parts:
            return []
        loss = Loss("fragments", reason, self.from_sn, self.last_sn, len(self.parts))
        self.clear()
        return [Broken(loss)]

    def clear(self) -> None:
        """Forget the pieces."""
        self.parts = []
        self.size = 0


@dataclass(slots=True)
class Link:
    """One connection. ``ends[side]`` sends on that side; side 1 has the higher address."""

    capture: str
    flow: int | None
    connection: int | None
    protocol: str | None
    ends: tuple[End, End]
    modulus: int = Resolution().sn_modulus
    opened: bool = False
    talked: bool = False
    """There was a batch, and not scouting only."""
    connector: int | None = None
    """The side that said InitSyn."""
    initial_sn: list[int | None] = field(default_factory=lambda: [None, None])
    aliases: dict[tuple[int, int], str | None] = field(default_factory=dict)
    """(declaring side, id) -> key; None if it was declared by one that is not known."""
    asked: OrderedDict[tuple[int, int], Asked] = field(default_factory=OrderedDict)
    pieces: dict[tuple[int, bool, int], Pieces] = field(default_factory=dict)
    """(side, reliable, priority) -> what waits."""
    subscriptions: tuple[Subscriptions, Subscriptions] = field(
        default_factory=lambda: (Subscriptions(), Subscriptions())
    )
    """By the side that declared them."""

    def greet(self, message: object, side: int) -> None:
        """What INIT, OPEN and JOIN say of the ends and of what they agreed on."""
        match message:
            case InitSyn() | InitAck() | Join():
                self.ends[side].zid = str(message.zid)
                self.ends[side].mode = message.whatami.name.lower()
                if isinstance(message, InitSyn):
                    self.connector = side
                else:
                    self.modulus = message.resolution.sn_modulus
            case OpenSyn() | OpenAck():
                self.initial_sn[side] = message.initial_sn
                self.opened |= isinstance(message, OpenAck)

    def declare(self, body: DeclareKeyExpr, side: int) -> tuple[str | None, str | None]:
        """The key that was declared. An id that is alive keeps its meaning, as nodes do."""
        # There is no M flag: nodes look the scope up among their own ids.
        wanted = WireExpr(body.key.scope, body.key.suffix, Mapping.RECEIVER)
        key, fault = self.resolve(wanted, side)
        self.aliases.setdefault((side, body.expr_id), key)
        return key, fault

    def undeclare(self, body: UndeclareKeyExpr, side: int) -> str | None:
        """The key that the id stood for; it may be used again."""
        return self.aliases.pop((side, body.expr_id), None)

    def subscribe(self, message: Declare, side: int, key: str | None, time: int) -> None:
        """Begin or end a subscription of one side. A snapshot (``declarations``) has no life."""
        body = message.body
        assert isinstance(body, DeclareSubscriber | UndeclareSubscriber)
        if not body.id and message.interest_id is not None:
            return
        # Routers declare everything with id 0 to each other: there, key and node tell them apart.
        which = (body.id, None, None) if body.id else (0, key, message.node_id)
        if isinstance(body, DeclareSubscriber):
            self.subscriptions[side].declare(which, key, time)
        else:
            self.subscriptions[side].undeclare(which, key, time)

    def resolve(self, key: WireExpr, side: int) -> tuple[str | None, str | None]:
        """The key that one side means or, where that cannot be known, why not."""
        if not key.scope:
            return key.suffix, None
        by_sender = key.mapping is Mapping.SENDER
        base = self.aliases.get((side if by_sender else 1 - side, key.scope))
        if base is not None:
            return base + key.suffix, None
        whose = "sender" if by_sender else "receiver"
        return None, f"scope {key.scope} was not declared by the {whose} in this capture"

    def ask(self, request_id: int, side: int, asked: Asked) -> None:
        """Remember a request; an id that is used again means the newer one."""
        self.asked[side, request_id] = asked
        self.asked.move_to_end((side, request_id))
        if len(self.asked) > REQUESTS:
            self.asked.popitem(last=False)

    def asked_by(self, request_id: int, responder: int) -> Asked | None:
        """The request that a reply of this side belongs to."""
        return self.asked.get((1 - responder, request_id))
