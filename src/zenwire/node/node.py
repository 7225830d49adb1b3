"""A node at work: links, transports and routing, driven by the event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from zenwire.node.adjacency import Adjacency
from zenwire.node.clock import Clock, FutureTimestamp
from zenwire.node.filters import Filters
from zenwire.node.group import Group
from zenwire.node.neighbour import Neighbour
from zenwire.node.offers import Together, routing_options, transport_settings, with_defaults
from zenwire.node.once import Once
from zenwire.node.plane import Plane
from zenwire.node.reach import Names, Reach
from zenwire.node.settling import Settling
from zenwire.node.stats import NodeStats, stats_of
from zenwire.node.turns import Turns
from zenwire.routing import CLIENT, PEER, ROUTER, Face, Limits, Tables
from zenwire.wire.data import Put
from zenwire.wire.network import Push
from zenwire.wire.repeat import with_body, with_timestamp
from zenwire.wire.values import WhatAmI, ZenohId

if TYPE_CHECKING:
    from zenwire.links import Listener
    from zenwire.node.admin.keys import KeyCounts
    from zenwire.node.admin.session import SessionSpace
    from zenwire.node.admin.space import AdminSpace
    from zenwire.node.autoconnect import Autoconnect
    from zenwire.node.config import Effective
    from zenwire.node.filters import Gate
    from zenwire.node.scouting import Scouting
    from zenwire.node.seats import Connection
    from zenwire.node.tap import Tap
    from zenwire.routing import Session
    from zenwire.transport import Received, Settings
    from zenwire.wire.locator import EndPoint, Locator
    from zenwire.wire.network import NetworkMessage

__all__ = ["Node"]

_log = logging.getLogger("zenwire.node")

_ROLES = {WhatAmI.CLIENT: CLIENT, WhatAmI.PEER: PEER, WhatAmI.ROUTER: ROUTER}


class Node(Settling):
    """One node of the network. `open_node` makes one that follows its configuration.

    ``random`` gives bytes and ``now_ns`` the time of day, both of the operating system by default;
    ``network`` is where ``memory/`` endpoints and multicast groups are, if not in sockets.
    ``limits`` bound what one neighbour may cost.
    """

    def __init__(
        self,
        config: Effective,
        random: Callable[[int], bytes] = os.urandom,
        network: Names | None = None,
        now_ns: Callable[[], int] = time.time_ns,
        limits: Limits | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.random = random
        self.reach = Reach(network)
        self.zid = config.settings.id or ZenohId(random(16))
        self.settings, self.filters = _meaning(config, self.zid)
        self.ingress: dict[Face, Gate] = {}
        """What those have to pass whose messages are filtered."""
        self._role = _ROLES[config.mode]
        self._limits = limits
        self._now_ns = now_ns
        self.clock = Clock(self.zid, now_ns)
        self.scouting: Scouting | None = None
        """If it takes part in scouting by multicast."""
        self.autoconnect: Autoconnect | None = None
        """If it dials those that it finds."""
        self.admin: AdminSpace | None = None
        """What answers for ``@/<zid>/<whatami>``, if it is enabled."""
        self.session_spaces: dict[int, SessionSpace] = {}
        """What sessions tell themselves of neighbours, if they ask."""
        self.tap: Tap | None = None
        """What writes down all that links carry, if anything does."""
        self.closed = False
        self._closing = Once()
        self.late = 0
        """Samples that were dropped, or stamped anew, for a time that is too far ahead."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._closers: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self.plane = Plane(self)
        self.turns = Turns()
        self.adjacency = Adjacency(self)
        self._neighbours = self.adjacency.neighbours

    def _new_tables(self) -> Tables:
        life = max(self._now_ns() // 1_000_000_000, 1)
        tables = Tables(
            self.zid,
            self._role,
            limits=self._limits,
            life=life,
            options=routing_options(self.config),
        )
        weights = self.config.settings.routing.router.linkstate.transport_weights
        if weights:
            tables.set_weights({each.dst_zid: each.weight for each in weights})
        return tables

    @property
    def neighbours(self) -> dict[Face, Neighbour]:
        """The nodes that this one has a session with."""
        return self.adjacency.neighbours

    @property
    def on_neighbour(self) -> list[Callable[[Neighbour, bool], None]]:
        """Told of a neighbour that came (True) or goes."""
        return self.adjacency.on_neighbour

    @property
    def key_stats(self) -> Mapping[str, KeyCounts]:
        """What went over the keys that are counted apart."""
        return {} if self.filters is None else self.filters.keys

    @property
    def listeners(self) -> list[Listener]:
        return self.adjacency.listeners

    # Local sessions.

    def session(self) -> Session:
        """A session of routing: after its calls, ``settle`` carries out what came of them."""
        return self.tables.session()

    # What comes in.

    def take(self, face: Face, event: Received, ends: float = float("inf")) -> bool:
        """Messages of a neighbour, or of a group. ``settle`` carries out what comes of them.

        False if they take longer than until ``ends``: the event has those that are left.
        """
        receive, now, reliable = self.tables.receive, self.time(), event.reliable
        timestamping, messages = self.config.timestamping, event.messages
        if now > ends and messages and type(messages[0]) is not Push:
            return False
        gate = self.ingress.get(face) if self.ingress else None
        for at, said in enumerate(messages, 1):
            message = said if gate is None else gate(said, reliable, self.time())
            if message is None:
                continue
            if timestamping and type(message) is Push:
                stamped = self._stamped(message)
                if stamped is not None:
                    receive(face, stamped, now, reliable=reliable)
                continue
            receive(face, message, now, reliable=reliable)
            if type(message) is not Push:
                self.turns.touched = True
                # An interest of some bytes may be answered by all declarations there are, so
                # that what many come to must not pile up, nor keep others waiting.
                if self._state.outputs:
                    self._carry_out()
                if at < len(messages) and self.time() > ends:
                    del messages[:at]
                    return False
        return True

    def hear(self, face: Face, messages: list[NetworkMessage], reliable: bool, now: float) -> None:
        """Messages of a neighbour that cost little: no declarations and interests."""
        receive, timestamping = self.tables.receive, self.config.timestamping
        gate = self.ingress.get(face) if self.ingress else None
        if gate is None and not timestamping:
            for said in messages:
                receive(face, said, now, reliable=reliable)
            return
        for said in messages:
            message = said if gate is None else gate(said, reliable, self.time())
            if message is None:
                continue
            if timestamping and type(message) is Push:
                stamped = self._stamped(message)
                if stamped is not None:
                    receive(face, stamped, now, reliable=reliable)
                continue
            receive(face, message, now, reliable=reliable)

    def _stamped(self, push: Push) -> Push | None:
        """With a time, if it is a PUT; None for what is to be dropped for being of the future.

        A time of others is learnt from, and replaced if it is too far ahead.
        """
        body = push.body
        if type(body) is not Put:
            return push
        if body.timestamp is not None:
            try:
                self.clock.update_with_timestamp(body.timestamp)
            except FutureTimestamp:
                self.late += 1
                if self.config.drop_future_timestamp:
                    return None
            else:
                return push
        return with_body(push, with_timestamp(body, self.clock.new_timestamp()))

    # Other nodes.

    async def listen(self, endpoint: EndPoint) -> Listener:
        """Let others connect. Raises LinkError."""
        listener = await self.adjacency.listen(endpoint)
        if self.config.scouting.gossip.enabled:
            self.tables.set_locators(self.public_locators())
            self.settle()
        return listener

    def locators(self, *, loopback: bool = True) -> list[Locator]:
        """Where others reach this node."""
        return [where for one in self.listeners for where in one.locators(loopback=loopback)]

    def public_locators(self) -> list[Locator]:
        """Locators for nodes elsewhere: loopback ones only if there are no others.

        A node that listens on loopback alone has neighbours and askers on its own machine.
        """
        return self.locators(loopback=False) or self.locators()

    async def connect(self, endpoint: Locator, expect: ZenohId | None = None) -> Connection:
        """A session with who listens there; ``expect`` is who that must be.

        Returns when the handshake is over, also if there is a session with that node already.
        Raises LinkError; NotOpened for a refusal.
        """
        return await self.adjacency.connect(endpoint, expect)

    def find(self, zid: ZenohId) -> Neighbour | None:
        """The neighbour with this id, if there is one."""
        return self.adjacency.find(zid)

    async def join(self, endpoint: EndPoint) -> Group:
        """Take part in a multicast group. Raises LinkError."""
        self.adjacency.check(endpoint)
        group = await Group.open(self, with_defaults(endpoint, self.config))
        self.groups[group.face] = group
        self.settle()
        return group

    # What goes on in the background.

    def spawn(self, what: Coroutine[Any, Any, None]) -> None:
        """Run something until it ends, or this node does."""
        task = self._loop.create_task(what)
        self._tasks[task] = None
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            _log.error("something in the background failed", exc_info=task.exception())

    def at_close(self, closer: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What has to be ended together with this node."""
        self._closers.append(closer)

    def stats(self) -> NodeStats:
        """What was counted so far."""
        return stats_of(self)

    # The end.

    async def close(self, grace: float = 3.0) -> None:
        """Send what is queued and CLOSE to all neighbours, then end all links and listeners.

        What is queued goes out, for as long as others take some of it in ``grace`` seconds. All
        callers wait for the same end; it goes on if one of them is cancelled. If the loop ends
        meanwhile, links end without waiting for neighbours.
        """
        self.closed = True
        # A caller that is one of the node's own tasks must not wait for itself.
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        await self._closing.run(lambda: self._close(tasks, grace))

    async def _close(self, tasks: list[asyncio.Task[None]], grace: float) -> None:
        if "tables" in self.__dict__:
            self.tables.state.stale()
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks)
            await self._leave(grace)
        except asyncio.CancelledError:
            await self._leave(0.0)
            raise

    async def _leave(self, grace: float) -> None:
        """End what listens and what is connected. After a cancellation it can be called again."""
        while self._closers:
            await self._closers.pop(0)()
        for group in list(self.groups.values()):
            await group.close()
        await self.adjacency.close(grace)
        # What programs still have may refer to this node; it need not refer to that.
        self.receivers.clear()
        self.row_receivers.clear()
        if self._timer is not None:
            self._timer.cancel()


def _meaning(config: Effective, zid: ZenohId) -> tuple[Settings, Filters | None]:
    """For transports, and for what may pass: None if everything may. Raises ConfigError."""
    together = Together()
    settings = together.get(lambda: transport_settings(config, zid))
    filters = together.get(lambda: Filters.of(config.settings))
    together.check()
    assert settings is not None
    return settings, filters
