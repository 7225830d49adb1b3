"""The words of the admin space: what was asked, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from zenwire.wire.encoding import Encoding

__all__ = ["JSON", "TEXT", "Answer", "Asked", "Reply", "as_json", "asked_below", "version"]

JSON: Final = Encoding.parse("application/json")
TEXT: Final = Encoding.parse("text/plain")


class Answer(NamedTuple):
    """One of the replies to a query."""

    key: str
    payload: bytes
    encoding: Encoding = JSON


Reply = Answer | None
"""None where something was looked at, and is not for the one who asks."""


class Asked(NamedTuple):
    """A query, and the key under which what answers it begins."""

    prefix: str
    key: str
    parameters: Mapping[str, str]


def as_json(value: object) -> bytes:
    """In the reference's way: no spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def asked_below(asked: Asked) -> str | None:
    """What of a query is about the keys below the prefix; None if that may be all of them."""
    start = asked.prefix + "/"
    return asked.key[len(start) :] if asked.key.startswith(start) else None


@cache
def version() -> str:
    """What this node says it is."""
    from importlib import metadata  # noqa: PLC0415 - slow to load, and seldom asked for

    try:
        return f"zenwire {metadata.version('zenwire')}"
    except metadata.PackageNotFoundError:  # it was not installed
        return "zenwire"
