"""Connecting to nodes that were found: by multicast, or told by gossip."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from zenwire.links import LinkError, is_multicast
from zenwire.node.config.connection import AutoConnectStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zenwire.node.config.effective import EffectiveGossip, EffectiveMulticast
    from zenwire.node.node import Node
    from zenwire.node.seats import Connection
    from zenwire.routing import NodeKnown
    from zenwire.wire.locator import Locator
    from zenwire.wire.scouting import Hello
    from zenwire.wire.values import WhatAmI, ZenohId

__all__ = ["DIALS_MAX", "JITTER", "TRIES", "Autoconnect", "connect_found"]

_log = logging.getLogger("zenwire.node")

JITTER: Final = 0.1
"""Seconds within which one who was told by gossip is dialled: others were told at the same time."""
DIALS_MAX: Final = 256
"""Nodes that are being dialled. What is found beyond that is found again."""
TRIES: Final = 3
"""How often a node that was found is tried."""


class Autoconnect:
    """Dials what is found, if it is wanted and not there already.

    ``on_dial`` is told of each dial that begins (True) and ends. ``ignored`` counts finds for
    which there was no place.
    """

    def __init__(self, node: Node) -> None:
        self.on_dial: Callable[[ZenohId, bool], None] = _ignore
        self.ignored = 0
        self._node = node
        self._dialling: dict[ZenohId, None] = {}

    def hello(self, hello: Hello) -> None:
        """A HELLO came."""
        multicast = self._node.config.scouting.multicast
        if self._wanted(hello.zid, hello.whatami, multicast):
            self._begin(hello.zid, hello.locators, 0.0)

    def known(self, known: NodeKnown) -> None:
        """Gossip told of a node."""
        gossip = self._node.config.scouting.gossip
        if gossip.enabled and self._wanted(known.zid, known.whatami, gossip):
            self._begin(known.zid, known.locators, JITTER)

    def _wanted(
        self, zid: ZenohId, whatami: WhatAmI, policy: EffectiveMulticast | EffectiveGossip
    ) -> bool:
        node = self._node
        if zid == node.zid or not policy.autoconnect & whatami:
            return False
        greater = policy.strategy.get(whatami) is AutoConnectStrategy.GREATER_ZID
        return not greater or node.zid.raw > zid.raw

    def _begin(
        self, zid: ZenohId, locators: Sequence[Locator], jitter: float, short: int = 0
    ) -> None:
        node = self._node
        if not locators or zid in self._dialling or node.find(zid) is not None or node.closed:
            return
        if len(self._dialling) >= DIALS_MAX:
            self.ignored += 1
            return
        self._dialling[zid] = None
        self.on_dial(zid, True)
        node.spawn(self._dial(zid, locators, jitter, short))

    async def _dial(
        self, zid: ZenohId, locators: Sequence[Locator], jitter: float, short: int
    ) -> None:
        """``short`` sessions in a row were over at once: then it is not tried without a pause."""
        node = self._node
        retry = node.config.connect.retry
        try:
            if short:
                await asyncio.sleep(retry.delay_ms(short - 1) / 1000)
            connection = await self._try(zid, locators, jitter)
            if connection is not None and node.config.wait_for_declares:
                await node.adjacency.introduced(connection.neighbour)
        finally:
            del self._dialling[zid]
            self.on_dial(zid, False)
        if connection is not None:
            # Whoever was lost without a word may be back before anyone tells of it.
            since = node.now
            await connection.ended()
            pause = retry.delay_ms(short) / 1000
            quick = node.now - since < pause
            if not connection.neighbour.farewell and not (quick and pause == float("inf")):
                self._begin(zid, locators, JITTER, short + 1 if quick else 0)

    async def _try(
        self, zid: ZenohId, locators: Sequence[Locator], jitter: float
    ) -> Connection | None:
        node = self._node
        retry = node.config.connect.retry
        for attempt in range(TRIES):
            delay = retry.delay_ms(attempt - 1) / 1000 if attempt else 0.0
            if delay == float("inf"):
                break
            await asyncio.sleep(delay + jitter * _uniform(node))
            connection = await connect_found(node, zid, locators)
            if connection is not None:
                return connection
        return None


async def connect_found(node: Node, zid: ZenohId, locators: Sequence[Locator]) -> Connection | None:
    """A session with a node by the first of its locators that leads there, and to nobody else."""
    for locator in locators:
        if is_multicast(locator):
            continue
        if node.find(zid) is not None:
            break
        try:
            return await node.connect(locator, zid)
        except LinkError as e:
            _log.debug("%s was found, but %s", zid, e)
    return None


def _uniform(node: Node) -> float:
    return int.from_bytes(node.random(4), "little") / 2**32


def _ignore(_zid: ZenohId, _begins: bool) -> None:
    """Nobody waits for it."""
