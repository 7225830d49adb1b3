"""The client: one link to a router or a peer, which does all routing for it.

It declares what it has, asks for what its publishers and liveliness subscribers need to know,
and relays nothing. When the link returns, interests and declarations are made again.
"""

from __future__ import annotations

from typing import Final

from zenwire.routing.faces import Region, Relation, Role
from zenwire.wire.values import WhatAmI

__all__ = ["CLIENT"]

_UPSTREAM: Final = Relation(Region.NORTH, pushes=True, asks=True)

CLIENT: Final = Role(
    WhatAmI.CLIENT,
    {WhatAmI.ROUTER: _UPSTREAM, WhatAmI.PEER: _UPSTREAM},
)
