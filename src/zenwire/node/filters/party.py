"""The other side of a session, by what a configuration can name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.node.config.interceptors import LinkProtocol
    from zenwire.wire.values import ZenohId

__all__ = ["Party"]


@dataclass(frozen=True, slots=True)
class Party:
    """Who it is, and how it came.

    ``username`` and ``common_names`` are proven, ``zid`` is only said. What links join the
    session later does not change it.
    """

    zid: ZenohId | None = None
    username: str | None = None
    common_names: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()

    def comes_by(
        self, interfaces: Iterable[str] | None, protocols: Iterable[LinkProtocol] | None
    ) -> bool:
        """Whether it came by one of these, where any are given."""
        if interfaces is not None and not set(interfaces).intersection(self.interfaces):
            return False
        if protocols is None:
            return True
        return any(protocol.value in self.protocols for protocol in protocols)
