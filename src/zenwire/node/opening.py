"""Opening a node as its configuration says: listen, connect, scout, and wait for what it must."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING

from zenwire.links import LinkError
from zenwire.node.autoconnect import Autoconnect, connect_found
from zenwire.node.config import Config, Effective
from zenwire.node.config.terms import EndPoints, Strategy
from zenwire.node.connecting import Held, NotConnected, connect_any, keep, listen_on, stay
from zenwire.node.node import Node
from zenwire.node.scouting import Scouting
from zenwire.node.seats import Connection
from zenwire.wire.values import WhatAmI, WhatAmIMatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zenwire.node.reach import Names
    from zenwire.node.tap import Tap
    from zenwire.routing import Limits
    from zenwire.wire.locator import EndPoint
    from zenwire.wire.scouting import Hello

__all__ = ["open_node"]

_log = logging.getLogger("zenwire.node")


async def open_node(
    config: Config | Effective,
    *,
    random: Callable[[int], bytes] = os.urandom,
    network: Names | None = None,
    now_ns: Callable[[], int] = time.time_ns,
    limits: Limits | None = None,
    tap: Tap | None = None,
) -> Node:
    """A node that listens, connects and scouts, in the mode of its configuration.

    A client is connected when this returns; others go on connecting. Raises ConfigError and
    LinkError. ``tap`` writes down all that its links carry; whoever made it closes it. The other
    arguments are those of `Node`.
    """
    held = config.effective if isinstance(config, Config) else config
    node = Node(held, random, network, now_ns, limits)
    node.tap = tap
    if held.settings.adminspace.enabled:
        # Most nodes have none.
        from zenwire.node.admin.space import AdminSpace  # noqa: PLC0415

        node.admin = AdminSpace(node)
        node.admin.start()
    for notice in held.notices:
        _log.warning("%s", notice)
    try:
        await _listen(node)
        if held.mode is WhatAmI.CLIENT:
            await _open_client(node)
        else:
            await _open_peer(node)
    except BaseException:
        await node.close(grace=0.0)
        raise
    return node


async def _listen(node: Node) -> None:
    listen = node.config.listen
    seconds = _seconds(listen.timeout_ms)
    for endpoint in listen.endpoints:
        policy = listen.retry.of_endpoint(endpoint)
        if seconds and not policy.exit_on_failure:
            node.spawn(_listen_later(node, endpoint))
            continue
        try:
            await listen_on(node, endpoint, policy, seconds)
        except LinkError as e:
            if policy.exit_on_failure:
                raise
            _log.warning("%s", e)


async def _listen_later(node: Node, endpoint: EndPoint) -> None:
    listen = node.config.listen
    try:
        seconds = _seconds(listen.timeout_ms)
        await listen_on(node, endpoint, listen.retry.of_endpoint(endpoint), seconds)
    except LinkError as e:
        _log.error("%s", e)  # the place in the code says nothing more


async def _scout(node: Node, on_hello: Callable[[Hello], None]) -> Scouting | LinkError:
    scouting = Scouting(node, on_hello)
    try:
        await scouting.open()
    except LinkError as e:
        return e
    node.scouting = scouting
    return scouting


def _seconds(milliseconds: int) -> float:
    return float("inf") if milliseconds < 0 else milliseconds / 1000


# Clients: one session, with whoever comes first.


async def _open_client(node: Node) -> None:
    connect, multicast = node.config.connect, node.config.scouting.multicast
    finder = _Finder(node)
    scouting: Scouting | LinkError | None = None
    endpoints = [endpoint for group in connect.endpoints for endpoint in group.locators]
    if multicast.enabled and (multicast.listen or not endpoints):
        scouting = await _scout(node, finder.hello)
    if endpoints:
        seconds = _seconds(connect.timeout_ms)
        held = await connect_any(node, endpoints, connect.retry, seconds)
        node.spawn(keep(node, endpoints, connect.retry, held))
        return
    if scouting is None:
        hint = "set connect/endpoints, or scouting/multicast/enabled"
        raise LinkError("connect", "there is no endpoint, and multicast scouting is off", hint)
    if isinstance(scouting, LinkError):
        raise scouting
    asked = scouting

    async def find() -> Held:
        return await finder.find(asked)

    node.spawn(stay(node, find, connect.retry, await find()))


class _Finder:
    """Connects a client to the first node that answers and can be reached."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._heard: asyncio.Queue[Hello] | None = None

    def hello(self, hello: Hello) -> None:
        if self._heard is not None and not self._heard.full():
            self._heard.put_nowait(hello)

    async def find(self, scouting: Scouting) -> Connection:
        """Raises NotConnected if nobody is found in time."""
        node = self._node
        settings = node.config.scouting
        heard = self._heard = asyncio.Queue(64)
        what = settings.multicast.autoconnect or (WhatAmIMatcher.ROUTER | WhatAmIMatcher.PEER)
        asking = asyncio.create_task(scouting.ask(what))
        seconds = settings.timeout / 1000
        tried = 0
        try:
            async with asyncio.timeout(seconds):
                while True:
                    hello = await heard.get()
                    if not hello.locators or not what & hello.whatami:
                        continue
                    tried += 1
                    found = await connect_found(node, hello.zid, hello.locators)
                    if found is not None:
                        return found
        except TimeoutError:
            where = f"udp/{settings.multicast.address}"
            reason = f"no node was found by scouting for {seconds:g} s"
            if tried:
                reason = f"none of the nodes found by scouting was reached in {seconds:g} s"
            hint = "start a router or peer, or set connect/endpoints"
            raise NotConnected({where: LinkError(where, reason, hint)}) from None
        finally:
            self._heard = None
            asking.cancel()


