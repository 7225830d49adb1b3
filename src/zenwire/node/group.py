"""The multicast transport: a group of nodes that all hear each other, as one face of routing.

There are no sessions and no queries here. Data goes to everyone, and what any member sends comes
in by the same face.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from zenwire.node.neighbour import Queue
from zenwire.node.offers import facts_of, group_settings
from zenwire.transport import Joined, Left, Multicast, Received, Writable
from zenwire.wire.values import WhatAmI

if TYPE_CHECKING:
    from zenwire.links import Facts
    from zenwire.node.node import Node
    from zenwire.node.reach import Member
    from zenwire.routing import Face
    from zenwire.transport import Event
    from zenwire.wire.locator import EndPoint, Locator

__all__ = ["Group"]

_log = logging.getLogger("zenwire.node")


_CONGESTED: Final = 0.005
"""Seconds after which a group that took no more datagrams is asked again."""


class Group(Queue):
    """One group that this node is in."""

    __slots__ = (
        "_flushing",
        "_member",
        "_node",
        "_timer_of",
        "endpoint",
        "face",
        "machine",
        "over",
    )

    def __init__(self, node: Node, endpoint: EndPoint, facts: Facts) -> None:
        settings = group_settings(node.config, node.settings)
        link = facts_of(facts, endpoint)
        self.machine = Multicast(
            settings, link, node.now, node.random, node.adjacency.sessions.budget
        )
        super().__init__(self.machine, settings.wait_before_drop, settings.wait_before_close)
        self.endpoint = endpoint
        self.over = asyncio.Event()
        self.face: Face = node.tables.add_face(node.zid, WhatAmI.PEER, node.now, multicast=True)
        self._node = node
        self._member: Member | None = None
        self._flushing = False
        self._timer_of: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, node: Node, endpoint: EndPoint) -> Group:
        """Join, and be heard. Raises LinkError."""
        made: list[Group] = []

        def received(data: bytes, source: Locator) -> None:
            if made:
                made[0].received(data, source)

        member, facts = await node.reach.join(endpoint, received)
        group = Group(node, endpoint, facts)
        group._member = member
        made.append(group)
        group.flush()
        return group

    def received(self, data: bytes, source: Locator) -> None:
        """A datagram of somebody in the group."""
        if self._member is not None:
            if self._node.tap is not None:
                self._node.tap.datagram(source, self.endpoint.locator, data)
            self._handle(self.machine.receive(data, source, self._node.now))
            self.flush()

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Received):
                self._node.take(self.face, event)
            elif isinstance(event, Writable):
                self.retry()
            elif isinstance(event, Joined):
                _log.info("%s is in the group %s", event.peer.zid, self.endpoint.locator)
            elif isinstance(event, Left):
                _log.info("%s has left %s: %s", event.peer.zid, self.endpoint.locator, event.text)
        self._node.settle()

    # What goes out.

    def flush(self) -> None:
        member = self._member
        if member is None:
            return
        while member.writable and (data := self.machine.pull(self._node.now)):
            if self._node.tap is not None:
                self._node.tap.datagram(None, self.endpoint.locator, data)
            member.send(data)
        self._arm()

    def flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flushing = False
        self.flush()

    def _arm(self) -> None:
        if self._timer_of is not None:
            self._timer_of.cancel()
        loop = asyncio.get_running_loop()
        deadline = self.machine.deadline
        if self._member is not None and not self._member.writable:
            # Nothing tells when the system takes datagrams again.
            self._timer_of = loop.call_later(_CONGESTED, self._tick)
        elif deadline is not None:
            self._timer_of = loop.call_at(max(deadline, loop.time()), self._tick)

    def _tick(self) -> None:
        self._handle(self.machine.tick(self._node.now))
        self.flush()

    async def close(self) -> None:
        """Say that we leave, and do."""
        member = self._member
        if member is None:
            return
        self.flush()
        self.machine.close(self._node.now)
        self.flush()
        self._member = None
        if self._timer_of is not None:
            self._timer_of.cancel()
        self.give_up()
        self._node.groups.pop(self.face, None)
        self._node.tables.remove_face(self.face)
        self.over.set()
        await member.close()

    async def ended(self) -> None:
        """Wait until this node has left."""
        await self.over.wait()
