"""Options as Spark hands them over, texts by names without case, and what they stand for.

Each raises ValueError, which names the option and says what it may be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from zenwire.keyexpr import validate

__all__ = [
    "CONFIG",
    "amount",
    "flag",
    "keys",
    "known",
    "number",
    "parts",
    "seconds",
    "span",
    "word",
]

CONFIG: Final = "zenoh."
"""What options begin with that are paths of a configuration."""

_UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_TIMES: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def known(said: Iterable[str], names: Iterable[str], what: str) -> None:
    """Refuses other options than those, and paths of a configuration."""
    lower = {name.lower(): name for name in names}
    for name in said:
        low = name.lower()
        if low in lower or low.startswith(CONFIG):
            continue
        near = [lower[one] for one in get_close_matches(low, lower, 1, 0.7)]
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(lower.values())}"
        raise ValueError(f"{what} has no option {name}; {hint}")


def parts(text: str) -> tuple[str, ...]:
    """With commas between them, or as a JSON list."""
    if text.lstrip().startswith("["):
        found = json.loads(text)
        if not all(isinstance(one, str) for one in found):
            raise ValueError(f"a list of texts is expected, not {text!r}")
        return tuple(found)
    return tuple(part.strip() for part in text.split(",") if part.strip())


def keys(said: Mapping[str, str], *names: str) -> tuple[str, ...]:
    """Key expressions, of all these options together."""
    found = tuple(key for name in names for key in parts(said.get(name, "")))
    for key in found:
        validate(key)
    return found


def number(said: Mapping[str, str], name: str) -> int | None:
    """Above 0."""
    text = said.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ValueError(f"{name} is a number above 0, not {text!r}")
    return int(text)


def flag(said: Mapping[str, str], name: str, *, default: bool) -> bool:
    """True or false."""
    text = said.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name} is true or false, not {text!r}")
    return text == "true"


def word(said: Mapping[str, str], name: str, words: Mapping[str, Any], default: Any) -> Any:
    """What a word stands for; the words are in capitals, what is said need not be."""
    text = said.get(name)
    if text is None:
        return default
    found = words.get(text.upper())
    if found is None:
        raise ValueError(f"{name} is one of {', '.join(words)}, not {text!r}")
    return found


def seconds(said: Mapping[str, str], name: str) -> float | None:
    """Above 0."""
    text = said.get(name)
    if text is None:
        return None
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise ValueError(f"{name} is a number of seconds above 0, not {text!r}")
    return found


def span(said: Mapping[str, str], name: str) -> float | None:
    """Seconds of 30m or 7d."""
    return _scaled(said, name, _TIMES, "a time such as 30m or 7d")


def amount(said: Mapping[str, str], name: str) -> int | None:
    """Bytes of 500M or 50G."""
    found = _scaled(said, name, _UNITS, "an amount such as 500M or 50G")
    return None if found is None else int(found)


def _scaled(
    said: Mapping[str, str], name: str, units: Mapping[str, float], what: str
) -> float | None:
    text = said.get(name)
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]?)", text.strip().lower())
    if found is None or found[2] not in units or not float(found[1]):
        raise ValueError(f"{name} is {what}, not {text!r}")
    return float(found[1]) * units[found[2]]
