"""The keys beside a key, on which advanced publishers and subscribers find each other.

``<key>/@adv/pub/<zid>/<eid>/_`` is one publisher: its heartbeats, its token, and who asks it for
samples. Without numbers of its own, ``uhlc`` stands for the eid: its samples are told apart by
time. ``<key>/@adv/sub/<zid>/<eid>/_`` is a subscriber. ``@adv`` is verbatim, so that nobody finds
them by ``**`` (PROTOCOL 11.4).
"""

from __future__ import annotations

from dataclasses import dataclass

from zenwire.api.values import EntityGlobalId, ZenohId
from zenwire.errors import EncodeError
from zenwire.keyexpr import KeyExpr
from zenwire.wire import values as wire

__all__ = ["Instance", "all_of", "parse_instance", "publisher_key", "publishers_of", "source_of",
           "subscriber_key"]  # fmt: skip

_ADV = "@adv"
_BY_TIME = "uhlc"
_EID_MAX = 2**32 - 1


def publisher_key(key_expr: KeyExpr, id: EntityGlobalId, *, numbered: bool) -> KeyExpr:
    """Of one publisher. ``numbered``: its samples have numbers."""
    eid = str(id.eid) if numbered else _BY_TIME
    return key_expr / f"{_ADV}/pub/{id.zid}/{eid}/_"


def subscriber_key(key_expr: KeyExpr, id: EntityGlobalId) -> KeyExpr:
    """Of one subscriber."""
    return key_expr / f"{_ADV}/sub/{id.zid}/{id.eid}/_"


def all_of(key_expr: KeyExpr) -> KeyExpr:
    """Whoever has samples of a key."""
    return key_expr / f"{_ADV}/**"


def publishers_of(key_expr: KeyExpr) -> KeyExpr:
    """All publishers of a key."""
    return key_expr / f"{_ADV}/pub/**"


def source_of(key_expr: KeyExpr, id: EntityGlobalId) -> KeyExpr:
    """Whoever has samples of one publisher."""
    return key_expr / f"{_ADV}/*/{id.zid}/{id.eid}/**"


@dataclass(frozen=True, slots=True)
class Instance:
    """What the key of a publisher says. ``eid`` is None if its samples are told apart by time."""

    zid: ZenohId
    eid: int | None


def parse_instance(key: str) -> Instance | None:
    """None for a key that does not say of whom it is."""
    _, found, rest = key.partition(f"/{_ADV}/")
    chunks = rest.split("/")
    if not found or len(chunks) < 3:
        return None
    _, zid, eid = chunks[:3]
    try:
        node = ZenohId.from_wire(wire.ZenohId.parse(zid))
    except EncodeError:
        return None
    if eid == _BY_TIME:
        return Instance(node, None)
    if not (eid.isascii() and eid.isdigit() and len(eid) <= 10 and int(eid) <= _EID_MAX):
        return None
    return Instance(node, int(eid))
