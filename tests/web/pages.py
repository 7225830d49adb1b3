"""Summaries made by hand, and a parser that accepts nothing but well-formed pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

from zenwire.web.report.model import (
    Account,
    Capture,
    Declaration,
    Edge,
    Key,
    Keys,
    Latency,
    Loss,
    Losses,
    LossGroup,
    Malformed,
    MalformedGroup,
    Malformeds,
    MessageCount,
    Queries,
    Session,
    Sessions,
    Summary,
    Timeline,
    Token,
    Tokens,
    Top,
    Verdict,
)

START = 1_794_770_550_000_000_000
SECOND = 1_000_000_000
VOID = {"br", "col", "hr", "input", "link", "meta"}


def empty(**parts: object) -> Summary:
    """A capture in which nothing was found; ``parts`` go over that."""
    known: dict[str, object] = {
        "source": "captures",
        "paths": ["nothing.pcap"],
        "start": None,
        "end": None,
        "message_total": 0,
        "verdict": Verdict("note", "No Zenoh traffic was found", []),
        "captures": Top([], 0),
        "messages": [],
        "timeline": None,
        "sessions": Sessions(0, 0, Top([], 0), Top([], 0)),
        "keys": None,
        "queries": Queries(
            {}, Latency(None, 0, 0, 0, 0, None, None, None, None, [0] * 24), Top([], 0)
        ),
        "losses": Losses({}, Top([], 0), Top([], 0)),
        "malformed": Malformeds([], Top([], 0)),
        "tokens": Tokens(0, Top([], 0)),
        "declarations": Top([], 0),
        "declared": {},
        "accounts": [],
    }
    return Summary(**(known | parts))  # type: ignore[arg-type] # by name, and tested by use


def edges(nodes: int, routers: int) -> list[Edge]:
    """Routers in a ring, everybody else at one of them."""
    hubs = [f"{i:032x}" for i in range(1, routers + 1)]
    found = [
        Edge(
            a, "ROUTER", b, "ROUTER", "tcp", 1, 5000, 400, ["QoS"], 0, ["10.0.0.1:1", "10.0.0.2:2"]
        )
        for a, b in pairwise(hubs)
    ]
    for i in range(nodes - routers):
        name, mode = f"{(i + 1) << 96:032x}", ("PEER", "CLIENT")[i % 2]
        hub = hubs[i * i % routers] if hubs else f"{((i + 1) % nodes + 1) << 96:032x}"
        there = ["10.0.1.1:1", "10.0.0.1:7447"]
        found.append(
            Edge(name, mode, hub, "ROUTER" if hubs else "PEER", ("tcp", "udp", "tls", "quic")[i % 4],
                 1, 10**i % 10**9, 10 * i, ["QoS", "compression"], 0, there)
        )  # fmt: skip
    return found


def full(text: str, nodes: int = 3, routers: int = 1) -> Summary:
    """Everything there is, with ``text`` wherever a capture says what stands there."""
    latency = Latency(text, len(text), 9, 8, 8, 1e-3, 2e-3, 3e-3, 4e-3, [0, 5, 3] + [0] * 21)
    between = edges(nodes, routers)
    session = Session(
        text, "-1", 0, text, text, text, text, text, text, text, 10, 20, [text], 9, 9, START,
        START, START, text, text, START,
    )  # fmt: skip
    strange = Edge(text, text, f"{text}x", None, text, 1, 10, 20, [text], 0, [text, text])
    return empty(
        paths=[text],
        start=START,
        end=START + 10 * SECOND,
        message_total=42,
        verdict=Verdict("bad", "Something was lost", [(text, "losses")]),
        captures=Top([Capture(text, 42, 420, START, START + 10 * SECOND)], 7),
        messages=[MessageCount("network", "PUSH", "PUT", "samples", 42, 420)],
        timeline=Timeline(START, SECOND, 10, ["samples"], [[4] * 10], [[40] * 10]),
        sessions=Sessions(30, nodes + 2, Top([*between, strange], 999), Top([session], 888)),
        keys=Keys(42, 400, Top([Key(text, 65_000, 42, 1, 400, START, START, [1] * 32)], 1000)),
        queries=Queries({"replied": 8, text: 1}, latency, Top([latency], 77)),
        losses=Losses(
            {"capture": {"gaps": 1, "count": 0, "missing": 9, "skipped": 8}, text: dict.fromkeys(
                ("gaps", "count", "missing", "skipped"), 1)},
            Top([LossGroup("capture", text, text, text, 1, 0, 9, 8)], 66),
            Top([Loss(text, "-1", 0, text, 3, 4, START, text, text, "capture", text, text, 1, 2, 2,
                      9, 8)], 555),
        ),
        malformed=Malformeds(
            [MalformedGroup("network", text, 1, 9)],
            Top([Malformed(text, "-1", 0, text, 3, START, text, text, "network", text, 20, 16, 40,
                           16, "3c2f7363726970743e" * 2)], 444),
        ),
        tokens=Tokens(3, Top([Token(text, len(text), text, text, None, None, None),
                              Token(text, len(text), text, text, START, START + SECOND, "closed")],
                             333)),
        declarations=Top([Declaration("subscriber", text, len(text), 2, 1, [text], 9)], 222),
        declared={"subscriber": 2},
        accounts=[Account("messages", 420, 42)],
    )  # fmt: skip


class Page(HTMLParser):
    """What is on a page. Raises AssertionError where elements are not closed as they were opened."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attrs)))
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        {"script": self.scripts, "style": self.styles}.get(inside, self.texts).append(data)

    @property
    def text(self) -> str:
        """As people read it: one space between words."""
        return re.sub(r"\s+", " ", " ".join(self.texts))
