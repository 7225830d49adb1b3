"""The namespace of a session: a prefix of all its keys that its program does not see."""

from __future__ import annotations

from zenwire.keyexpr import KeyExpr, intersects

__all__ = ["Namespace"]


class Namespace:
    """Puts the prefix before keys that go out, and takes it from those that come in."""

    __slots__ = ("_chunks", "prefix")

    def __init__(self, prefix: KeyExpr | None) -> None:
        self.prefix = None if prefix is None else f"{prefix}/"
        self._chunks = () if prefix is None else prefix.chunks

    def outward(self, key: str) -> str:
        """The key as others see it."""
        return key if self.prefix is None else self.prefix + key

    def inward(self, key: str) -> str | None:
        """The key as the program sees it; None for one that does not lie in here."""
        if self.prefix is None:
            return key
        if key.startswith(self.prefix):
            return key[len(self.prefix) :]
        return self._wild(key) if "*" in key else None

    def _wild(self, key: str) -> str | None:
        """What is left of an expression whose wildcards may stand for the prefix."""
        chunks = key.split("/")
        for at, mine in enumerate(self._chunks):
            if at >= len(chunks):
                return None
            if chunks[at] == "**":
                # It takes the rest of the prefix, and may take more.
                return "/".join(chunks[at:])
            if not intersects(chunks[at], mine):
                return None
        return "/".join(chunks[len(self._chunks) :]) or None
