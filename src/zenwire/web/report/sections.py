"""The parts of the page about traffic, one function for each. What is cut or not there is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from zenwire.web.report import charts, topology
from zenwire.web.report.markup import Html, foreign, h, join
from zenwire.web.report.model import Key, Latency, Session, Summary, Timeline
from zenwire.web.report.parts import absent, cut_note, empty, node, route, section, table, td
from zenwire.web.report.text import bytes_of, clock, count, duration, number, rate, seconds

__all__ = ["declared", "files", "keys", "liveliness", "messages", "queries", "sessions"]

_DASH: Final = "\N{EN DASH}"


def messages(summary: Summary) -> Html:
    """Rates over time, and the counts as a table."""
    title = "Traffic over time"
    if summary.messages is None:
        return absent("traffic", title, "messages")
    line = summary.timeline
    if line is None:
        return section("traffic", title, None, empty("No messages in this capture."))
    lede = (
        f"{count(summary.message_total, 'message')} in {duration(line.bins * line.width)}, in steps "
        f"of {duration(line.width)}. Point at a chart to read a step, drag to sum up a span."
    )
    kinds = h("ul", [h("li", h("span", class_=f"swatch k-{k}"), k) for k in line.kinds],
              class_="legend")  # fmt: skip
    figures = [
        _chart(line, line.messages, "messages", "Messages per second", rate),
        _chart(line, line.bytes, "bytes", "Bytes per second", lambda n: bytes_of(n) + "/s"),
    ]
    rows = [
        h(
            "tr",
            td(h("span", class_=f"swatch k-{c.kind}"), f" {c.message}{f' {c.body}' if c.body else ''}",
               label="message"),
            td(c.layer, label="layer"),
            td(number(c.messages), label="messages", class_="num", value=c.messages),
            td(bytes_of(c.bytes), label="bytes", class_="num", value=c.bytes),
        )
        for c in summary.messages
    ]  # fmt: skip
    heads = [("message", ""), ("layer", ""), ("messages", "num"), ("bytes", "num")]
    by_name = h(
        "details",
        h("summary", "The same as a table: messages by name"),
        table("Messages by name", heads, rows, class_="sortable"),
    )
    return section("traffic", title, lede, kinds, h("div", figures, class_="pair"), by_name)


def _chart(
    line: Timeline,
    series: Sequence[Sequence[int]],
    name: str,
    caption: str,
    unit: Callable[[float], str],
) -> Html:
    return h(
        "figure",
        h("figcaption", caption),
        charts.stacked(line, series, name, unit),
        h("output", class_="readout", aria_live="polite"),
        class_="chart",
        data_chart=name,
    )


def keys(summary: Summary) -> Html:
    """Top keys."""
    title = "Keys"
    if summary.messages is None:
        return absent("keys", title, "messages")
    found = summary.keys
    if found is None or not found.samples:
        return section("keys", title, None, empty("No samples in this capture."))
    lede = (
        f"{count(found.samples, 'sample')} on {count(found.rows.total, 'key')}, "
        f"{bytes_of(found.bytes)} of payload; "
        f"{'as recorded' if summary.is_recorded else 'counted on every link that they crossed'}."
    )
    span = max((summary.end or 0) - (summary.start or 0), 1) / 1e9
    by_size = found.bytes > 0
    whole = found.bytes if by_size else found.samples
    rows = [_key(key, span, whole, by_size=by_size) for key in found.rows.rows]
    rest = found.samples - sum(key.samples for key in found.rows.rows)
    note = f"more keys, with {count(rest, 'sample')}, are not shown."
    heads = [("key", ""), ("samples", "num"), ("rate", "num"), ("payload", "num"),
             ("share of payload" if by_size else "share of samples", "share"),
             ("over time", "opt")]  # fmt: skip
    return section(
        "keys",
        title,
        lede,
        table("Keys with most samples", heads, rows, id_="key-table", class_="sortable keys"),
        cut_note(found.rows.cut, note),
    )


def _key(key: Key, span: float, whole: int, *, by_size: bool) -> Html:
    part = (key.bytes if by_size else key.samples) / whole
    name = foreign(key.key, key.length, none="not known: declared before the capture began")
    deletes = h("small", f" {count(key.deletes, 'delete')}") if key.deletes else None
    bar = h(
        "svg",
        h("rect", width=f"{100 * part:.3g}%", height="100%", class_="fill k-samples"),
        class_="bar",
        aria_hidden="true",
    )
    percent = f"{100 * part:.1f}\N{NARROW NO-BREAK SPACE}%"
    return h(
        "tr",
        h("th", name, deletes, scope="row", data_v=key.key or ""),
        td(number(key.samples), label="samples", class_="num", value=key.samples),
        td(rate(key.samples / span), label="rate", class_="num", value=key.samples / span),
        td(bytes_of(key.bytes), label="payload", class_="num", value=key.bytes),
        td(h("span", bar, h("span", percent), class_="with-bar"), label="share", class_="share",
           value=part),
        td(charts.sparkline(key.spark), label="over time", class_="opt"),
    )  # fmt: skip


def queries(summary: Summary) -> Html:
    """Outcomes and latencies."""
    title = "Queries"
    found = summary.queries
    if found is None:
        return absent("queries", title, "queries")
    if not found.overall.queries:
        return section("queries", title, None, empty("No queries in this capture."))
    overall = found.overall
    outcomes = ", ".join(f"{number(n)} {name}" for name, n in found.outcomes.items())
    lede = (
        f"{count(overall.queries, 'query', 'queries')} ({outcomes}) with "
        f"{count(overall.replies, 'reply', 'replies')}. Latency is from the request to its end, "
        "on each link that the query crossed."
    )
    if not overall.finished:
        return section("queries", title, lede, empty("None of them came to its end."))
    first, last = charts.latency_range([overall, *found.rows.rows])
    numbers = h(
        "dl",
        [
            h("div", h("dt", h("span", class_=f"line {name}"), text), h("dd", seconds(value)))
            for name, text, value in (
                ("p50", "half within", overall.p50),
                ("p90", "90 % within", overall.p90),
                ("p99", "99 % within", overall.p99),
                ("max", "longest", overall.longest),
            )
        ],
        class_="numbers",
    )
    rows = [_latency(latency, first, last) for latency in found.rows.rows]
    heads = [("key expression", ""), ("queries", "num"), ("replies", "num opt"), ("p50", "num"),
             ("p90", "num"), ("p99", "num"), ("longest", "num opt"),
             ("distribution", "opt")]  # fmt: skip
    return section(
        "queries",
        title,
        lede,
        numbers,
        h("figure", charts.histogram(overall, first, last, axis=True), class_="chart"),
        table("Latency by key expression", heads, rows, class_="sortable"),
        cut_note(found.rows.cut, "more key expressions are not shown."),
    )


def _latency(latency: Latency, first: int, last: int) -> Html:
    def cell(name: str, value: float | None, more: str = "") -> Html:
        return td(seconds(value), label=name, class_=f"num{more}", value=value or 0.0)

    return h(
        "tr",
        h("th", foreign(latency.key, latency.length), scope="row", data_v=latency.key or ""),
        td(number(latency.queries), label="queries", class_="num", value=latency.queries),
        td(number(latency.replies), label="replies", class_="num opt", value=latency.replies),
        cell("p50", latency.p50),
        cell("p90", latency.p90),
        cell("p99", latency.p99),
        cell("longest", latency.longest, " opt"),
        td(charts.histogram(latency, first, last), label="distribution", class_="opt"),
    )


def liveliness(summary: Summary) -> Html:
    """Lives of tokens as lanes."""
    title = "Liveliness"
    found = summary.tokens
    if found is None:
        return absent("liveliness", title, "declarations")
    if not found.rows.total:
        text = "No liveliness tokens in this capture."
        if found.snapshots:
            text += f" {count(found.snapshots, 'answer')} named tokens that lived before."
        return section("liveliness", title, None, empty(text))
    start, end = summary.start or 0, summary.end or 1
    lede = join(
        f"{count(found.rows.total, 'life', 'lives')} of tokens, ",
        "as the recorder was told of them."
        if summary.is_recorded
        else "one for each session that was told of it.",
        f" {count(found.snapshots, 'answer')} about tokens at one moment are not drawn."
        if found.snapshots
        else None,
    )
    legend = h(
        "ul",
        h("li", h("span", class_="swatch life undeclared"), "ended by its owner"),
        h("li", h("span", class_="swatch life closed"), "ended with the session"),
        h("li", h("span", class_="swatch life alive"), "lives on"),
        class_="legend",
    )
    lanes = []
    for token in found.rows.rows:
        told = (
            f"{_since(token.declared, start, 'before')} {_DASH} "
            f"{_since(token.undeclared, start, 'after')}"
        )
        lanes.append(
            h(
                "li",
                h("div", foreign(token.key, token.length), h("small", route(token.sender, token.receiver)),
                  class_="what"),
                charts.life(token, start, end),
                h("small", told, class_="span"),
            )
        )  # fmt: skip
    axis = h("li", h("div", class_="what"), h("svg", charts.time_axis(end - start, 0), height="18",
             class_="plot lane", aria_hidden="true"), h("small", class_="span"),
             class_="axis", aria_hidden="true")  # fmt: skip
    return section(
        "liveliness",
        title,
        lede,
        legend,
        h("ul", lanes, axis, class_="lanes"),
        cut_note(found.rows.cut, "more lives are not shown."),
    )


def _since(time: int | None, start: int, beyond: str) -> str:
    return beyond if time is None else seconds((time - start) / 1e9)


def declared(summary: Summary) -> Html:
    """Who subscribes to what, who serves what."""
    title = "Declarations"
    found, kinds = summary.declarations, summary.declared
    if found is None or kinds is None:
        return absent("declarations", title, "declarations")
    if not kinds:
        return section("declarations", title, None, empty("Nothing was declared in this capture."))
    words = {"keyexpr": "key expression", "token": "liveliness token"}
    told = ", ".join(count(n, words.get(kind, kind)) for kind, n in kinds.items())
    if not found.rows:
        text = "Nobody subscribed to anything or served anything."
        return section("declarations", title, f"{told}.", empty(text))
    rows = []
    for d in found.rows:
        more = f" and {number(d.node_count - len(d.nodes))} more"
        names = [join(", " if i else None, node(name)) for i, name in enumerate(d.nodes)]
        rows.append(
            h(
                "tr",
                h("th", foreign(d.key, d.length), scope="row", data_v=d.key or ""),
                td(h("span", d.kind, class_=f"tag t-{d.kind}"), label="as"),
                td(names, more if d.node_count > len(d.nodes) else None, label="by",
                   value=d.node_count),
                td(number(d.declared), label="times", class_="num", value=d.declared),
                td(number(d.alive), label="still there", class_="num", value=d.alive),
            )
        )  # fmt: skip
    heads = [("key expression", ""), ("declared as", ""), ("by", ""), ("times", "num"),
             ("there at the end", "num")]  # fmt: skip
    return section(
        "declarations",
        title,
        f"{told}. Routers pass on what others declared to them, so they are named too.",
        table("Subscribers and queryables", heads, rows, class_="sortable"),
        cut_note(found.cut, "more key expressions are not shown."),
    )


def files(summary: Summary) -> Html:
    """What was read."""
    title = "Files"
    if summary.captures is None:
        return absent("files", title, "messages")
    if not summary.captures.rows:
        paths = h("ul", [h("li", foreign(path)) for path in summary.paths[:50]])
        return section("files", title, "No Zenoh messages are in:", paths)
    rows = [
        h(
            "tr",
            h("th", foreign(c.name), scope="row", data_v=c.name),
            td(clock(c.first), label="begin (UTC)", class_="num", value=c.first),
            td(duration(c.last - c.first), label="span", class_="num", value=c.last - c.first),
            td(number(c.messages), label="messages", class_="num", value=c.messages),
            td(bytes_of(c.bytes), label="bytes", class_="num", value=c.bytes),
        )
        for c in summary.captures.rows
    ]
    heads = [("capture", ""), ("begin (UTC)", "num"), ("span", "num"), ("messages", "num"),
             ("bytes", "num")]  # fmt: skip
    return section(
        "files",
        title,
        None,
        table("Captures", heads, rows, class_="sortable"),
        cut_note(summary.captures.cut, "more captures are not shown."),
    )


def sessions(summary: Summary) -> Html:
    """Topology, and the sessions as a table."""
    title = "Topology"
    found = summary.sessions
    if found is None:
        return absent("topology", title, "sessions")
    if not found.rows.total:
        return section("topology", title, None, empty("No sessions in this capture."))
    lede = (
        f"{count(found.nodes, 'node')}, {count(found.rows.total, 'session')}, "
        f"{bytes_of(found.bytes)}. Point at a node or a connection, or use the arrow keys."
    )
    panel = h(
        "aside",
        h("div", topology.legend(), class_="rest"),
        h("div", class_="told", aria_live="polite"),
        class_="panel",
    )
    drawing = h(
        "div",
        h("div", topology.draw(found.edges.rows), class_="scroll drawing", tabindex="0",
          role="region", aria_label="Topology"),
        panel,
        class_="map",
    )  # fmt: skip
    rows = [_session(s) for s in found.rows.rows]
    heads = [("connected", ""), ("accepted", ""), ("link", ""), ("there", "num"), ("back", "num"),
             ("agreed", ""), ("opened", "num"), ("closed", "")]  # fmt: skip
    return section(
        "topology",
        title,
        lede,
        drawing,
        cut_note(found.edges.cut, "more connections, with less traffic, are not drawn."),
        h(
            "details",
            h("summary", "The same as a table: sessions"),
            table("Sessions", heads, rows, class_="sortable stack"),
            cut_note(found.rows.cut, "more sessions, with less traffic, are not shown."),
        ),
    )


def _session(s: Session) -> Html:
    def end(name: str, mode: str | None, address: str) -> Html:
        told = None if name == address else h("small", address)
        return join(node(name), h("small", f" {(mode or 'mode not known').lower()} "), told)

    closed = _DASH if s.closed is None else f"{clock(s.closed, date=False)} by {s.closed_by}"
    reason = f" ({s.close_reason.replace('_', ' ').lower()})" if s.close_reason else ""
    opened = "before the capture, or refused" if s.opened is None else clock(s.opened, date=False)
    return h(
        "tr",
        td(end(s.connector, s.connector_mode, s.connector_address), label="connected"),
        td(end(s.acceptor, s.acceptor_mode, s.acceptor_address), label="accepted"),
        td(s.link, label="link"),
        td(bytes_of(s.bytes_to_acceptor), label="there", class_="num", value=s.bytes_to_acceptor),
        td(bytes_of(s.bytes_to_connector), label="back", class_="num", value=s.bytes_to_connector),
        td(", ".join(s.agreed) or _DASH, label="agreed"),
        td(opened, label="opened", class_="num", value=s.opened or 0),
        td(closed + reason, label="closed", value=s.closed or 0),
    )
