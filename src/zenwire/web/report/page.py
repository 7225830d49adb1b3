"""The page: one file, nothing from anywhere else, and a policy that says so to the browser.

Foreign text is escaped where markup is made; scripts run only if they are the one whose hash the
policy names, so that even markup that came through would be inert.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files as package_files
from pathlib import PurePath
from typing import Final

from zenwire import __version__
from zenwire.web.report import damage, sections
from zenwire.web.report.markup import Html, foreign, h, raw
from zenwire.web.report.model import Summary, Verdict, to_json
from zenwire.web.report.text import bytes_of, clock, duration, number

__all__ = ["render"]

_PARTS: Final[tuple[tuple[str, str, Callable[[Summary], Html]], ...]] = (
    ("topology", "Topology", sections.sessions),
    ("traffic", "Traffic", sections.messages),
    ("keys", "Keys", sections.keys),
    ("queries", "Queries", sections.queries),
    ("losses", "Losses", damage.losses),
    ("malformed", "Malformed", damage.malformed),
    ("liveliness", "Liveliness", sections.liveliness),
    ("declarations", "Declarations", sections.declared),
    ("bytes", "Bytes", damage.books),
    ("files", "Files", sections.files),
)
_OF_LAKE: Final = ("traffic", "keys", "losses", "liveliness", "files")
"""A recorder has no wire: the other parts would be empty, always."""
_MARKS: Final = {"good": "\N{HEAVY CHECK MARK}", "note": "i", "bad": "!"}


def render(summary: Summary) -> str:
    """The whole document."""
    style, script = _file("style.css"), _file("report.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [
        _header(summary),
        h("main", [made(summary) for name, _, made in _PARTS if _has(summary, name)], id="main"),
        h("footer", h("p", f"Made by zenwire {__version__}. Times are UTC or count from the "
          "first message; 1 kB is 1,000 bytes.")),
        h("script", raw(_data(summary)), type="application/json", id="data"),
        h("script", raw(script)),
    ]  # fmt: skip
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=policy),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("meta", name="referrer", content="no-referrer"),
        h("title", f"{_title(summary)} \N{MIDDLE DOT} zenwire report"),
        h("style", raw(style)),
    )
    skip = h("a", "To the report", href="#main", class_="skip")
    return f"<!doctype html>\n{h('html', head, h('body', skip, parts), lang='en')}\n"


def _has(summary: Summary, part: str) -> bool:
    return not summary.is_recorded or part in _OF_LAKE


def _file(name: str) -> str:
    return package_files("zenwire.web.report").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _data(summary: Summary) -> str:
    """JSON in which nothing can end the element that it stands in."""
    text = to_json(summary)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _title(summary: Summary) -> str:
    names = [PurePath(path).name or path for path in summary.paths]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _header(summary: Summary) -> Html:
    when = None
    if summary.start is not None and summary.end is not None:
        begin, end = clock(summary.start), clock(summary.end)
        same = begin[:10] == end[:10]
        when = h("p", f"{begin} to {end[11:] if same else end} UTC", class_="when")
    return h(
        "header",
        h("p", "zenwire report", class_="eyebrow"),
        h("h1", foreign(_title(summary))),
        when,
        _verdict(summary.verdict),
        _figures(summary),
        _contents(summary),
    )


def _verdict(verdict: Verdict) -> Html:
    points = [h("li", h("a", text, href=f"#{part}")) for text, part in verdict.points]
    return h(
        "div",
        h("span", _MARKS[verdict.level], class_="mark", aria_hidden="true"),
        h("div", h("p", f"{verdict.headline}.", class_="headline"),
          h("ul", points) if points else None),
        class_=f"verdict v-{verdict.level}",
    )  # fmt: skip


def _figures(summary: Summary) -> Html:
    """The few numbers that matter."""
    figures: list[tuple[str, str, str]] = []
    if summary.captures is not None:
        many = "file" if summary.captures.total == 1 else "files"
        figures.append((number(summary.captures.total), many, "files"))
    if summary.start is not None and summary.end is not None:
        figures.append((duration(summary.end - summary.start), "time span", "traffic"))
    if summary.sessions is not None:
        word = "session" if summary.sessions.rows.total == 1 else "sessions"
        figures.append((number(summary.sessions.rows.total), word, "topology"))
        figures.append((bytes_of(summary.sessions.bytes), "in sessions", "topology"))
    if summary.messages is not None:
        figures.append((number(summary.message_total), "messages", "traffic"))
    if summary.keys is not None:
        figures.append((number(summary.keys.rows.total), "keys", "keys"))
    if summary.queries is not None and summary.queries.overall.queries:
        figures.append((number(summary.queries.overall.queries), "queries", "queries"))
    if summary.losses is not None:
        figures.append((number(summary.losses.rows.total), "gaps", "losses"))
    if summary.malformed is not None:
        figures.append((number(summary.malformed.rows.total), "malformed", "malformed"))
    cells = [
        h("a", h("b", value), h("span", word), href=f"#{part}", class_=_alarm(value, part))
        for value, word, part in figures
    ]
    return h("div", cells, class_="figures")


def _alarm(value: str, part: str) -> str | None:
    return "alarm" if part in ("losses", "malformed") and value != "0" else None


def _contents(summary: Summary) -> Html:
    links = [
        h("li", h("a", text, href=f"#{part}")) for part, text, _ in _PARTS if _has(summary, part)
    ]
    return h("nav", h("ul", links), aria_label="Parts of the report")
