"""A node's routing on a stage: neighbours speak in hex, and what they are sent is read as hex.

Hex is written as in captures: bytes in groups, text in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

from zenwire.routing import (
    CLIENT,
    PEER,
    Face,
    Limits,
    Output,
    Role,
    RoutingOptions,
    Send,
    Session,
    Tables,
)
from zenwire.wire import NetworkMessage, encode
from zenwire.wire.buffer import Reader
from zenwire.wire.data import Put
from zenwire.wire.locator import Locator
from zenwire.wire.objects import read_message
from zenwire.wire.values import WhatAmI, ZenohId

__all__ = ["Scene", "client", "peer", "put", "raw", "zid"]

E = TypeVar("E")


def raw(text: str) -> bytes:
    """``62 01 01 03 "/**"`` as bytes."""
    parts = re.findall(r'"([^"]*)"|([0-9a-f\s]+)', text)
    return b"".join(quoted.encode() or bytes.fromhex(digits) for quoted, digits in parts)


def messages(text: str) -> Iterator[NetworkMessage]:
    r = Reader(raw(text))
    while r.pos < r.end:
        yield read_message(r, "network")


def zid(text: str) -> ZenohId:
    return ZenohId.parse(text)


def put(text: str = "x") -> Put:
    return Put(payload=text.encode())


class Scene:
    """One node with a session, its neighbours, and a clock that stands still."""

    def __init__(
        self,
        role: Role,
        name: str = "aa01",
        *,
        limits: Limits | None = None,
        locators: tuple[str, ...] = (),
        options: RoutingOptions = RoutingOptions(),  # noqa: B008 # frozen
    ) -> None:
        known = [Locator.parse(text) for text in locators]
        self.tables = Tables(zid(name), role, limits=limits, locators=known, options=options)
        self.session: Session = self.tables.session()
        self.now = 1000.0
        self._outputs: list[Output] = []

    def face(self, name: str, whatami: WhatAmI) -> Face:
        """A neighbour after OPEN."""
        return self.tables.add_face(zid(name), whatami, self.now)

    def router(self, name: str = "bb01") -> Face:
        return self.face(name, WhatAmI.ROUTER)

    def peer(self, name: str = "bb02") -> Face:
        return self.face(name, WhatAmI.PEER)

    def client(self, name: str = "cc01") -> Face:
        return self.face(name, WhatAmI.CLIENT)

    def hear(self, face: Face, text: str) -> None:
        """The neighbour sends these messages."""
        for message in messages(text):
            self.tables.receive(face, message, self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        deadline = self.tables.deadline
        if deadline is not None and deadline <= self.now:
            self.tables.tick(self.now)

    def sent(self, face: Face) -> bytes:
        """What the neighbour was sent since the last question."""
        self._outputs += self.tables.outputs()
        mine = [o for o in self._outputs if isinstance(o, Send) and o.face is face]
        self._outputs = [o for o in self._outputs if o not in mine]
        return b"".join(encode(o.message) for o in mine)

    def events(self, kind: type[E]) -> list[E]:
        """What sessions and the node were told since the last question."""
        self._outputs += self.tables.outputs()
        mine: list[E] = [o for o in self._outputs if isinstance(o, kind)]
        self._outputs = [o for o in self._outputs if not isinstance(o, kind)]
        return mine

    def quiet(self) -> bool:
        """Whether nothing is left that nobody asked about."""
        self._outputs += self.tables.outputs()
        return not self._outputs

    def forget(self) -> None:
        """Nobody asks about what happened so far."""
        self.tables.outputs()
        self._outputs.clear()


def client(name: str = "aa01", **options: Limits | None) -> Scene:
    return Scene(CLIENT, name, **options)  # type: ignore[arg-type] # limits only


def peer(name: str = "aa02", **options: Limits | None) -> Scene:
    return Scene(PEER, name, **options)  # type: ignore[arg-type] # limits only
