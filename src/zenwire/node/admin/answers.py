"""What the reference has in its admin space, as it says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zenwire.keyexpr import intersects
from zenwire.node.admin.counted import with_stats
from zenwire.node.admin.reply import TEXT, Answer, Asked, Reply, as_json, asked_below, version
from zenwire.routing.declarations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zenwire.node.carrier import Carrier
    from zenwire.node.group import Group
    from zenwire.node.neighbour import Neighbour
    from zenwire.node.node import Node
    from zenwire.routing.overview import Sources

__all__ = [
    "linkstate",
    "publishers",
    "queriers",
    "queryables",
    "root",
    "subscribers",
    "successors",
    "tokens",
]


def root(node: Node, asked: Asked) -> Iterator[Reply]:
    """The node itself: its locators and its sessions."""
    sessions = [_session(node, one) for one in node.neighbours.values()]
    for group in node.groups.values():
        sessions += _members(group)
    locators = node.public_locators()
    value: dict[str, Any] = {
        "locators": [str(one) for one in locators],
        "metadata": node.config.settings.metadata,
        "plugins": None,
        "sessions": sessions,
        "version": version(),
        "zid": str(node.zid),
    }
    if asked.parameters.get("_stats", "false") != "false":
        with_stats(node, value)
    yield Answer(asked.prefix, as_json(value))


def _session(node: Node, neighbour: Neighbour) -> dict[str, Any]:
    overview, face = node.tables.overview, neighbour.face
    weight = overview.weight(face.zid)
    told = weight and {
        "actual_weight": weight.actual,
        "dst_weight": weight.dst,
        "src_weight": weight.src,
    }
    return {
        "links": [_link(one) for one in neighbour.carriers],
        "peer": str(face.zid),
        "region": overview.region(face),
        "shm": False,
        "weight": told if face.routes else None,
        "whatami": face.whatami.name.lower(),
    }


def _link(carrier: Carrier) -> dict[str, Any]:
    return {"dst": str(carrier.link.dst), "src": str(carrier.link.src)}


def _members(group: Group) -> list[dict[str, Any]]:
    where = str(group.endpoint.locator)
    return [
        {
            "group": where,
            "links": [{"dst": where, "src": str(source)}],
            "peer": str(peer.zid),
            "whatami": peer.whatami.name.lower(),
        }
        for source, peer in group.machine.peers.items()
    ]


def linkstate(node: Node, asked: Asked) -> Iterator[Reply]:
    """The network of each region, for Graphviz."""
    for region, text in node.tables.overview.graphs():
        key = f"{asked.prefix}/{region}"
        if intersects(asked.key, key):
            yield Answer(key, text.encode(), TEXT)


def successors(node: Node, asked: Asked) -> Iterator[Reply]:
    """By which router the way leads, from any one to any other."""
    for source, destination, hop in node.tables.overview.successors():
        key = f"{asked.prefix}/src/{source}/dst/{destination}"
        yield Answer(key, as_json(str(hop))) if intersects(asked.key, key) else None


def subscribers(node: Node, asked: Asked) -> Iterator[Reply]:
    """Each key with a subscriber, and who has them."""
    return _declared(node, asked, Kind.SUBSCRIBER)


def queryables(node: Node, asked: Asked) -> Iterator[Reply]:
    """Each key with a queryable, and who has them."""
    return _declared(node, asked, Kind.QUERYABLE)


def tokens(node: Node, asked: Asked) -> Iterator[Reply]:
    """Each key that is alive, and who says so."""
    return _declared(node, asked, Kind.TOKEN)


def publishers(node: Node, asked: Asked) -> Iterator[Reply]:
    """Each key of a publisher, as far as it asks for its subscribers."""
    return _asking(node, asked, Kind.SUBSCRIBER)


def queriers(node: Node, asked: Asked) -> Iterator[Reply]:
    """Each key of a querier."""
    return _asking(node, asked, Kind.QUERYABLE)


def _declared(node: Node, asked: Asked, kind: Kind) -> Iterator[Reply]:
    below = asked_below(asked)
    for found in node.tables.overview.declared(kind, below):
        yield found and _sources(asked, *found, known=below is not None)


def _asking(node: Node, asked: Asked, kind: Kind) -> Iterator[Reply]:
    for key, sources in node.tables.overview.asking(kind):
        yield _sources(asked, key, sources)


def _sources(asked: Asked, key: str, sources: Sources, *, known: bool = False) -> Reply:
    whole = f"{asked.prefix}/{key}"
    if not known and not intersects(asked.key, whole):
        return None
    value = {name: list(map(str, zids)) for name, zids in sources._asdict().items()}
    return Answer(whole, as_json(value))
