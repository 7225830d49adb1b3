"""Who was connected with whom, drawn: routers in the middle, everybody else around them.

The same sessions give the same drawing. Nothing is simulated: hubs stand on an inner circle, each
other node on an outer one as near to its hub as there is room, and circles are as large as the
labels need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import cos, degrees, hypot, pi, radians, sin, sqrt
from typing import Final

from zenwire.web.report.markup import Html, h, join
from zenwire.web.report.model import Edge
from zenwire.web.report.text import bytes_of, count, short

__all__ = ["Node", "draw", "legend", "nodes_of", "place"]

_FLAT: Final = 16
"""Up to so many nodes on the outer circle have labels that lie flat."""
_LINE: Final = 17.0
"""Room along the circle for a label that is turned outwards."""
_WIDEST: Final = 10.0
_UPRIGHT: Final = 0.35
"""Nearer to the top or bottom than this, a flat label is above or below its node."""
_ENLARGED: Final = 1.25
_MODES: Final = ("ROUTER", "PEER", "CLIENT")


@dataclass(slots=True)
class Node:
    """A node and where it stands; ``angle`` in radians, clockwise from the right."""

    name: str
    mode: str | None
    bytes: int = 0
    sessions: int = 0
    neighbours: dict[str, int] = field(default_factory=dict)
    x: float = 0.0
    y: float = 0.0
    angle: float = 0.0
    hub: bool = False


def nodes_of(edges: Iterable[Edge]) -> list[Node]:
    """Every end of an edge, once; what is known of its mode from any edge."""
    found: dict[str, Node] = {}
    for edge in edges:
        total = edge.bytes_to_acceptor + edge.bytes_to_connector
        ends = ((edge.connector, edge.connector_mode), (edge.acceptor, edge.acceptor_mode))
        for (name, mode), (other, _) in (ends, ends[::-1]):
            node = found.setdefault(name, Node(name, mode))
            node.mode = node.mode or mode
            node.bytes += total
            node.sessions += edge.sessions
            node.neighbours[other] = node.neighbours.get(other, 0) + total
    return sorted(found.values(), key=lambda n: n.name)


def place(nodes: Sequence[Node]) -> tuple[float, float]:
    """Give every node its place around (0, 0); the radii of both circles."""
    hubs = [node for node in nodes if node.mode == "ROUTER"]
    if not hubs:
        # Peers of each other are a circle; one that all others connect to is a hub.
        most = max((len(n.neighbours) for n in nodes), default=0)
        central = [n for n in nodes if len(n.neighbours) == most]
        hubs = central if len(central) == 1 and most > 1 else []
    for node in hubs:
        node.hub = True
    around = [node for node in nodes if not node.hub]
    inner = 0.0 if len(hubs) < 2 else max(64.0, len(hubs) * 84.0 / (2 * pi))
    for i, hub in enumerate(hubs):
        hub.angle = _turn(i, len(hubs))
        hub.x, hub.y = inner * cos(hub.angle), inner * sin(hub.angle)
    room = _LINE if len(around) > _FLAT else 58.0
    outer = max(inner + 96.0 if hubs else 80.0, len(around) * room / (2 * pi))
    _spread(around, {hub.name: hub for hub in hubs})
    for node in around:
        node.x, node.y = outer * cos(node.angle), outer * sin(node.angle)
    return inner, outer


def _turn(i: int, n: int) -> float:
    """Two lie side by side, more begin at the top."""
    return pi * (i - 1) if n == 2 else 2 * pi * i / max(n, 1) - pi / 2


def _spread(around: list[Node], hubs: dict[str, Node]) -> None:
    """Angles on the outer circle: near to the hub with most traffic, and no two too near."""
    if len(hubs) < 2:
        around.sort(key=lambda n: (_MODES.index(n.mode) if n.mode in _MODES else 3, n.name))
        for i, node in enumerate(around):
            node.angle = _turn(i, len(around))
        return
    of_hub: dict[str, list[Node]] = defaultdict(list)
    for node in around:
        known = [name for name in node.neighbours if name in hubs]
        of_hub[max(known, key=lambda name: (node.neighbours[name], name), default="")].append(node)
    # What has no hub goes last, opposite to nothing in particular.
    angles = {name: hubs[name].angle % (2 * pi) if name else 1.99 * pi for name in of_hub}
    gap = min(2 * pi / max(len(around), 1), radians(40))
    order: list[Node] = []
    for name in sorted(of_hub, key=lambda name: (angles[name], name)):
        # Without a hub, those that talk to each other stand beside each other.
        group = sorted(
            of_hub[name], key=lambda n: (n.name if name else min(n.name, *n.neighbours), n.name)
        )
        for j, node in enumerate(group):
            node.angle = angles[name] + (j - (len(group) - 1) / 2) * gap
        order += group
    order.sort(key=lambda n: n.angle)
    _push_apart(order, gap * 0.999)


def _push_apart(order: Sequence[Node], gap: float) -> None:
    """Neighbours on the circle that are too near each give half; the order stays."""
    n = len(order)
    for _ in range(40 * n if n > 1 else 0):
        moved = 0.0
        for i, node in enumerate(order):
            after = order[(i + 1) % n]
            turn = 2 * pi if i == n - 1 else 0.0
            short_of = gap - (after.angle + turn - node.angle)
            if short_of > 1e-4:
                node.angle -= short_of / 2
                after.angle += short_of / 2
                moved = max(moved, short_of)
        if moved < 1e-3:
            return


def draw(edges: Sequence[Edge]) -> Html:
    """The drawing. Edges and nodes have the numbers that the script finds them by."""
    nodes = nodes_of(edges)
    place(nodes)
    turned = sum(not n.hub for n in nodes) > _FLAT
    by_name = {node.name: node for node in nodes}
    most = max((max(e.bytes_to_acceptor, e.bytes_to_connector) for e in edges), default=0)
    seen: dict[frozenset[str], int] = defaultdict(int)
    drawn = []
    for i, edge in enumerate(edges):
        a, b = by_name[edge.connector], by_name[edge.acceptor]
        if a is not b:
            pair = frozenset((a.name, b.name))
            drawn.append(_edge(i, edge, (a, b), most, seen[pair]))
            seen[pair] += 1
    marks = [_node(i, node, turned=turned) for i, node in enumerate(nodes)]
    left, top, right, bottom = _extent(nodes, turned=turned)
    wide, high = right - left, bottom - top
    what = f"{count(len(nodes), 'node')} and {count(len(edges), 'connection')} between them"
    return h(
        "svg",
        h("title", f"Topology: {what}"),
        h("g", drawn),
        h("g", marks),
        viewBox=f"{left:.0f} {top:.0f} {wide:.0f} {high:.0f}",
        width=round(_ENLARGED * wide),
        height=round(_ENLARGED * high),
        class_="topology wide" if wide > 520 else "topology",
        role="group",
        aria_label=f"Topology: {what}. The table below says the same.",
    )


def _extent(nodes: Sequence[Node], *, turned: bool) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of all nodes with their labels."""
    boxes = []
    for node in nodes:
        long = 7.4 * len(short(node.name))
        across, down = cos(node.angle), sin(node.angle)
        if node.hub:
            before, after, above, below = long / 2, long / 2, 16.0, 30.0
        elif turned:
            reach = long + 20
            before, after = max(-across * reach, 12.0), max(across * reach, 12.0)
            above, below = max(-down * reach, 12.0), max(down * reach, 12.0)
        elif abs(across) < _UPRIGHT:
            before, after, above, below = long / 2, long / 2, 28.0, 32.0
        else:
            reach = long + 18
            before, after = (12.0, reach) if across > 0 else (reach, 12.0)
            above, below = 16.0, 16.0
        boxes.append((node.x - before, node.y - above, node.x + after, node.y + below))
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts) - 6, min(tops) - 6, max(rights) + 6, max(bottoms) + 6


