"""Finding nodes by multicast: SCOUT asks a group who is there, HELLO answers the asker alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from zenwire.errors import DecodeError
from zenwire.links import LinkError
from zenwire.node.config import Config, Effective
from zenwire.node.reach import Names, Reach
from zenwire.wire.locator import EndPoint, Locator
from zenwire.wire.objects import decode, encode
from zenwire.wire.scouting import Hello, Scout
from zenwire.wire.transport import VERSION
from zenwire.wire.values import WhatAmIMatcher

if TYPE_CHECKING:
    from zenwire.node.config.effective import EffectiveMulticast
    from zenwire.node.node import Node
    from zenwire.node.reach import Member

__all__ = ["ANSWERS_MAX", "HELLOS_MAX", "PERIOD_MAX", "Scouting", "scout"]

_log = logging.getLogger("zenwire.node")

PERIOD: Final = 1.0
PERIOD_MAX: Final = 8.0
"""Seconds between two SCOUTs: twice as many each time, up to this."""
ANSWERS_MAX: Final = 256
"""HELLOs in a second. A SCOUT is small and its address may be another's: no one is to be flooded."""
HELLOS_MAX: Final = 1_024
"""HELLOs that may wait for whoever asked."""

_ANY: Final = WhatAmIMatcher.ROUTER | WhatAmIMatcher.PEER | WhatAmIMatcher.CLIENT


class Scouting:
    """A node in the group of scouting: it answers, and tells ``on_hello`` of others.

    ``malformed`` counts datagrams that were no scouting message, ``unanswered`` the SCOUTs beyond
    what is answered in a second.
    """

    def __init__(self, node: Node, on_hello: Callable[[Hello], None]) -> None:
        self.malformed = 0
        self.unanswered = 0
        self._second = float("-inf")
        self._answers = 0
        self._node = node
        self._on_hello = on_hello
        self._member: Member | None = None

    async def open(self) -> None:
        """Join the group. Raises LinkError."""
        node = self._node
        multicast = node.config.scouting.multicast
        self._member = await _join(node.reach, multicast, self._datagram)
        node.at_close(self.close)

    def _datagram(self, data: bytes, source: Locator) -> None:
        message = _read(data)
        if isinstance(message, Hello):
            if message.zid != self._node.zid:
                self._on_hello(message)
        elif isinstance(message, Scout):
            self._answer(message, source)
        else:
            self.malformed += 1

    def _answer(self, asked: Scout, source: Locator) -> None:
        node, member = self._node, self._member
        mode = node.config.mode
        if member is None or not node.config.scouting.multicast.listen:
            return
        if not asked.what & mode or asked.zid == node.zid:
            return
        if node.now - self._second >= 1.0:
            self._second, self._answers = node.now, 0
        self._answers += 1
        if self._answers > ANSWERS_MAX:
            self.unanswered += 1
            return
        locators = node.locators() if _is_near(source) else node.public_locators()
        hello = Hello(version=VERSION, zid=node.zid, whatami=mode, locators=tuple(locators))
        try:
            member.send_to(encode(hello), source)
        except LinkError as e:
            _log.debug("no answer to the SCOUT of %s: %s", source, e)

    async def ask(self, what: WhatAmIMatcher) -> None:
        """Ask again and again, until cancelled."""
        if self._member is not None:
            await _ask(self._member, what)

    async def close(self) -> None:
        """Leave the group."""
        member, self._member = self._member, None
        if member is not None:
            await member.close()


async def scout(
    what: WhatAmIMatcher = _ANY,
    config: Config | Effective | None = None,
    *,
    network: Names | None = None,
) -> AsyncIterator[Hello]:
    """Who is there, without a node: every HELLO that comes, for as long as it is asked for.

    A node answers each SCOUT, so it comes again and again. Raises LinkError.
    """
    if not isinstance(config, Effective):
        config = (config or Config()).effective
    heard: asyncio.Queue[Hello] = asyncio.Queue(HELLOS_MAX)

    def datagram(data: bytes, _source: Locator) -> None:
        message = _read(data)
        # Whoever does not read hears it with the next SCOUT.
        if isinstance(message, Hello) and not heard.full():
            heard.put_nowait(message)

    member = await _join(Reach(network), config.scouting.multicast, datagram)
    asking = asyncio.create_task(_ask(member, what))
    try:
        while True:
            yield await heard.get()
    finally:
        asking.cancel()
        await member.close()


async def _join(
    reach: Reach, multicast: EffectiveMulticast, on_datagram: Callable[[bytes, Locator], None]
) -> Member:
    names = [name.strip() for name in multicast.interface.split(",") if name.strip()]
    ifaces = None if names in ([], ["auto"]) else names
    endpoint = EndPoint("udp", str(multicast.address))
    member, _ = await reach.join(endpoint, on_datagram, ifaces, multicast.ttl)
    return member


async def _ask(member: Member, what: WhatAmIMatcher) -> None:
    data = encode(Scout(version=VERSION, what=what))
    period = PERIOD
    while True:
        try:
            member.send(data)
        except LinkError as e:
            _log.debug("no SCOUT was sent: %s", e)
        await asyncio.sleep(period)
        period = min(period * 2, PERIOD_MAX)


def _read(data: bytes) -> Scout | Hello | None:
    try:
        message = decode(data, "scouting")
    except DecodeError:
        return None
    return message if isinstance(message, Scout | Hello) else None


def _is_near(source: Locator) -> bool:
    """Whether an asker is on this machine, as far as its address tells."""
    if source.protocol == "memory":
        return True
    host = source.address.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
