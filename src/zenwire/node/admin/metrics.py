"""The same for Prometheus: text in the OpenMetrics format, with the reference's names."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Final

from zenwire.node.admin.counted import rtt_of, unsent_of
from zenwire.node.admin.reply import Answer, Asked, version
from zenwire.node.stats import stats_of
from zenwire.routing.declarations import Kind
from zenwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zenwire.node.admin.reply import Reply
    from zenwire.node.node import Node
    from zenwire.transport import Stats

__all__ = ["OPENMETRICS", "Page", "metrics_of", "openmetrics"]

OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_TRAFFIC: Final = (
    ("rx_bytes", "Bytes received", "rx_bytes"),
    ("tx_bytes", "Bytes sent", "tx_bytes"),
    ("rx_transport_message", "FRAMEs and FRAGMENTs received", "rx_frames"),
    ("tx_transport_message", "FRAMEs and FRAGMENTs sent", "tx_frames"),
    ("rx_network_message", "Network messages received", "rx_messages"),
    ("tx_network_message", "Network messages sent", "tx_messages"),
)
"""The reference's name, what it is, and ours."""


class Page:
    """Metrics, one after another."""

    def __init__(self, node: Node) -> None:
        self._own = {"local_id": str(node.zid), "local_whatami": node.config.mode.name.lower()}
        self._lines: list[str] = []

    def metric(self, name: str, kind: str, text: str) -> None:
        """Begin one. What follows until the next are its values."""
        self._name = f"zenoh_{name}"
        self._suffix = {"counter": "_total", "info": "_info"}.get(kind, "")
        self._lines += [f"# HELP {self._name} {text}.", f"# TYPE {self._name} {kind}"]

    def value(self, value: float, **labels: object) -> None:
        """One value of the metric that has begun."""
        pairs = {**self._own, **labels}
        told = ",".join(f'{name}="{_escaped(str(text))}"' for name, text in pairs.items())
        self._lines.append(f"{self._name}{self._suffix}{{{told}}} {value}")

    def text(self, *, descriptors: bool = True) -> str:
        """All of it."""
        lines = (line for line in self._lines if descriptors or not line.startswith("#"))
        return "\n".join([*lines, "# EOF", ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def openmetrics(node: Node, asked: Asked) -> Iterator[Reply]:
    """Answer with them, compressed unless ``compression=false``."""
    wanted = asked.parameters
    page = metrics_of(
        node,
        per_transport=wanted.get("per_transport") != "false",
        per_link=wanted.get("per_link") != "false",
        per_key=wanted.get("per_key") != "false",
    )
    data = page.text(descriptors=wanted.get("descriptors") != "false").encode()
    encoding = OPENMETRICS
    if wanted.get("compression") != "false":
        data = gzip.compress(data, 1, mtime=0)
        encoding += ";content-encoding=gzip"
    yield Answer(asked.prefix, data, Encoding.parse(encoding))


def metrics_of(
    node: Node, *, per_transport: bool = True, per_link: bool = True, per_key: bool = True
) -> Page:
    """What a node has counted so far."""
    page, stats, overview = Page(node), stats_of(node), node.tables.overview
    page.metric("build", "info", "Version of this node")
    page.value(1, version=version())
    page.metric("transports_opened", "gauge", "Sessions that are open")
    page.value(len(stats.neighbours))
    page.metric("links_opened", "gauge", "Links that are open")
    links: dict[str, int] = {}
    for link in (link for one in stats.neighbours for link in one.links):
        links[link.src.protocol] = links.get(link.src.protocol, 0) + 1
    for protocol, count in sorted(links.items()):
        page.value(count, protocol=protocol)
    page.metric("resources_declared", "gauge", "Declarations that hold")
    for kind in Kind:
        for where, local in (("local", True), ("remote", False)):
            page.value(overview.count(kind, local=local), resource=kind.value, locality=where)
    sums = [one.transport for one in stats.neighbours] + [stats.ended]
    for name, text, field in _TRAFFIC:
        page.metric(name, "counter", text)
        page.value(sum(_number(one, field) for one in sums))
        if per_transport:
            for one in stats.neighbours:
                of_session = {"remote_zid": one.zid, "remote_whatami": one.whatami.name.lower()}
                page.value(_number(one.transport, field), **of_session)
                for link in one.links if per_link else ():
                    where_to = {"src_locator": link.src, "dst_locator": link.dst}
                    page.value(_number(link.transport, field), **of_session, **where_to)
    _losses(page, node)
    _reassembly(page, node)
    if per_link:
        _queues(page, node)
    if per_key and node.key_stats:
        _keys(page, node)
    return page


def _number(stats: Stats, field: str) -> int:
    found = int(getattr(stats, field))
    if field.endswith("_frames"):
        found += int(getattr(stats, field.replace("_frames", "_fragments")))
    return found


def _losses(page: Page, node: Node) -> None:
    stats = stats_of(node)
    page.metric("dropped", "counter", "Messages that were lost, by cause")
    for cause, count in stats.dropped.items():
        page.value(count, cause=cause.value)
    page.metric("evicted", "counter", "What gave way to newcomers")
    page.value(stats.handshakes_evicted, what="handshake")
    page.value(stats.endings["evicted"], what="session")
    page.metric("filtered", "counter", "Messages that the configuration did not let pass")
    for filtered, count in stats.filtered.items():
        page.value(count, cause=filtered)
    page.metric("refused", "counter", "What neighbours sent and was not used, by reason")
    routing = stats.routing
    for name in routing.__slots__:
        count = getattr(routing, name)
        if isinstance(count, int) and count:
            page.value(count, reason=name)
    for name, count in routing.violations.items():
        page.value(count, reason="violation", text=name)


def _reassembly(page: Page, node: Node) -> None:
    told = stats_of(node).reassembly
    page.metric("reassembly_bytes", "gauge", "Bytes of unfinished messages in this process")
    page.value(told.held)
    page.metric("reassembly_limit_bytes", "gauge", "Bytes that unfinished messages may hold")
    page.value(told.limit)
    page.metric("reassembly_messages", "gauge", "Unfinished messages in this process")
    page.value(told.messages)


def _queues(page: Page, node: Node) -> None:
    page.metric("waiting_messages", "gauge", "Messages without room in the queues of a session")
    for neighbour in node.neighbours.values():
        page.value(neighbour.waiting, remote_zid=neighbour.face.zid)
    page.metric("unsent_bytes", "gauge", "Bytes of a link that the system has not taken")
    links = [(n.face.zid, c.link) for n in node.neighbours.values() for c in n.carriers]
    for zid, link in links:
        page.value(unsent_of(link), remote_zid=zid, src_locator=link.src, dst_locator=link.dst)
    page.metric("rtt_seconds", "gauge", "To the other side of a link and back")
    for zid, link in links:
        rtt = rtt_of(link)
        if rtt is not None:
            page.value(rtt / 1e6, remote_zid=zid, src_locator=link.src, dst_locator=link.dst)


def _keys(page: Page, node: Node) -> None:
    told: Mapping[str, str] = {"messages": "Messages", "bytes": "Bytes of payloads"}
    for what, text in told.items():
        for way in ("rx", "tx"):
            page.metric(f"{way}_key_{what}", "counter", f"{text} on keys that are counted apart")
            for key, counted in node.key_stats.items():
                for message, numbers in counted.ways[way].items():
                    page.value(numbers.of(what), key=key, message=message)
