"""Many nodes and what they should see: the oracle knows only who declared what."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.hub import Hub, Place
from tests.simulation.virtual import bytes_of
from zenwire.keyexpr import intersects
from zenwire.node import Node, open_node
from zenwire.node.config import Config
from zenwire.routing import (
    LivelinessChanged,
    Output,
    QueryFinished,
    QueryReceived,
    ReplyReceived,
    SampleReceived,
    Session,
    question,
)
from zenwire.wire.data import Put
from zenwire.wire.values import ConsolidationMode, QueryTarget

__all__ = ["World"]

KEYS = [f"{a}/{b}/{c}" for a in "xy" for b in "12" for c in "pq"]
EXPRESSIONS = [*KEYS, "x/**", "y/**", "*/1/*", "x/*/p", "**/q", "**", "y/2/*"]


@dataclass(eq=False)
class Actor:
    """A node and its application. ``lossy``: it has a link of datagrams, and may miss anything."""

    name: str
    peer: bool
    lossy: bool = False
    node: Node | None = None
    place: Place | None = None
    session: Session | None = None
    runs: int = 0
    opening: asyncio.Task[None] | None = None
    entities: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Kind and key, by id."""
    heard: Counter[tuple[int, str, bytes]] = field(default_factory=Counter)
    """Subscriber, key, payload."""
    once: set[tuple[int, str, bytes, int | None]] = field(default_factory=set)
    """The same, and by which neighbour."""
    alive: dict[int, set[str]] = field(default_factory=dict)


