"""Nodes in memory and in virtual time, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.simulation.virtual import bytes_of, run
from zenwire.links import Network
from zenwire.node import Node, open_node
from zenwire.node.config import Config, effective
from zenwire.routing import Output, SampleReceived
from zenwire.wire.data import Put

__all__ = ["Lan", "Taker", "put", "run", "until"]

OFF = {"multicast": {"enabled": False}}


class Lan:
    """A network, and the nodes on it."""

    def __init__(self, latency: float = 0.01, lose: Callable[..., bool] | None = None) -> None:
        self.network = Network(latency=lambda _src, _dst: latency)
        if lose is not None:
            self.network.lose = lose
        self.nodes: list[Node] = []
        self._count = 0

    @staticmethod
    def config(
        mode: str = "peer",
        *,
        listen: str | list[str] = (),  # type: ignore[assignment] # nowhere
        connect: Any = (),
        scouting: dict[str, Any] | None = None,
        **more: Any,
    ) -> Config:
        endpoints = [listen] if isinstance(listen, str) else list(listen)
        places = connect if isinstance(connect, dict) else {"endpoints": list(connect)}
        listening = more.pop("listening", {})
        return Config.from_dict(
            {
                "mode": mode,
                "listen": {"endpoints": endpoints} | listening,
                "connect": places,
                "scouting": OFF if scouting is None else scouting,
            }
            | more
        )

    async def open(self, mode: str = "peer", **more: Any) -> Node:
        """A node as its configuration says."""
        self._count += 1
        node = await open_node(
            self.config(mode, **more), random=bytes_of(self._count), network=self.network
        )
        self.nodes.append(node)
        return node

    def bare(self, mode: str = "peer", **more: Any) -> Node:
        """A node that does nothing by itself."""
        self._count += 1
        config = effective(self.config(mode, **more).settings)
        node = Node(config, bytes_of(self._count), self.network)
        self.nodes.append(node)
        return node

    async def close(self) -> None:
        for node in self.nodes:
            await node.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left


class Taker:
    """A subscriber that keeps what it gets."""

    def __init__(self, node: Node, key: str) -> None:
        self.payloads: list[bytes] = []
        self.session = node.session()
        self.id = self.session.declare_subscriber(key)
        node.receivers[self.id] = self._take
        node.settle()

    def _take(self, output: Output) -> None:
        assert isinstance(output, SampleReceived)
        assert isinstance(output.body, Put)
        self.payloads.append(output.body.payload)


def put(node: Node, key: str, payload: bytes) -> None:
    node.session().push(key, Put(payload=payload))
    node.settle()


async def until(reached: Callable[[], bool], seconds: float = 100.0) -> float:
    """When it was so. In virtual time nothing is waited for in vain."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    while not reached():
        assert loop.time() < ends, "it does not happen"
        await asyncio.sleep(0.001)
    return loop.time()
