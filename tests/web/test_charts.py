"""Layout and numbers: nothing lies on anything else, and everything has its unit."""

from __future__ import annotations

from itertools import combinations
from math import hypot

import pytest

from tests.web.pages import SECOND, START, Page, edges
from zenwire.web.report import charts, text, topology
from zenwire.web.report.model import LATENCY_BINS, Latency, Timeline, Token


@pytest.mark.parametrize(
    ("nodes", "routers"), [(2, 0), (2, 1), (3, 1), (3, 3), (6, 3), (12, 2), (40, 0), (100, 5)]
)
def test_no_two_nodes_stand_on_each_other(nodes: int, routers: int) -> None:
    found = topology.nodes_of(edges(nodes, routers))
    inner, outer = topology.place(found)
    assert inner < outer
    assert {node.hub for node in found if node.mode == "ROUTER"} <= {True}
    turned = sum(not node.hub for node in found) > 16
    for a, b in combinations(found, 2):
        # As far as the marks are wide; labels that are turned need a line, others lie flat.
        assert hypot(a.x - b.x, a.y - b.y) >= (14 if turned else 30), (a, b)
    for node in found:
        distance = hypot(node.x, node.y)
        assert distance == pytest.approx(inner if node.hub else outer)


def test_a_drawing_is_the_same_each_time_and_in_any_order() -> None:
    between = edges(30, 3)
    places = []
    for order in (between, between[::-1]):
        found = topology.nodes_of(order)
        topology.place(found)
        places.append([(n.name, round(n.x, 6), round(n.y, 6)) for n in found])
    assert places[0] == places[1]


def test_a_drawing_has_every_node_and_every_edge() -> None:
    between = edges(20, 2)
    page = Page(topology.draw(between))
    assert sum("data-node" in attrs for _, attrs in page.elements) == 20
    assert sum("data-edge" in attrs for _, attrs in page.elements) == len(between)
    for tag, attrs in page.elements:
        if "data-node" in attrs or "data-edge" in attrs:
            assert attrs["role"] == "img"
            assert attrs["aria-label"], tag


def test_a_node_that_talks_to_itself_is_drawn_once() -> None:
    (edge,) = edges(2, 1)[:1]
    alone = [type(edge)("a", "PEER", "a", "PEER", "tcp", 1, 1, 1, [], 0, ["x", "y"])]
    assert Page(topology.draw(alone)).elements


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.03, 0.05), (1, 1), (1.1, 2), (3, 5), (7, 10), (1000, 1000)]
)
def test_scales_end_at_round_numbers(value: float, top: float) -> None:
    assert charts.ceiling(value) == pytest.approx(top)


def test_a_stack_fills_what_the_counts_fill() -> None:
    line = Timeline(START, SECOND, 2, ["samples", "queries"], [[6, 0], [2, 10]], [[0, 0], [0, 0]])
    page = Page(charts.stacked(line, line.messages, "messages", text.rate))
    paths = [attrs["d"] for tag, attrs in page.elements if tag == "path"]
    # At most 10 per second: the scale ends there, so 6 are 60 percent, and 2 stand on them.
    assert paths == [
        "M0.07 100h0.86v-60h-0.86z",
        "M0.07 40h0.86v-20h-0.86zM1.07 100h0.86v-100h-0.86z",
    ]
    assert "at most 10" in page.text


def test_latencies_stand_where_the_axis_says() -> None:
    bins = [0] * LATENCY_BINS
    bins[9] = 5
    latency = Latency("k", 1, 5, 5, 5, 1e-3, 1e-3, 2e-3, 2e-3, bins)
    first, last = charts.latency_range([latency])
    assert (first, last) == (8, 11)
    assert charts.edge(9) == pytest.approx(1e-3)
    page = Page(charts.histogram(latency, first, last, axis=True))
    (p50, *_) = [a for t, a in page.elements if t == "line" and "p50" in (a["class"] or "")]
    assert p50["x1"] == "33.33%"


def test_a_life_without_begin_or_end_reaches_the_edges() -> None:
    token = Token("k", 1, "a", "b", None, None, None)
    page = Page(charts.life(token, START, START + SECOND))
    (bar,) = [attrs for tag, attrs in page.elements if tag == "rect"]
    assert (bar["x"], bar["width"]) == ("0%", "100%")
    assert sum(tag == "text" for tag, _ in page.elements) == 2


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (text.bytes_of(0), "0 B"),
        (text.bytes_of(999), "999 B"),
        (text.bytes_of(1234), "1.23 kB"),
        (text.bytes_of(45_600_000), "45.6 MB"),
        (text.rate(3), "3 /s"),
        (text.rate(12_500), "12.5 k/s"),
        (text.seconds(None), "\N{EN DASH}"),
        (text.seconds(0), "0 s"),
        (text.seconds(0.0000021), "2.1 µs"),
        (text.seconds(0.25), "250 ms"),
        (text.seconds(4000), "1 h 6 min"),
        (text.seconds(200_000), "2 d 7 h"),
        (text.count(1, "gap"), "1 gap"),
        (text.count(1200, "query", "queries"), "1,200 queries"),
        (text.clock(START), "2026-11-15 19:22:30.000"),
        (text.clock(1 << 62), "2116-02-20 23:53:38.427"),
        (text.clock(-(1 << 63)), "1677-09-21 00:12:43.145"),
        (text.short("0123456789abcdef"), "01234567"),
        (text.short("127.0.0.1:7447"), "127.0.0.1:7447"),
    ],
)
def test_numbers_as_people_read_them(told: str, wanted: str) -> None:
    assert told.replace("\N{NARROW NO-BREAK SPACE}", " ") == wanted
