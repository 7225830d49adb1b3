"""What the printers of kernel source share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from zenwire.wire.data import Del, Put
from zenwire.wire.network import Push
from zenwire.wire.transport import Frame

__all__ = ["COMMON", "Printer"]

COMMON: Final[dict[type, tuple[str, ...]]] = {
    Frame: ("priority",),
    Push: ("qos",),
    Put: ("source_info", "attachment"),
    Del: ("source_info", "attachment"),
}
"""The messages, and of their extensions those, that streams of data consist of."""


class Printer:
    """Lines of source with their indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, text: str) -> None:
        """One line, or several with indentation of their own."""
        for line in text.strip("\n").split("\n"):
            self.lines.append("    " * self.depth + line if line else "")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self(head)
        self.depth += 1
        yield
        self.depth -= 1

    @property
    def source(self) -> str:
        return "\n".join(self.lines) + "\n"
