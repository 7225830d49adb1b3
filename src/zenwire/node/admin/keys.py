"""What goes over the keys that ``stats/filters`` names, counted apart.

Nothing is counted, and nothing costs anything, if it names none. A message counts for each of the
first `KEYS_MAX` that intersect its key.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from zenwire.errors import ConfigProblem
from zenwire.keyexpr import intersects
from zenwire.node.filters.messages import payload_size
from zenwire.wire.data import Err, Put
from zenwire.wire.network import Push, Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zenwire.node.config import Settings
    from zenwire.node.config.interceptors import Flow
    from zenwire.wire.network import NetworkMessage

__all__ = ["KEYS_MAX", "KeyCounts", "KeyStep", "key_counts", "key_problems"]

KEYS_MAX: Final = 256
"""Keys that may be counted apart: each message is held against them."""
_KNOWN: Final = 4_096
"""Keys of messages of which is remembered what they count for."""
_MESSAGES: Final = ("put", "del", "query", "reply", "reply_err")


@dataclass(slots=True)
class Numbers:
    """Messages of one kind, in one direction. ``ages`` are of those that say when they were made."""

    messages: int = 0
    bytes: int = 0
    ages: int = 0
    age_sum: float = 0.0
    age_max: float = 0.0

    def add(self, size: int, age: float | None) -> None:
        self.messages += 1
        self.bytes += size
        if age is not None:
            self.ages += 1
            self.age_sum += age
            self.age_max = max(self.age_max, age)

    def of(self, what: str) -> int:
        return self.messages if what == "messages" else self.bytes

    def told(self) -> dict[str, Any]:
        mean = self.age_sum / self.ages if self.ages else None
        return {
            "messages": self.messages,
            "bytes": self.bytes,
            "age_mean_s": mean,
            "age_max_s": self.age_max if self.ages else None,
        }


def _kinds() -> dict[str, Numbers]:
    return {name: Numbers() for name in _MESSAGES}


@dataclass(slots=True)
class KeyCounts:
    """One key, by direction and kind of message."""

    ways: dict[str, dict[str, Numbers]] = field(
        default_factory=lambda: {"rx": _kinds(), "tx": _kinds()}
    )

    def told(self) -> dict[str, Any]:
        """All of it that is not zero."""
        return {
            way: {name: numbers.told() for name, numbers in kinds.items() if numbers.messages}
            for way, kinds in self.ways.items()
        }

    def named(self) -> dict[str, Any]:
        """By the reference's names."""
        told: dict[str, Any] = {}
        for way, kinds in self.ways.items():
            for name in _MESSAGES[:4]:
                numbers = kinds[name]
                told[f"{way}_z_{name}_msgs"] = {"admin": 0, "user": numbers.messages}
                told[f"{way}_z_{name}_pl_bytes"] = {"admin": 0, "user": numbers.bytes}
        return told


def key_counts(settings: Settings) -> dict[str, KeyCounts]:
    """An entry for each key that the configuration names."""
    return {str(one.key): KeyCounts() for one in settings.stats.filters[:KEYS_MAX]}


def key_problems(settings: Settings) -> list[ConfigProblem]:
    """What cannot be done."""
    many = len(settings.stats.filters)
    if many <= KEYS_MAX:
        return []
    return [ConfigProblem("stats/filters", f"{many} keys; {KEYS_MAX} can be counted apart")]


class KeyStep:
    """A filter that lets everything pass, and counts it."""

    cause = None

    def __init__(
        self,
        counts: Mapping[str, KeyCounts],
        flow: Flow,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._counts = counts
        self._now_ns = now_ns
        self._way = "tx" if flow.value == "egress" else "rx"
        self._of = lru_cache(_KNOWN)(self._find)

    def _find(self, key: str) -> tuple[dict[str, Numbers], ...]:
        counts = self._counts.items()
        return tuple(its.ways[self._way] for name, its in counts if intersects(name, key))

    def __call__(
        self, message: NetworkMessage, what: object, key: str | None, reliable: bool, now: float
    ) -> NetworkMessage | None:
        """Count, and let pass."""
        del what, reliable, now
        name = _kind(message)
        found = () if key is None or name is None else self._of(key)
        if found and name is not None:
            size, age = payload_size(message), self._age(message)
            for kinds in found:
                kinds[name].add(size, age)
        return message

    def _age(self, message: NetworkMessage) -> float | None:
        """Seconds since a value was given its time, by whatever clock gave it."""
        body = message.body if type(message) is Push else None
        if type(body) is not Put or body.timestamp is None:
            return None
        return max(self._now_ns() / 1e9 - body.timestamp.time / 2**32, 0.0)


def _kind(message: NetworkMessage) -> str | None:
    if isinstance(message, Push):
        return "put" if type(message.body) is Put else "del"
    if isinstance(message, Request):
        return "query"
    if isinstance(message, Response):
        return "reply_err" if isinstance(message.body, Err) else "reply"
    return None
