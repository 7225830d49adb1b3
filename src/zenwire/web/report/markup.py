"""HTML and SVG that cannot be broken by what is in it: text is escaped unless it is ``Html``.

Only ``h`` and ``raw`` make ``Html``; ``raw`` is for this package's own files.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final, TypeAlias

from zenwire.web.report.text import visible

__all__ = ["Child", "Html", "foreign", "h", "join", "raw"]


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "Html | str | int | Iterable[Child] | None"
_VOID: Final = frozenset({"br", "col", "hr", "input", "link", "meta"})


def raw(text: str) -> Html:
    """Markup of our own, never of a capture."""
    return Html(text)


def join(*children: Child) -> Html:
    """Children one after another; None is nothing."""
    return Html("".join(_parts(children)))


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str | int):
            yield escape(visible(str(child)))
        else:
            yield from _parts(child)


def h(tag: str, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element. ``class_`` is class, ``data_key`` is data-key; None and False are left out."""
    parts = [f"<{tag}"]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        known = name.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(f" {known}")
        else:
            told = f"{value:.5g}" if isinstance(value, float) else str(value)
            parts.append(f' {known}="{escape(visible(told))}"')
    parts.append(">")
    if tag in _VOID:
        return Html("".join(parts))
    parts += [*_parts(children), f"</{tag}>"]
    return Html("".join(parts))


def foreign(text: str | None, length: int = 0, *, none: str = "not known") -> Html:
    """Text of a capture: set apart, so that its direction stays its own; and whether it was cut."""
    if text is None:
        return h("em", none, class_="none")
    if not text:
        return h("em", "empty", class_="none")
    cut = f"\N{HORIZONTAL ELLIPSIS} ({length:,} characters)" if length > len(text) else None
    return join(h("bdi", visible(text, ""), class_="key"), h("small", cut) if cut else None)
