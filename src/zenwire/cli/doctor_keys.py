"""Keys that almost match: why what is published is not what is subscribed to."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire.errors import KeyExprError
from zenwire.keyexpr import KeyExpr, intersects

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Miss", "misses", "published_key"]

_SIMILAR: Final = 0.75
_SHOWN: Final = 5
_TOKEN_CHUNKS: Final = 12
"""Chunks of a liveliness token of rmw_zenoh that says what is published."""


class Miss(NamedTuple):
    """A key that does not match, why, and an expression that would."""

    key: str
    why: str
    instead: str


def misses(wanted: str, keys: Iterable[str]) -> list[Miss]:
    """Those of the keys that were probably meant, the likeliest first; a few of them."""
    found: list[tuple[int, Miss]] = []
    for key in keys:
        if not intersects(wanted, key):
            miss = _miss(wanted, key)
            if miss is not None:
                found.append(miss)
    return [miss for _, miss in sorted(found)[:_SHOWN]]


def _miss(wanted: str, key: str) -> tuple[int, Miss] | None:
    verbatim = _verbatim(wanted, key)
    if verbatim is not None:
        return 0, verbatim
    if intersects(wanted.lower(), key.lower()):
        return 1, Miss(key, "upper and lower case differ", key)
    if intersects(f"**/{wanted}" if not wanted.startswith("**") else wanted, key):
        return 2, Miss(key, "has something before it (a namespace?)", _canonical(f"**/{wanted}"))
    chunks = wanted.split("/")
    for at in range(1, len(chunks)):
        rest = "/".join(chunks[at:])
        if rest not in ("*", "**") and intersects(rest, key):
            prefix = "/".join(chunks[:at])
            return 3, Miss(key, f"is not below {prefix!r}", rest)
    if intersects(f"{wanted}/**", key):
        return 4, Miss(key, "goes deeper", _canonical(f"{wanted}/**"))
    if len(chunks) > 1 and intersects("/".join(chunks[:-1]), key):
        return 5, Miss(key, "ends earlier", key)
    if difflib.SequenceMatcher(None, wanted, key).ratio() >= _SIMILAR:
        return 6, Miss(key, "is written almost so", key)
    return None


def _verbatim(wanted: str, key: str) -> Miss | None:
    """Chunks with ``@`` are matched by themselves alone, never by a wildcard."""
    special = [chunk for chunk in key.split("/") if chunk.startswith("@")]
    plain = "/".join(chunk.removeprefix("@") or "_" for chunk in key.split("/"))
    asked = "/".join(chunk.removeprefix("@") or "_" for chunk in wanted.split("/"))
    if not special or not intersects(asked, plain):
        return None
    last = max(at for at, chunk in enumerate(key.split("/")) if chunk.startswith("@"))
    instead = "/".join(key.split("/")[: last + 1])
    if last + 1 < len(key.split("/")):
        instead += "/**"
    names = ", ".join(dict.fromkeys(special))
    return Miss(key, f"no wildcard matches {names}, it must be named", instead)


def _canonical(text: str) -> str:
    try:
        return str(KeyExpr.autocanonize(text))
    except KeyExprError:
        return text


def published_key(token: str) -> str | None:
    """The key of a publisher that a liveliness token tells of, as advanced ones and ROS 2's do."""
    key, advanced, _ = token.partition("/@adv/pub/")
    if advanced:
        return key
    chunks = token.split("/")
    if len(chunks) < _TOKEN_CHUNKS or chunks[0] != "@ros2_lv" or chunks[5] != "MP":
        return None
    domain, name, type_, hash_ = chunks[1], chunks[9], chunks[10], chunks[11]
    return f"{domain}/{name.replace('%', '/').strip('/')}/{type_}/{hash_}"
