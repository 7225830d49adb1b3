"""The router: clients hear each other through it, peers what is beyond it.

All routers together are one network, in which every message follows the tree of where it came in.
A router asks nobody: clients and peers tell it what they have, and so do other routers.
"""

from __future__ import annotations

from typing import Final

from zenwire.routing.faces import Region, Relation, Role
from zenwire.wire.values import WhatAmI

__all__ = ["ROUTER"]

ROUTER: Final = Role(
    WhatAmI.ROUTER,
    {
        WhatAmI.ROUTER: Relation(Region.NORTH, routes=True),
        WhatAmI.PEER: Relation(Region.PEERS, serves=True, gateway=True),
        WhatAmI.CLIENT: Relation(Region.CLIENTS, relays=True, serves=True, echoes=True),
    },
)
