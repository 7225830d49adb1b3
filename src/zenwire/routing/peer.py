"""The peer: linked to every other peer, so that none relays for another.

It tells its neighbours all it has, and serves clients of its own: between them, and between them
and the peers and routers, it does relay. A router is told the same, and asked like a client asks.
"""

from __future__ import annotations

from typing import Final

from zenwire.routing.faces import Region, Relation, Role
from zenwire.wire.values import WhatAmI

__all__ = ["PEER"]

PEER: Final = Role(
    WhatAmI.PEER,
    {
        WhatAmI.PEER: Relation(
            Region.NORTH, pushes=True, introduces=True, serves=True, gossips=True
        ),
        WhatAmI.ROUTER: Relation(Region.NORTH, pushes=True, asks=True, gossips=True),
        WhatAmI.CLIENT: Relation(Region.CLIENTS, relays=True, serves=True, echoes=True),
    },
)
