"""What a node has counted, as JSON: all of it, by session, and by key.

Most of it is counted anyway; how long the way to a neighbour takes is asked of the system when
somebody wants to know.
"""

from __future__ import annotations

import dataclasses
import socket
import struct
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from zenwire.keyexpr import intersects
from zenwire.node.admin.reply import Answer, Asked, Reply, as_json
from zenwire.node.stats import neighbour_stats, stats_of
from zenwire.routing.declarations import Kind
from zenwire.transport import Cause

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping

    from zenwire.links import Link
    from zenwire.node.carrier import Carrier
    from zenwire.node.neighbour import Neighbour
    from zenwire.node.node import Node
    from zenwire.transport import Stats

__all__ = ["key_stats", "node_stats", "rtt_of", "session_stats", "unsent_of", "with_stats"]

_RTT_AT: Final = 68
"""Where ``tcp_info`` of Linux has the round-trip time, in microseconds; its variance follows."""

_SENT: Final = frozenset(
    {
        Cause.CONGESTION,
        Cause.BLOCK_FIRST,
        Cause.STALLED,
        Cause.TOO_LARGE,
        Cause.NOT_OPEN,
        Cause.LINK_LOST,
    }
)
"""Why messages are lost on their way out."""


def node_stats(node: Node, asked: Asked) -> Iterator[Reply]:
    """All sessions together, what was refused and why, and how sessions came and went."""
    stats = stats_of(node)
    overview = node.tables.overview
    value = {
        "sessions": len(stats.neighbours),
        "declared": {
            kind.value: {
                "local": overview.count(kind, local=True),
                "remote": overview.count(kind, local=False),
            }
            for kind in Kind
        },
        "waiting": sum(one.waiting for one in stats.neighbours),
        "transport": _traffic([one.transport for one in stats.neighbours] + [stats.ended]),
        "dropped": _counts(stats.dropped),
        "filtered": _counts(stats.filtered),
        "routing": dataclasses.asdict(stats.routing),
        "endings": dict(stats.endings),
        "failures": dict(stats.failures),
        "evicted": stats.evicted,
        "listeners": {
            str(one.endpoint): dataclasses.asdict(one.counters) for one in stats.listeners
        },
        "reassembly": dataclasses.asdict(stats.reassembly),
        "late": stats.late,
        "admin_refused": dict(node.admin.refused) if node.admin is not None else {},
        "tap": None if node.tap is None else dataclasses.asdict(node.tap.counted),
    }
    yield Answer(asked.prefix, as_json(value))


def session_stats(node: Node, asked: Asked) -> Iterator[Reply]:
    """One for each session: messages, bytes, losses by cause, what waits, and for how long."""
    for neighbour in list(node.neighbours.values()):
        key = f"{asked.prefix}/{neighbour.face.zid}"
        if intersects(asked.key, key):
            yield Answer(key, as_json(_of_session(neighbour)))


def key_stats(node: Node, asked: Asked) -> Iterator[Reply]:
    """One for each key that ``stats/filters`` names."""
    for key, counted in node.key_stats.items():
        whole = f"{asked.prefix}/{key}"
        if intersects(asked.key, whole):
            yield Answer(whole, as_json(counted.told()))


def with_stats(node: Node, value: dict[str, Any]) -> None:
    """Add to what is told of a node what the reference adds for ``_stats=true``."""
    stats = stats_of(node)
    sums = [one.transport for one in stats.neighbours] + [stats.ended]
    value["stats"] = _named(sums, stats.dropped)
    sessions = {one["peer"]: one for one in value["sessions"]}
    for neighbour in stats.neighbours:
        told = sessions.get(str(neighbour.zid))
        if told is None:
            continue
        told["stats"] = _named([neighbour.transport], neighbour.dropped)
        for link, its in zip(told["links"], neighbour.links, strict=False):
            link["stats"] = _named([its.transport], its.transport.dropped)
    if node.key_stats:
        value["stats_filtered"] = [
            {"key": key, "stats": counted.named()} for key, counted in node.key_stats.items()
        ]


def _of_session(neighbour: Neighbour) -> dict[str, Any]:
    stats, face = neighbour_stats(neighbour), neighbour.face
    return {
        "zid": str(face.zid),
        "whatami": face.whatami.name.lower(),
        "transport": _traffic([stats.transport]),
        "dropped": _counts(stats.dropped),
        "filtered": _counts(stats.filtered),
        "waiting": stats.waiting,
        "links": [_of_link(one) for one in neighbour.carriers],
    }


def _of_link(carrier: Carrier) -> dict[str, Any]:
    link = carrier.link
    return {
        "src": str(link.src),
        "dst": str(link.dst),
        "writable": link.writable,
        "unsent_bytes": unsent_of(link),
        "rtt_us": rtt_of(link),
        "dropped_datagrams": link.dropped,
        "transport": _traffic([carrier.machine.stats]),
    }


def unsent_of(link: Link) -> int:
    """Bytes that were written, and that the system has not taken yet."""
    transport = getattr(link, "_transport", None)
    return 0 if transport is None else int(transport.get_write_buffer_size())


def rtt_of(link: Link) -> int | None:
    """Microseconds to the other side and back, as TCP has measured them; None if it is not TCP."""
    transport = getattr(link, "_transport", None)
    if transport is None or not hasattr(socket, "TCP_INFO"):
        return None
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return None
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        (rtt,) = struct.unpack_from("=I", raw, _RTT_AT)
    except (OSError, struct.error):
        return None
    return int(rtt)


def _traffic(parts: list[Stats]) -> dict[str, int]:
    names = [field.name for field in dataclasses.fields(parts[0]) if field.name != "dropped"]
    return {name: sum(getattr(part, name) for part in parts) for name in names}


def _named(parts: list[Stats], dropped: Counter[Any]) -> dict[str, Any]:
    """By the reference's names, as far as they are counted here."""
    sums = _traffic(parts)
    told: dict[str, Any] = {}
    for way in ("rx", "tx"):
        told[f"{way}_bytes"] = sums[f"{way}_bytes"]
        told[f"{way}_t_msgs"] = sums[f"{way}_frames"] + sums[f"{way}_fragments"]
        told[f"{way}_n_msgs"] = {"net": sums[f"{way}_messages"], "shm": 0}
    sent = sum(count for cause, count in dropped.items() if cause in _SENT)
    told["rx_n_dropped"] = dropped.total() - sent
    told["tx_n_dropped"] = sent
    return told


def _counts(counts: Mapping[Any, int]) -> dict[str, int]:
    return {
        str(cause.value if isinstance(cause, Enum) else cause): count
        for cause, count in counts.items()
        if count
    }
