"""What the parts of the page are built of: headings, tables, names of nodes, places in tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from zenwire.web.report.markup import Child, Html, foreign, h, join
from zenwire.web.report.text import number, short

__all__ = ["absent", "cut_note", "empty", "node", "route", "section", "table", "td", "where"]

_ARROW: Final = " \N{RIGHTWARDS ARROW} "


def section(id_: str, title: str, lede: Child, *children: Child) -> Html:
    """A part with its heading and a sentence that says what it shows."""
    return h(
        "section",
        h("h2", h("a", title, href=f"#{id_}")),
        h("p", lede, class_="lede") if lede else None,
        *children,
        id=id_,
        aria_label=title,
    )


def absent(id_: str, title: str, table_name: str) -> Html:
    """A part whose table is not in the directory."""
    return section(
        id_,
        title,
        None,
        h("p", f"The table {table_name} is not in this directory.", class_="empty"),
    )


def empty(text: str) -> Html:
    """That there is nothing to show."""
    return h("p", text, class_="empty")


def cut_note(cut: int, what: str) -> Html | None:
    """That more is there than is shown."""
    return h("p", f"{number(cut)} {what}", class_="cut") if cut else None


def table(
    caption: str,
    heads: Sequence[tuple[str, str]],
    rows: Sequence[Html],
    *,
    id_: str | None = None,
    class_: str = "",
) -> Html:
    """``heads`` are (text, class); the caption is for those who do not see the page."""
    head = h("tr", [h("th", text, scope="col", class_=style or None) for text, style in heads])
    return h(
        "div",
        h(
            "table",
            h("caption", caption),
            h("thead", head),
            h("tbody", rows),
            id=id_,
            class_=class_ or None,
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def td(
    *children: Child, label: str = "", class_: str = "", value: float | str | None = None
) -> Html:
    """A cell; ``label`` is its heading on narrow screens, ``value`` what it is sorted by."""
    return h("td", *children, class_=class_ or None, data_label=label or None, data_v=value)


def node(name: str) -> Html:
    """The beginning of an id, all of it as a title."""
    if not name:
        return h("em", "of no session", class_="none")
    return h("span", short(name), class_="node-name", title=name)


def route(sender: str, receiver: str) -> Html:
    """From whom to whom."""
    return join(node(sender), _ARROW, node(receiver)) if sender or receiver else node("")


def where(
    capture: str, flow: str | None, connection: int | None, *places: tuple[str, Child]
) -> Html:
    """By which columns of the tables a row is found."""
    parts = [("capture", foreign(capture)), ("flow", flow), ("connection", connection), *places]
    known = [(name, value) for name, value in parts if value is not None]
    return h("dl", [h("div", h("dt", name), h("dd", value)) for name, value in known], class_="at")
