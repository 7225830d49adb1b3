"""A broker for clients, as simple as can be: lists, whole keys, no caches. Not a router."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from zenwire.keyexpr import intersects
from zenwire.wire import NetworkMessage
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.network import (
    Declaration,
    Declare,
    Interest,
    Push,
    Request,
    Response,
    ResponseFinal,
)
from zenwire.wire.values import InterestMode, WhatAmI, WireExpr, ZenohId

__all__ = ["Broker"]

Declared = DeclareSubscriber | DeclareQueryable | DeclareToken
Undeclared = UndeclareSubscriber | UndeclareQueryable | UndeclareToken

DECLARE: dict[str, Callable[..., Declared]] = {
    "subscriber": DeclareSubscriber,
    "queryable": DeclareQueryable,
    "token": DeclareToken,
}
UNDECLARE: dict[str, Callable[..., Undeclared]] = {
    "subscriber": UndeclareSubscriber,
    "queryable": UndeclareQueryable,
    "token": UndeclareToken,
}
KIND: dict[type, str] = {
    DeclareSubscriber: "subscriber",
    DeclareQueryable: "queryable",
    DeclareToken: "token",
    UndeclareSubscriber: "subscriber",
    UndeclareQueryable: "queryable",
    UndeclareToken: "token",
}


class Named(Protocol):
    zid: ZenohId


@dataclass(eq=False)
class Guest:
    """A client, as the broker knows it."""

    aliases: dict[int, str] = field(default_factory=dict)
    has: dict[tuple[str, int], str] = field(default_factory=dict)
    wants: dict[int, Interest] = field(default_factory=dict)
    told: dict[tuple[str, str], int] = field(default_factory=dict)
    ids: int = 0
    asked: dict[int, tuple[Guest, int]] = field(default_factory=dict)
    open: dict[int, int] = field(default_factory=dict)

    def key(self, expr: WireExpr) -> str:
        return self.aliases[expr.scope] + expr.suffix if expr.scope else expr.suffix

    def next_id(self) -> int:
        self.ids += 1
        return self.ids


class Broker:
    """Passes messages between its clients."""

    zid = ZenohId.parse("ff")
    whatami = WhatAmI.ROUTER

    def __init__(self) -> None:
        self.guests: list[Guest] = []
        self.out: list[tuple[object, NetworkMessage]] = []

    def add(self, other: Named) -> Guest:
        guest = Guest()
        self.guests.append(guest)
        return guest

    def take(self) -> list[tuple[object, NetworkMessage]]:
        out, self.out = self.out, []
        return out

    def drop(self, face: object) -> None:
        assert isinstance(face, Guest)
        self.guests.remove(face)
        for guest in self.guests:
            self.tell(guest)
            guest.asked = {i: (g, r) for i, (g, r) in guest.asked.items() if g is not face}
        for origin, rid in list(face.asked.values()):
            self.final(origin, rid)

    def hear(self, face: object, message: NetworkMessage) -> None:
        guest = face
        assert isinstance(guest, Guest)
        match message:
            case Push():
                key = guest.key(message.key)
                for other in self.others(guest, "subscriber", key):
                    self.out.append((other, Push(key=WireExpr(0, key), body=message.body)))
            case Request():
                self.request(guest, message)
            case Response():
                # The asker may be gone.
                if message.request_id in guest.asked:
                    origin, rid = guest.asked[message.request_id]
                    reply = Response(request_id=rid, key=message.key, body=message.body)
                    self.out.append((origin, reply))
            case ResponseFinal():
                if message.request_id in guest.asked:
                    self.final(*guest.asked.pop(message.request_id))
            case Interest():
                self.interest(guest, message)
            case Declare():
                self.declare(guest, message.body)

    def others(self, guest: Guest, kind: str, key: str) -> list[Guest]:
        return [
            other
            for other in self.guests
            if other is not guest
            and any(k[0] == kind and intersects(has, key) for k, has in other.has.items())
        ]

    def request(self, guest: Guest, message: Request) -> None:
        key = guest.key(message.key)
        others = self.others(guest, "queryable", key)
        guest.open[message.request_id] = len(others)
        for other in others:
            id = other.next_id()
            other.asked[id] = guest, message.request_id
            request = Request(
                request_id=id, key=WireExpr(0, key), target=message.target, body=message.body
            )
            self.out.append((other, request))
        if not others:
            self.out.append((guest, ResponseFinal(request_id=message.request_id)))

    def final(self, origin: Guest, rid: int) -> None:
        if origin not in self.guests:
            return
        origin.open[rid] -= 1
        if not origin.open[rid]:
            self.out.append((origin, ResponseFinal(request_id=rid)))

    def declare(self, guest: Guest, body: Declaration) -> None:
        if isinstance(body, DeclareKeyExpr):
            guest.aliases[body.expr_id] = body.key.suffix
        elif isinstance(body, DeclareSubscriber | DeclareQueryable | DeclareToken):
            guest.has[KIND[type(body)], body.id] = guest.key(body.key)
        elif isinstance(body, UndeclareSubscriber | UndeclareQueryable | UndeclareToken):
            del guest.has[KIND[type(body)], body.id]
        for other in self.guests:
            self.tell(other)

    def interest(self, guest: Guest, message: Interest) -> None:
        if message.mode is InterestMode.FINAL:
            del guest.wants[message.id]
            wanted = self.wanted(guest)
            guest.told = {name: id for name, id in guest.told.items() if name in wanted}
            return
        if message.mode is not InterestMode.CURRENT:
            guest.wants[message.id] = message
        if message.mode is not InterestMode.FUTURE:
            for kind, key in sorted(self.known(guest)):
                if asks(guest, message, kind, key):
                    id = 0
                    if message.mode is InterestMode.CURRENT_FUTURE:
                        id = guest.told.setdefault((kind, key), guest.next_id())
                    body = DECLARE[kind](id=id, key=WireExpr(0, key))
                    self.out.append((guest, Declare(interest_id=message.id, body=body)))
            self.out.append((guest, Declare(interest_id=message.id, body=DeclareFinal())))

    def known(self, guest: Guest) -> set[tuple[str, str]]:
        """What a guest may hear of: of itself its tokens only."""
        return {
            (kind, key)
            for other in self.guests
            for (kind, _), key in other.has.items()
            if other is not guest or kind == "token"
        }

    def wanted(self, guest: Guest) -> set[tuple[str, str]]:
        return {
            name
            for name in self.known(guest)
            if any(asks(guest, interest, *name) for interest in guest.wants.values())
        }

    def tell(self, guest: Guest) -> None:
        wanted = self.wanted(guest)
        for name in sorted(set(guest.told) - wanted):
            gone = UNDECLARE[name[0]](id=guest.told.pop(name))
            self.out.append((guest, Declare(body=gone)))
        for kind, key in sorted(wanted - set(guest.told)):
            guest.told[kind, key] = id = guest.next_id()
            body = DECLARE[kind](id=id, key=WireExpr(0, key))
            self.out.append((guest, Declare(body=body)))


def asks(guest: Guest, interest: Interest, kind: str, key: str) -> bool:
    asked = {
        "subscriber": interest.subscribers,
        "queryable": interest.queryables,
        "token": interest.tokens,
    }
    if not asked[kind]:
        return False
    return interest.key is None or intersects(guest.key(interest.key), key)