class World:
    """Everything of one seed."""

    def __init__(self, seed: str, peers: int, clients: int, lossy: int) -> None:
        self.seed = seed
        self.random = random.Random(f"world {seed}")
        self.hub = Hub(seed)
        self.actors = [
            *(Actor(f"p{i}", peer=True) for i in range(peers)),
            *(Actor(f"c{i}", peer=False, lossy=i < lossy) for i in range(clients)),
        ]
        self.peers = [actor for actor in self.actors if actor.peer]
        self.clients = [actor for actor in self.actors if not actor.peer]
        self.puts: dict[bytes, str] = {}
        self.count = 0

    # Nodes.

    def _config(self, actor: Actor) -> Config:
        rest = [f"memory/{other.name}" for other in self.peers if other is not actor]
        if actor.peer:
            # Some know where to begin, all are found by scouting and gossip.
            connect = self.random.sample(rest, 2) if self.random.random() < 0.5 else []
        else:
            kind = "?rel=0" if actor.lossy else ""
            connect = [where + kind for where in self.random.sample(rest, 3)]
        return Config.from_dict(
            {
                "mode": "peer" if actor.peer else "client",
                "listen": {"endpoints": [f"memory/{actor.name}"] if actor.peer else []},
                "connect": {"endpoints": connect, "timeout_ms": -1},
                "scouting": {"multicast": {"enabled": actor.peer}},
            }
        )

    def start(self, actor: Actor) -> None:
        assert actor.node is None
        assert actor.opening is None
        actor.runs += 1
        actor.place = self.hub.place(actor.name)
        actor.opening = asyncio.create_task(self._open(actor, actor.place))

    async def _open(self, actor: Actor, place: Place) -> None:
        loop = asyncio.get_running_loop()
        node = await open_node(
            self._config(actor),
            random=bytes_of(f"{self.seed} {actor.name} {actor.runs}"),
            network=place,
            now_ns=lambda: 1_700_000_000_000_000_000 + int(loop.time() * 1e9),
        )
        actor.node, actor.session, actor.opening = node, node.session(), None

    async def stop(self, actor: Actor, how: str) -> None:
        """Orderly, by a crash, or by a power cut that nobody hears of."""
        assert actor.place is not None
        if how == "crash":
            actor.place.crash()
        elif how == "dark":
            actor.place.dark = True
        if actor.opening is not None:
            actor.opening.cancel()
            await asyncio.wait([actor.opening])
            actor.opening = None
        if actor.node is not None:
            await actor.node.close()
        actor.node = actor.session = None
        actor.entities.clear()
        actor.heard.clear()
        actor.once.clear()
        actor.alive.clear()

    def running(self) -> list[Actor]:
        return [actor for actor in self.actors if actor.node is not None]

    # What applications do.

    def key(self, actor: Actor, key: str) -> str:
        """What happens to those who lose things stays among them."""
        return f"lossy/{key}" if actor.lossy else key

    def declare(self, actor: Actor, kind: str, key: str) -> None:
        node, session = actor.node, actor.session
        key = self.key(actor, key)
        assert node is not None
        assert session is not None
        if kind == "subscriber":
            id_ = session.declare_subscriber(key)
        elif kind == "queryable":
            id_ = session.declare_queryable(key)
        elif kind == "token":
            id_ = session.declare_token(key)
        elif kind == "publisher":
            id_ = session.declare_publisher(key, node.now)
        else:
            id_ = session.declare_liveliness_subscriber(key, node.now, history=True)
            actor.alive[id_] = set()
        actor.entities[id_] = kind, key
        node.receivers[id_] = lambda output: self._take(actor, session, id_, output)
        node.settle()

    def undeclare(self, actor: Actor, id_: int) -> None:
        assert actor.node is not None
        assert actor.session is not None
        actor.session.undeclare(id_)
        del actor.entities[id_], actor.node.receivers[id_]
        actor.alive.pop(id_, None)
        actor.node.settle()

    def _take(self, actor: Actor, session: Session, id_: int, output: Output) -> None:
        if isinstance(output, SampleReceived):
            assert isinstance(output.body, Put)
            heard = id_, output.key, output.body.payload
            assert self.puts[output.body.payload] == output.key, "nobody has put that"
            assert intersects(actor.entities[id_][1], output.key), "it has not asked for that"
            actor.heard[heard] += 1
            # A client that changes over may hear again what was late for its new neighbour.
            assert actor.node is not None
            via = None if actor.peer else next((f.id for f in actor.node.neighbours), None)
            assert (*heard, via) not in actor.once, f"{actor.name} got {heard} twice"
            actor.once.add((*heard, via))
        elif isinstance(output, QueryReceived):
            _, key = actor.entities[id_]
            payload = f"{actor.name} {id_}".encode()
            asked = output.key if output.key == key else key
            if intersects(asked, output.key):
                session.reply(output.query, id_, asked, Put(payload=payload))
            session.finish(output.query, id_)
        elif isinstance(output, LivelinessChanged):
            (actor.alive[id_].add if output.alive else actor.alive[id_].discard)(output.key)

    def put(self, actor: Actor, key: str) -> bytes:
        assert actor.node is not None
        assert actor.session is not None
        self.count += 1
        key = self.key(actor, key)
        payload = f"{self.count}".encode()
        self.puts[payload] = key
        actor.session.push(key, Put(payload=payload))
        actor.node.settle()
        return payload

    async def ask(self, actor: Actor, key: str, *, tokens: bool = False) -> list[tuple[str, bytes]]:
        """All replies to a query."""
        node, session = actor.node, actor.session
        assert node is not None
        assert session is not None
        replies: list[tuple[str, bytes]] = []
        done = asyncio.Event()

        def take(output: Any) -> None:
            if isinstance(output, ReplyReceived):
                assert isinstance(output.body, Put), output.body
                replies.append((output.key, output.body.payload))
            elif isinstance(output, QueryFinished):
                done.set()

        if tokens:
            id_ = session.liveliness_get(key, node.now)
        else:
            asking = question(key, target=QueryTarget.ALL, consolidation=ConsolidationMode.NONE)
            id_ = session.query(asking, node.now)
        node.receivers[id_] = take
        node.settle()
        await done.wait()
        return replies

    def ask_and_forget(self, actor: Actor, key: str) -> None:
        assert actor.node is not None
        assert actor.session is not None
        id_ = actor.session.query(
            question(key, target=QueryTarget.ALL, timeout=3.0), actor.node.now
        )
        actor.node.receivers[id_] = lambda _output: None
        actor.node.settle()

    # What they should see.

    def expected(self, kind: str, key: str) -> list[tuple[Actor, int, str]]:
        """Who has declared something of a kind that intersects a key."""
        return [
            (actor, id_, declared)
            for actor in self.running()
            if not actor.lossy
            for id_, (of, declared) in actor.entities.items()
            if of == kind and intersects(declared, key)
        ]

    def check_mesh(self) -> None:
        names = {str(actor.node.zid): actor.name for actor in self.running() if actor.node}
        for actor in self.running():
            assert actor.node is not None
            near = sorted(names.get(str(face.zid), "a ghost") for face in actor.node.neighbours)
            if actor.peer:
                others = {name for name in near if name.startswith("p")}
                missing = {other.name for other in self.peers} - others - {actor.name}
                assert not missing, f"{actor.name} is not linked to {missing}"
            else:
                assert len(near) == 1, f"{actor.name} is linked to {near}"
            if not actor.lossy:
                assert "a ghost" not in near or any(a.lossy for a in self.actors), near

    async def check(self, rounds: int) -> None:
        """Everything that was declared works, everywhere, once."""
        solid = [actor for actor in self.running() if not actor.lossy]
        for actor in solid:
            actor.heard.clear()
        should: dict[Actor, Counter[tuple[int, str, bytes]]] = {a: Counter() for a in solid}
        for _ in range(rounds):
            key = self.random.choice(KEYS)
            payload = self.put(self.random.choice(solid), key)
            for actor, id_, _declared in self.expected("subscriber", key):
                should[actor][id_, key, payload] += 1
        await asyncio.sleep(5)
        for actor in solid:
            assert actor.heard == should[actor], (
                f"{actor.name}: missing {should[actor] - actor.heard}, "
                f"too many {actor.heard - should[actor]}"
            )
        for _ in range(max(1, rounds // 4)):
            key = self.random.choice(EXPRESSIONS)
            actor = self.random.choice(solid)
            replies = await self.ask(actor, key)
            want = Counter(
                (declared, f"{other.name} {id_}".encode())
                for other, id_, declared in self.expected("queryable", key)
            )
            lossy = {a.name for a in self.actors if a.lossy}
            got = Counter(r for r in replies if r[1].decode().split()[0] not in lossy)
            assert got == want, f"{actor.name} asked {key}: missing {want - got}, more {got - want}"
            found = {k for k, _ in await self.ask(actor, key, tokens=True)}
            tokens = {token for token in found if not token.startswith("lossy/")}
            alive = {declared for _, _, declared in self.expected("token", key)}
            assert tokens == alive, f"{actor.name} finds {tokens} alive on {key}, not {alive}"
        self._check_watchers(solid)

    def _check_watchers(self, solid: list[Actor]) -> None:
        for actor in solid:
            for id_, (kind, key) in actor.entities.items():
                if kind == "watcher":
                    alive = {declared for _, _, declared in self.expected("token", key)}
                    seen = {token for token in actor.alive[id_] if not token.startswith("lossy/")}
                    assert seen == alive, f"{actor.name} sees {seen} alive, not {alive}"
                elif kind == "publisher":
                    assert actor.session is not None
                    matching = bool(self.expected("subscriber", key))
                    assert actor.session.matching(id_) is matching, f"{actor.name} on {key}"
