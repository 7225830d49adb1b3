"""Who has a session with this node, who is getting one, and who did not get one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zenwire.links import LinkError
from zenwire.node.eviction import shaking
from zenwire.node.reassembly import join_budget
from zenwire.transport import Sessions, Unicast

if TYPE_CHECKING:
    from collections.abc import Callable

    from zenwire.node.carrier import Carrier
    from zenwire.node.neighbour import Neighbour
    from zenwire.transport import Settings
    from zenwire.wire.values import WhatAmI, ZenohId

__all__ = ["Connection", "NotOpened", "Seats"]


class NotOpened(LinkError):  # noqa: N818 # the word says what is the matter
    """A link on which no session was opened. ``close_reason`` is that of the CLOSE, or None."""

    def __init__(self, endpoint: str, text: str, close_reason: int | None) -> None:
        super().__init__(endpoint, f"the session was not opened: {text}")
        self.close_reason = close_reason


class Connection(NamedTuple):
    """What came of connecting. No carrier: there was a session already, over another link."""

    neighbour: Neighbour
    carrier: Carrier | None

    async def ended(self) -> None:
        """Wait for its end."""
        await (self.carrier or self.neighbour).over.wait()


class Seats(Sessions):
    """The sessions of a node. ``met`` says, of links that were dialled, who answered there.

    ``make_room`` closes a session when there are too many, and says whether it did.
    """

    def __init__(
        self,
        settings: Settings,
        key: bytes,
        random: Callable[[int], bytes],
        make_room: Callable[[], bool],
    ) -> None:
        self._joined = join_budget(settings.reassembly_limit)
        super().__init__(settings, key, random, self._joined)
        self._make_room = make_room
        self.met: dict[Unicast, ZenohId] = {}
        self.evicted = 0
        """Handshakes that gave way to newer ones."""

    def leave(self) -> None:
        """Give up the part in the budget of the process."""
        self._joined.leave(self.settings.reassembly_limit)

    def check(self, link: Unicast, zid: ZenohId, whatami: WhatAmI) -> None:
        self.met[link] = zid
        super().check(link, zid, whatami)

    def make_room(self) -> bool:
        return self._make_room()

    def evict(self, link: Unicast, now: float) -> bool:
        """End the handshake of a link that came in, if it is under way. Whether it was."""
        if not shaking(link):
            return False
        self.evicted += 1
        link.close(now)
        return True
