from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from zenwire.links import Link, LinkError, Network, connect, listen, parse_endpoint
from zenwire.links.memory import Group
from zenwire.wire.locator import Locator


class Simulation:
    """Virtual time: nothing waits, everything happens in order."""

    def __init__(self, seed: int = 1, loss: float = 0.0) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.random = random.Random(seed)
        self.network = Network(
            schedule=self.schedule,
            latency=lambda _src, _dst: self.random.uniform(0.001, 0.1),
            lose=lambda _src, _dst, _data: self.random.random() < loss,
        )

    def schedule(self, delay: float, run: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay, self._count, run))

    def run(self) -> None:
        while self._queue:
            self.now, _, run = heapq.heappop(self._queue)
            run()


@dataclass
class Node:
    """A receiver that writes down when what came."""

    simulation: Simulation
    log: list[tuple[float, bytes]] = field(default_factory=list)
    ends: list[LinkError | None] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    drains: int = 0

    def attach(self, link: Link) -> Node:
        self.links.append(link)
        return self

    def received(self, data: bytes) -> None:
        self.log.append((self.simulation.now, data))

    def drained(self) -> None:
        self.drains += 1

    def closed(self, error: LinkError | None) -> None:
        self.ends.append(error)


A = parse_endpoint("memory/a")
LOSSY = parse_endpoint("memory/a?rel=0")


def test_a_stream_keeps_its_order_whatever_the_latency() -> None:
    simulation = Simulation()
    there, here = Node(simulation), Node(simulation)
    simulation.network.listen(A, there.attach)
    link = simulation.network.connect(A, here.attach)
    for index in range(100):
        link.write(bytes([index]))
    link.close()
    link.close()
    simulation.run()
    assert b"".join(data for _, data in there.log) == bytes(range(100))
    assert there.ends == here.ends == [None]
    assert simulation.now > 0


def test_datagrams_are_lost_and_reordered_the_same_way_for_the_same_seed() -> None:
    def run(seed: int) -> tuple[list[tuple[float, bytes]], int]:
        simulation = Simulation(seed, loss=0.2)
        there = Node(simulation)
        simulation.network.listen(LOSSY, there.attach)
        link = simulation.network.connect(LOSSY, Node(simulation).attach)
        assert not link.facts.streamed
        assert not link.facts.reliable
        simulation.run()
        for index in range(200):
            link.write(bytes([index]))
            if index % 20 == 0:
                simulation.run()
        simulation.run()
        return there.log, simulation.network.lost

    log, lost = run(7)
    assert (log, lost) == run(7)
    assert log != run(8)[0]
    assert len(log) == 200 - lost
    assert 0 < lost < 200
    assert [data for _, data in log] != sorted(data for _, data in log)


def test_flow_control_and_pause() -> None:
    simulation = Simulation()
    there, here = Node(simulation), Node(simulation)
    simulation.network.listen(A, there.attach)
    link = simulation.network.connect(A, here.attach)
    simulation.run()
    there.links[0].pause()
    while link.writable:
        link.write(bytes(10_000))
    simulation.run()
    assert there.log == []
    assert here.drains == 0
    there.links[0].resume()
    simulation.run()
    assert link.writable
    assert here.drains == 1
    assert sum(len(data) for _, data in there.log) == link.bytes_out == there.links[0].bytes_in


def test_a_paused_datagram_link_drops_and_counts() -> None:
    simulation = Simulation()
    there = Node(simulation)
    simulation.network.listen(LOSSY, there.attach)
    link = simulation.network.connect(LOSSY, Node(simulation).attach)
    simulation.run()
    there.links[0].pause()
    for _ in range(100):
        link.write(b"x")
    simulation.run()
    there.links[0].resume()
    simulation.run()
    assert len(there.log) + there.links[0].dropped == 100
    assert there.links[0].dropped == 36
    with pytest.raises(LinkError, match="do not fit"):
        link.write(bytes(65_488))


def test_fifty_nodes_find_each_other_and_talk() -> None:
    simulation = Simulation(seed=3)
    network = simulation.network
    nodes = [Node(simulation) for _ in range(50)]
    groups: list[Group] = []

    def met(index: int) -> Callable[[bytes, Locator], None]:
        def on_datagram(data: bytes, source: Locator) -> None:
            if data == b"scout":
                groups[index].send_to(b"hello %d" % index, source)
            else:
                other = parse_endpoint(f"memory/{data.decode().removeprefix('hello ')}")
                network.connect(other, nodes[index].attach).write(b"from %d" % index)

        return on_datagram

    for index, node in enumerate(nodes):
        network.listen(parse_endpoint(f"memory/{index}"), node.attach)
        groups.append(network.join("scouting", met(index)))
    for group in groups:
        group.send(b"scout")
    simulation.run()
    for index, node in enumerate(nodes):
        assert {data for _, data in node.log} == {
            b"from %d" % other for other in range(50) if other != index
        }
        assert len(node.links) == 98


def test_who_left_a_group_hears_nothing() -> None:
    simulation = Simulation()
    heard: list[bytes] = []
    one = simulation.network.join("g", lambda data, _: heard.append(data))
    two = simulation.network.join("g", lambda data, _: heard.append(data))
    one.send(b"in flight")
    asyncio.run(two.close())
    simulation.run()
    assert heard == []


def test_names_are_taken_free_and_missing() -> None:
    simulation = Simulation()
    network = simulation.network
    node = Node(simulation)
    with pytest.raises(LinkError, match="nobody listens there"):
        network.connect(A, node.attach)
    listener = network.listen(A, node.attach)
    with pytest.raises(LinkError, match="the name is taken"):
        network.listen(A, node.attach)
    here = Node(simulation)
    network.connect(A, here.attach)
    asyncio.run(listener.close())
    simulation.run()
    assert here.ends == [None]
    assert node.links == []
    network.listen(A, node.attach)


def test_event_loops_do_not_see_each_others_names() -> None:
    async def taken() -> None:
        simulation = Simulation()
        await listen("memory/x", Node(simulation).attach)
        await connect("memory/x", Node(simulation).attach)

    async def free() -> None:
        with pytest.raises(LinkError):
            await connect("memory/x", Node(Simulation()).attach)

    asyncio.run(taken())
    asyncio.run(free())
