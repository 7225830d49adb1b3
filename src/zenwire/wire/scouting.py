"""Scouting messages: one in each UDP datagram, before there is any session."""

from __future__ import annotations

from zenwire.wire import kinds as k
from zenwire.wire.define import field, flag, message
from zenwire.wire.locator import Locator
from zenwire.wire.values import WhatAmI, WhatAmIMatcher, ZenohId

__all__ = ["Hello", "Scout", "ScoutingMessage"]


@message("SCOUT", scope="scouting", id=0x01)
class Scout:
    """A question: who is there, of these kinds."""

    version: int = field(k.u8)
    zid: ZenohId | None = field(k.optional_packed_zid, default=None)
    what: WhatAmIMatcher = field(k.whatami_matcher)


@message("HELLO", scope="scouting", id=0x02)
class Hello:
    """I am, and here I can be reached."""

    L = flag(5)

    version: int = field(k.u8)
    zid: ZenohId = field(k.packed_zid)
    whatami: WhatAmI = field(k.whatami_index)
    locators: tuple[Locator, ...] = field(k.locators, when=L, default=())


ScoutingMessage = Scout | Hello
