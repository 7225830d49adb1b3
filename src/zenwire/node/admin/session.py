"""What a session tells itself of its node's neighbours, under ``@/<zid>/session/**``.

Nobody else can ask for it. It is there from when a session first asks for, or subscribes to, a key
that begins with ``@``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

from zenwire.keyexpr import intersects
from zenwire.node.admin.reply import JSON, as_json
from zenwire.routing import Locality, QueryReceived
from zenwire.wire.data import Del, Put
from zenwire.wire.values import Priority

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zenwire.node.carrier import Carrier
    from zenwire.node.neighbour import Neighbour
    from zenwire.node.node import Node
    from zenwire.routing import Output, Session

__all__ = ["SessionSpace", "session_space"]


class SessionSpace:
    """That of one session."""

    def __init__(self, node: Node, session: Session) -> None:
        self._node = node
        self._session = session
        self._root = f"@/{node.zid}/session"
        self._told: dict[Neighbour, list[str]] = {}
        id_ = session.declare_queryable(
            f"{self._root}/**", complete=True, allowed_origin=Locality.SESSION_LOCAL
        )
        node.receivers[id_] = self._asked
        node.on_neighbour.append(self._changed)
        for neighbour in node.neighbours.values():
            self._told[neighbour] = [key for key, _ in self._entries(neighbour)]

    def _asked(self, output: Output) -> None:
        assert isinstance(output, QueryReceived)
        for queryable in output.queryables:
            for neighbour in list(self._node.neighbours.values()):
                for key, value in self._entries(neighbour):
                    if intersects(output.key, key):
                        body = Put(encoding=JSON, payload=as_json(value))
                        self._session.reply(output.query, queryable, key, body)
            self._session.finish(output.query, queryable)

    def _changed(self, neighbour: Neighbour, came: bool) -> None:
        session = self._session
        if not session.face.alive:
            return
        if came:
            entries = list(self._entries(neighbour))
            self._told[neighbour] = [key for key, _ in entries]
            for key, value in entries:
                body = Put(encoding=JSON, payload=as_json(value))
                session.push(key, body, allowed_destination=Locality.SESSION_LOCAL)
        else:
            # Links go before the session that they were of.
            for key in reversed(self._told.pop(neighbour, [])):
                session.push(key, Del(), allowed_destination=Locality.SESSION_LOCAL)

    def _entries(self, neighbour: Neighbour) -> Iterator[tuple[str, dict[str, Any]]]:
        peer = neighbour.session.peer
        here = f"{self._root}/transport/unicast/{peer.zid}"
        yield (
            here,
            {
                "zid": str(peer.zid),
                "whatami": peer.whatami.name.lower(),
                "is_qos": peer.qos,
                "is_shm": False,
            },
        )
        for carrier in neighbour.carriers:
            link = carrier.link
            number = crc32(f"{link.src} {link.dst}".encode())
            yield f"{here}/link/{number}", _link(neighbour, carrier)


def _link(neighbour: Neighbour, carrier: Carrier) -> dict[str, Any]:
    link, peer = carrier.link, neighbour.session.peer
    facts, agreed = link.facts, carrier.machine.peer
    user = None if peer.user is None else peer.user.decode(errors="replace")
    told: dict[str, Any] = {
        "src": str(link.src),
        "dst": str(link.dst),
        "group": None,
        "mtu": facts.mtu,
        "is_streamed": facts.streamed,
        "interfaces": list(link.interfaces),
        "auth_identifier": facts.common_name or user,
    }
    if peer.qos:
        chosen = None if agreed is None else agreed.priorities
        start, end = chosen or (Priority.CONTROL, Priority.BACKGROUND)
        told["priorities"] = {"start": _name(start), "end": _name(end)}
    told["reliability"] = "Reliable" if facts.reliable else "BestEffort"
    return told


def _name(priority: Priority) -> str:
    return "".join(word.capitalize() for word in Priority(priority).name.split("_"))


def session_space(node: Node, session: Session) -> None:
    """Let there be one."""
    if session.id not in node.session_spaces:
        node.session_spaces[session.id] = SessionSpace(node, session)