def _edge(i: int, edge: Edge, ends: tuple[Node, Node], most: int, nth: int) -> Html:
    """Two wedges, one for each direction: the wide end is the sender's."""
    a, b = ends
    length = hypot(b.x - a.x, b.y - a.y) or 1.0
    ux, uy = (b.x - a.x) / length, (b.y - a.y) / length
    # More links of the same pair lie beside the first.
    side = ((nth + 1) // 2) * (14 if nth % 2 else -14)
    here = a.x - uy * side, a.y + ux * side
    there = b.x - uy * side, b.y + ux * side

    def wedge(start: tuple[float, float], end: tuple[float, float], size: int, to: int) -> Html:
        wide = 1.2 + _WIDEST * sqrt(size / most) if size and most else 0.6
        (x1, y1), (x2, y2) = start, end
        px, py = -uy * to, ux * to
        points = (
            (x1 + px * 0.5, y1 + py * 0.5),
            (x1 + px * (0.5 + wide), y1 + py * (0.5 + wide)),
            (x2 + px * 1.4, y2 + py * 1.4),
            (x2 + px * 0.5, y2 + py * 0.5),
        )
        return h("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_="wedge")

    link = edge.link if edge.link in ("tcp", "tls", "udp") else "other"
    label = (
        f"{short(a.name)} to {short(b.name)} over {edge.link}: "
        f"{bytes_of(edge.bytes_to_acceptor)} there, {bytes_of(edge.bytes_to_connector)} back"
    )
    return h(
        "g",
        h("title", label),
        wedge(here, there, edge.bytes_to_acceptor, 1),
        wedge(there, here, edge.bytes_to_connector, -1),
        _line("axis", *here, *there),
        _line("hit", *here, *there),
        class_=f"edge l-{link}",
        data_edge=i,
        data_ends=f"{a.name} {b.name}",
        tabindex="-1",
        role="img",
        aria_label=label,
    )


def _line(class_: str, x1: float, y1: float, x2: float, y2: float) -> Html:
    return h("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=class_)


def _shape(mode: str | None) -> Html:
    """Told apart by form as well as by colour."""
    match mode:
        case "ROUTER":
            return h("rect", x="-9", y="-9", width="18", height="18", rx="3", class_="m-router")
        case "PEER":
            return h("circle", r="8", class_="m-peer")
        case "CLIENT":
            return h("path", d="M0-8L8 6H-8z", class_="m-client")
    return h("circle", r="7", class_="m-unknown")


def _node(i: int, node: Node, *, turned: bool) -> Html:
    mode = (node.mode or "mode not known").lower()
    label = f"{mode} {node.name}: {count(node.sessions, 'session')}, {bytes_of(node.bytes)}"
    return h(
        "g",
        h("title", label),
        h("circle", r="15", class_="halo"),
        _shape(node.mode),
        _label(node, turned=turned),
        transform=f"translate({node.x:.1f} {node.y:.1f})",
        class_="node",
        data_node=i,
        data_name=node.name,
        tabindex="0" if i == 0 else "-1",
        role="img",
        aria_label=label,
    )


def _label(node: Node, *, turned: bool) -> Html:
    name = short(node.name)
    if node.hub:
        return h("text", name, y="25", text_anchor="middle", class_="name")
    if turned:
        angle = degrees(node.angle) % 360
        left = 90 < angle < 270
        transform = f"rotate({angle - 180 if left else angle:.1f})"
        anchor, x = ("end", -14) if left else ("start", 14)
        return h("text", name, x=x, dy="0.35em", text_anchor=anchor, transform=transform,
                 class_="name")  # fmt: skip
    across, down = cos(node.angle), sin(node.angle)
    if abs(across) < _UPRIGHT:
        y = 26 if down > 0 else -15
        return h("text", name, y=y, text_anchor="middle", class_="name")
    anchor, x = ("start", 14) if across > 0 else ("end", -14)
    return h("text", name, x=x, dy="0.35em", text_anchor=anchor, class_="name")


def legend() -> Html:
    """What the forms mean."""
    entries = [
        h("li", h("svg", _shape(mode), viewBox="-11 -11 22 22", class_="key-mark",
                  aria_hidden="true"), word)
        for mode, word in (("ROUTER", "router"), ("PEER", "peer"), ("CLIENT", "client"),
                           (None, "not known"))
    ]  # fmt: skip
    return join(
        h("ul", entries, class_="legend"),
        h(
            "p",
            "Each connection is two wedges, wide at the sender and as wide as it sent.",
            class_="hint",
        ),
    )
