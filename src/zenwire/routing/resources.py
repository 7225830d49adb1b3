"""Aliases: numbers that stand for the beginnings of keys, one table for each direction.

A scope in a message refers to the table of its sender or, without the M flag, of its receiver;
so both are needed to read and to write. The reference declares an alias when a declaration or
an interest needs one, never for data, and never takes back what it declared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from zenwire.wire.values import Mapping, WireExpr

__all__ = ["ALIAS_MAX", "Aliases", "split_wild"]

ALIAS_MAX: Final = 65_535
"""The greatest number that a scope can hold."""
WRITTEN_MAX: Final = 1024
"""Keys of which is kept how they are written."""


def split_wild(key: str) -> tuple[str, str]:
    """The longest prefix of whole chunks without wildcards, and what follows it."""
    star = key.find("*")
    if star < 0:
        return key, ""
    cut = key.rfind("/", 0, star)
    return ("", key) if cut < 0 else (key[:cut], key[cut:])


@dataclass(slots=True)
class Aliases:
    """Both tables of one face."""

    ours: dict[int, str] = field(default_factory=dict)
    theirs: dict[int, str] = field(default_factory=dict)
    _our_ids: dict[str, int] = field(default_factory=dict)
    _their_ids: dict[str, int] = field(default_factory=dict)
    _written: dict[str, WireExpr] = field(default_factory=dict)

    def resolve(self, expr: WireExpr) -> str | None:
        """The whole key of what the face sent, or None if it never declared the scope."""
        scope = expr.scope
        if not scope:
            return expr.suffix
        table = self.theirs if expr.mapping is Mapping.SENDER else self.ours
        prefix = table.get(scope)
        return None if prefix is None else prefix + expr.suffix

    def exact(self, prefix: str, suffix: str = "") -> WireExpr | None:
        """How to write ``prefix + suffix`` if there is an alias for just this prefix."""
        scope = self._their_ids.get(prefix)
        if scope is not None:
            return WireExpr(scope, suffix, Mapping.RECEIVER)
        scope = self._our_ids.get(prefix)
        return None if scope is None else WireExpr(scope, suffix, Mapping.SENDER)

    def shortest(self, key: str) -> WireExpr:
        """How to write the key by the longest prefix of whole chunks that has an alias."""
        written = self._written.get(key)
        if written is None:
            if len(self._written) >= WRITTEN_MAX:
                self._written.clear()
            written = self._written[key] = self._shortest(key)
        return written

    def _shortest(self, key: str) -> WireExpr:
        if not self._their_ids and not self._our_ids:
            return WireExpr(0, key)
        end = len(key)
        while end > 0:
            found = self.exact(key[:end], key[end:])
            if found is not None:
                return found
            end = key.rfind("/", 0, end)
        return WireExpr(0, key)

    def declare(self, prefix: str) -> int | None:
        """A new alias of ours, or None if all numbers are taken."""
        scope = len(self.ours) + 1
        if scope > ALIAS_MAX:
            return None
        self._written.clear()
        self.ours[scope] = prefix
        self._our_ids[prefix] = scope
        return scope

    def learn(self, scope: int, prefix: str) -> bool:
        """An alias of theirs. False if the number is zero or stands for something else."""
        if not scope or self.theirs.get(scope, prefix) != prefix:
            return False
        self._written.clear()
        self.theirs[scope] = prefix
        self._their_ids.setdefault(prefix, scope)
        return True

    def forget(self, scope: int) -> bool:
        """They took an alias back. False if there was none."""
        prefix = self.theirs.pop(scope, None)
        if prefix is None:
            return False
        self._written.clear()
        if self._their_ids.get(prefix) == scope:
            del self._their_ids[prefix]
        return True