# Peers: everyone they can reach.


class _Start:
    """What opening waits for: sets ``done`` when nothing of what has begun is left."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self.pending: dict[object, None] = {}

    def begin(self, what: object) -> None:
        self.pending[what] = None

    def end(self, what: object) -> None:
        if what in self.pending:
            del self.pending[what]
            if not self.pending:
                self.done.set()


async def _open_peer(node: Node) -> None:
    """Or a router, which does the same, for others, and so waits for nobody."""
    config = node.config
    multicast = config.scouting.multicast
    start = _Start()
    node.autoconnect = auto = Autoconnect(node)

    def dial(zid: object, begins: bool) -> None:
        if config.wait_for_scouted:
            (start.begin if begins else start.end)(zid)

    auto.on_dial = dial
    node.on_known = auto.known
    for group in config.connect.endpoints:
        for endpoints in _choices(group):
            await _reach(node, endpoints, start)
    scouts = False
    if multicast.enabled and (multicast.listen or multicast.autoconnect):
        scouting = await _scout(node, auto.hello)
        if isinstance(scouting, LinkError):
            _log.warning("no scouting: %s", scouting)
        elif multicast.autoconnect:
            node.spawn(scouting.ask(multicast.autoconnect))
            scouts = config.wait_for_scouted
    if config.mode is not WhatAmI.ROUTER and (start.pending or scouts):
        try:
            async with asyncio.timeout(config.scouting.delay / 1000):
                await start.done.wait()
        except TimeoutError:
            if start.pending:
                _log.info("opened before %d nodes were reached", len(start.pending))
    auto.on_dial = lambda _zid, _begins: None


def _choices(group: EndPoints) -> list[tuple[EndPoint, ...]]:
    """What is to be reached, each by any of its endpoints."""
    if group.strategy is Strategy.ONE_OF:
        return [group.locators]
    return [(endpoint,) for endpoint in group.locators]


async def _reach(node: Node, endpoints: Sequence[EndPoint], start: _Start) -> None:
    connect = node.config.connect
    seconds = _seconds(connect.timeout_ms)
    must = any(connect.retry.of_endpoint(one).exit_on_failure for one in endpoints)
    held: Held | None = None
    if must or not seconds:
        try:
            held = await connect_any(node, endpoints, connect.retry, seconds)
        except LinkError as e:
            if must:
                raise
            _log.warning("%s", e)
            return
    start.begin(endpoints)

    def first(held: Held | None) -> None:
        node.spawn(_introduced(node, held, endpoints, start))

    node.spawn(keep(node, endpoints, connect.retry, held, first))


async def _introduced(
    node: Node, held: Held | None, endpoints: Sequence[EndPoint], start: _Start
) -> None:
    if node.config.wait_for_declares and isinstance(held, Connection):
        await node.adjacency.introduced(held.neighbour)
    start.end(endpoints)
