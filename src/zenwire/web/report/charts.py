"""Charts as SVG, drawn here so that they are there without a script, on paper too.

Drawings stretch with the page, text does not: coordinates across are percentages, and what must
stretch stands in an inner ``svg`` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10
from typing import Final

from zenwire.web.report.markup import Html, h, join
from zenwire.web.report.model import LATENCY_BINS, Latency, Timeline, Token
from zenwire.web.report.text import seconds

__all__ = ["histogram", "latency_range", "life", "sparkline", "stacked", "time_axis"]

_PLOT: Final = 150
_TOP: Final = 16
_AXIS: Final = 20
_BARS: Final = 60
"""Fewer spans than this have a gap between them."""


def ceiling(value: float) -> float:
    """1, 2 or 5 times a power of ten, not below the value."""
    if value <= 0:
        return 1.0
    size = 1.0
    while size < value:
        size *= 10
    while size / 10 >= value:
        size /= 10
    return next(size / d for d in (5, 2, 1) if size / d >= value)


def stacked(
    line: Timeline, series: Sequence[Sequence[int]], name: str, unit: Callable[[float], str]
) -> Html:
    """Sums by kind on top of each other, per second. ``name`` is what JSON calls the series."""
    per_second = 1e9 / line.width
    totals = [sum(column) for column in zip(*series, strict=True)] or [0]
    top = ceiling(max(totals) * per_second)
    scale = 100 * per_second / top
    wide = 0.86 if line.bins < _BARS else 1.0
    below = [0.0] * line.bins
    paths = []
    for kind, values in zip(line.kinds, series, strict=True):
        steps = []
        for i, value in enumerate(values):
            if value:
                tall = value * scale
                y = 100 - below[i]
                steps.append(f"M{i + (1 - wide) / 2:.4g} {y:.5g}h{wide}v{-tall:.5g}h-{wide}z")
                below[i] += tall
        paths.append(h("path", d="".join(steps), class_=f"fill k-{kind}"))
    inner = h(
        "svg",
        paths,
        x="0",
        y=_TOP,
        width="100%",
        height=_PLOT,
        viewBox=f"0 0 {line.bins} 100",
        preserveAspectRatio="none",
    )
    heights = {part: _TOP + _PLOT * (1 - part) for part in (0.0, 0.5, 1.0)}
    grid = [h("line", x1="0", x2="100%", y1=y, y2=y, class_="grid") for y in heights.values()]
    labels = [
        h("text", unit(top * part), x="0", y=y - 4, class_="tick")
        for part, y in heights.items()
        if part
    ]
    cursor = h("rect", x="0", y=_TOP, width="0", height=_PLOT, class_="brush")
    peak = max(totals) * per_second
    label = f"{name} per second over {seconds(line.bins * line.width / 1e9)}; at most {unit(peak)}"
    return h(
        "svg",
        h("title", label),
        grid,
        inner,
        cursor,
        labels,
        time_axis(line.bins * line.width, _TOP + _PLOT),
        height=_TOP + _PLOT + _AXIS,
        class_="plot",
        role="img",
        aria_label=label,
    )


def _tick(part: float, y: int, told: str) -> Html:
    """A tick at so many percent; text at the edges stays inside."""
    x = f"{part:.5g}%"
    anchor = "start" if part < 4 else "end" if part > 96 else "middle"
    return join(
        h("line", x1=x, x2=x, y1=y, y2=y + 4, class_="grid"),
        h("text", told, x=x, y=y + 15, text_anchor=anchor, class_="tick"),
    )


def time_axis(span: int, y: int) -> Html:
    """Ticks at round times from 0 on; the span is in nanoseconds."""
    step = ceiling(span / 6)
    return join(
        _tick(100 * i * step / max(span, 1), y, seconds(i * step / 1e9))
        for i in range(int(span / step) + 1)
    )


def sparkline(values: Sequence[int]) -> Html:
    """Small bars without axes; even one sample shows."""
    most = max(values, default=0) or 1
    bars = "".join(
        f"M{i} 20v-{max(20 * v / most, 1.5):.3g}h1V20z" for i, v in enumerate(values) if v
    )
    return h(
        "svg",
        h("path", d=bars, class_="area"),
        viewBox=f"0 0 {len(values)} 20",
        preserveAspectRatio="none",
        class_="spark",
        aria_hidden="true",
    )


def latency_range(many: Sequence[Latency]) -> tuple[int, int]:
    """The bins that are used, with one empty on either side."""
    used = [i for latency in many for i, n in enumerate(latency.bins) if n]
    if not used:
        return 0, LATENCY_BINS
    return max(min(used) - 1, 0), min(max(used) + 2, LATENCY_BINS)


def edge(i: float) -> float:
    """Where a bin of latencies begins, in seconds."""
    return float(10 ** (i / 3 - 6))


def _place(value: float, first: int, last: int) -> float:
    """Where a latency stands, in percent."""
    at = (log10(max(value, 1e-9)) + 6) * 3
    return 100 * min(max((at - first) / (last - first), 0.0), 1.0)


def histogram(latency: Latency, first: int, last: int, *, axis: bool = False) -> Html:
    """Latencies on a logarithmic scale, with lines at the percentiles."""
    bins = latency.bins[first:last]
    most = max(bins, default=0) or 1
    bars = "".join(
        f"M{i + 0.06} 100h.88v{-96 * n / most:.4g}h-.88z" for i, n in enumerate(bins) if n
    )
    tall = 120 if axis else 28
    marks = []
    for name, value in (("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99)):
        if value is not None:
            x = f"{_place(value, first, last):.4g}%"
            marks.append(h("line", x1=x, x2=x, y1="0", y2=tall, class_=f"mark {name}"))
    ticks = []
    if axis:
        for i in range(first, last + 1):
            if i % 3 == 0:
                part = 100 * (i - first) / (last - first)
                ticks.append(_tick(part, tall, seconds(edge(i))))
        ticks.append(h("line", x1="0", x2="100%", y1=tall, y2=tall, class_="grid"))
    label = (
        f"distribution of {latency.finished:,} latencies: half within {seconds(latency.p50)}, "
        f"90 % within {seconds(latency.p90)}, 99 % within {seconds(latency.p99)}"
    )
    inner = h(
        "svg",
        h("path", d=bars, class_="fill k-queries"),
        width="100%",
        height=tall,
        viewBox=f"0 0 {max(last - first, 1)} 100",
        preserveAspectRatio="none",
    )
    return h(
        "svg",
        h("title", label),
        inner,
        marks,
        ticks,
        height=tall + (_AXIS if axis else 0),
        class_="plot" if axis else "plot small",
        role="img",
        aria_label=label,
    )


def life(token: Token, start: int, end: int) -> Html:
    """A bar from begin to end; an arrow where it goes beyond the capture."""
    span = max(end - start, 1)
    a = 0.0 if token.declared is None else 100 * (token.declared - start) / span
    b = 100.0 if token.undeclared is None else 100 * (token.undeclared - start) / span
    a, b = min(max(a, 0.0), 100.0), min(max(b, 0.0), 100.0)
    ended = token.ended_by or "alive"
    return h(
        "svg",
        h("line", x1="0", x2="100%", y1="9", y2="9", class_="grid"),
        h("rect", x=f"{a:.4g}%", y="3", width=f"{max(b - a, 0.4):.4g}%", height="12", rx="2",
          class_=f"life {ended}"),
        h("text", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", x="2", y="13", class_="beyond")
        if token.declared is None else None,
        h("text", "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}", x="100%", dx="-7", y="13",
          class_="beyond") if token.undeclared is None else None,
        height="18",
        class_="plot lane",
        aria_hidden="true",
    )  # fmt: skip
