"""Links: the only sockets. Bytes in, bytes out; no message is known here.

``connect`` and ``listen`` take an endpoint of any protocol and give a Link, whose bytes go to
a Receiver; ``open_multicast`` joins a group, for scouting and the multicast transport.
"""

from zenwire.links.base import (
    HIGH_WATER,
    LOW_WATER,
    Attach,
    Counters,
    Facts,
    Link,
    Listener,
    Receiver,
)
from zenwire.links.endpoint import (
    PROTOCOLS,
    Options,
    check_protocol,
    options_of,
    parse_endpoint,
    priorities_of,
    reliability_of,
    shown,
)
from zenwire.links.errors import EndpointError, LinkError
from zenwire.links.memory import Group, Network
from zenwire.links.multicast import Multicast, is_multicast, open_multicast
from zenwire.links.opening import CONNECT_TIMEOUT, connect, listen

__all__ = [
    "CONNECT_TIMEOUT",
    "HIGH_WATER",
    "LOW_WATER",
    "PROTOCOLS",
    "Attach",
    "Counters",
    "EndpointError",
    "Facts",
    "Group",
    "Link",
    "LinkError",
    "Listener",
    "Multicast",
    "Network",
    "Options",
    "Receiver",
    "check_protocol",
    "connect",
    "is_multicast",
    "listen",
    "open_multicast",
    "options_of",
    "parse_endpoint",
    "priorities_of",
    "reliability_of",
    "shown",
]
