"""Many nodes, random lives, and a simple oracle: everything is delivered exactly once.

Peers are in a full mesh, each client hangs at one peer; or clients hang around a broker made for
this test, which knows nothing of `zenwire.routing`. All messages travel as bytes. Every link is
watched: a declaration is told once for each interest, and a request has one final.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.routing.broker import Broker
from zenwire.keyexpr import intersects
from zenwire.routing import (
    CLIENT,
    PEER,
    CloseFace,
    Face,
    LivelinessChanged,
    MatchingChanged,
    QueryFinished,
    QueryReceived,
    ReplyReceived,
    Role,
    SampleReceived,
    Send,
    Tables,
    question,
)
from zenwire.wire import NetworkMessage, encode
from zenwire.wire.buffer import Reader
from zenwire.wire.data import Put
from zenwire.wire.declare import (
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.network import Declare, Interest, Request, ResponseFinal
from zenwire.wire.objects import read_message
from zenwire.wire.values import ConsolidationMode, InterestMode, QueryTarget, WhatAmI, ZenohId

KEYS = ["a", "a/b", "a/*", "a/**", "**", "b/c", "*/c", "b/$*c"]
KINDS = {
    DeclareSubscriber: "subscriber",
    UndeclareSubscriber: "subscriber",
    DeclareQueryable: "queryable",
    UndeclareQueryable: "queryable",
    DeclareToken: "token",
    UndeclareToken: "token",
}


class Neighbourly(Protocol):
    """A node as the world sees it."""

    whatami: WhatAmI
    zid: ZenohId

    def add(self, other: Neighbourly) -> object: ...
    def hear(self, face: object, message: NetworkMessage) -> None: ...
    def drop(self, face: object) -> None: ...
    def take(self) -> list[tuple[object, NetworkMessage]]: ...


@dataclass
class Watch:
    """What one end of a link says, and whether it may."""

    pushes: bool
    live: dict[tuple[str, int], str] = field(default_factory=dict)
    answered: set[tuple[int, str, int]] = field(default_factory=set)
    interests: dict[int, Interest] = field(default_factory=dict)
    aliases: set[int] = field(default_factory=set)
    requests: Counter[int] = field(default_factory=Counter)
    forgotten: set[str] = field(default_factory=set)

    def heard(self, message: NetworkMessage) -> None:
        if isinstance(message, Request):
            self.requests[message.request_id] += 1
        if isinstance(message, Interest):
            if message.mode is InterestMode.FINAL:
                # What nobody asks for is forgotten without a word, and may be told anew.
                self.forgotten |= self.kinds(self.interests.pop(message.id))
                self.answered = {a for a in self.answered if a[0] != message.id}
            else:
                self.interests[message.id] = message

    @staticmethod
    def kinds(interest: Interest) -> set[str]:
        asked = {
            "subscriber": interest.subscribers,
            "queryable": interest.queryables,
            "token": interest.tokens,
        }
        return {kind for kind, wanted in asked.items() if wanted}

    def said(self, message: NetworkMessage) -> None:
        if isinstance(message, ResponseFinal):
            self.requests[message.request_id] -= 1
            assert self.requests[message.request_id] == 0, "one final for each request"
        if not isinstance(message, Declare):
            return
        body = message.body
        if isinstance(body, DeclareKeyExpr):
            assert body.expr_id not in self.aliases, "an alias is declared once"
            self.aliases.add(body.expr_id)
        elif isinstance(body, DeclareSubscriber | DeclareQueryable | DeclareToken):
            self.declared(message.interest_id, body)
        elif isinstance(body, UndeclareSubscriber | UndeclareQueryable | UndeclareToken):
            kind = KINDS[type(body)]
            known = self.live.pop((kind, body.id), None)
            assert known is not None or body.id == 0, "only what was declared is undeclared"

    def declared(
        self,
        interest_id: int | None,
        body: DeclareSubscriber | DeclareQueryable | DeclareToken,
    ) -> None:
        kind = KINDS[type(body)]
        if body.id == 0:
            assert interest_id is not None, "current ones answer an interest"
            return
        name = kind, body.id
        if interest_id is None:
            again = isinstance(body, DeclareQueryable)
            assert name not in self.live or again, "told once"
        else:
            assert (interest_id, *name) not in self.answered, "told once for each interest"
            self.answered.add((interest_id, *name))
            assert self.pushes or interest_id in self.interests
        self.live[name] = str(body.key)
        if self.pushes or kind not in self.forgotten:
            same = [n for n, key in self.live.items() if n[0] == kind and key == str(body.key)]
            assert same == [name], "one id for one key"


@dataclass
class Query:
    """A query of a node, and what it should get if no link changes."""

    changes: int
    expected: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    finished: int = 0


class Node:
    """A real node with one session, and what its session was told."""

    def __init__(self, name: str, role: Role) -> None:
        self.zid = ZenohId.parse(name)
        self.whatami = role.whatami
        self.tables = Tables(self.zid, role)
        self.session = self.tables.session()
        self.subscribers: dict[int, str] = {}
        self.queryables: dict[int, str] = {}
        self.tokens: dict[int, str] = {}
        self.publishers: dict[int, str] = {}
        self.watchers: dict[int, str] = {}
        self.samples: list[tuple[int, bytes]] = []
        self.asked: list[tuple[int, int, str]] = []
        self.matching: dict[int, bool] = {}
        self.alive: dict[int, set[str]] = {}
        self.queries: dict[int, Query] = {}

    def add(self, other: Neighbourly) -> Face:
        return self.tables.add_face(other.zid, other.whatami, 0.0)

    def hear(self, face: object, message: NetworkMessage) -> None:
        assert isinstance(face, Face)
        self.tables.receive(face, message, 0.0)

    def drop(self, face: object) -> None:
        assert isinstance(face, Face)
        self.tables.remove_face(face)

    def take(self) -> list[tuple[object, NetworkMessage]]:
        sent: list[tuple[object, NetworkMessage]] = []
        for output in self.tables.outputs():
            match output:
                case Send(face, message):
                    assert face.alive, "nothing is sent to one who is gone"
                    sent.append((face, message))
                case SampleReceived(subscribers, _, body):
                    assert len(set(subscribers)) == len(subscribers)
                    assert isinstance(body, Put)
                    self.samples += [(id, body.payload) for id in subscribers]
                case QueryReceived():
                    self.asked += [(output.query, id, output.key) for id in output.queryables]
                case ReplyReceived():
                    assert isinstance(output.body, Put)
                    assert not self.queries[output.query].finished, "nothing after the end"
                    self.queries[output.query].replies.append(output.body.payload.decode())
                case QueryFinished():
                    self.queries[output.query].finished += 1
                case MatchingChanged():
                    assert self.matching[output.id] != output.matching, "changes only"
                    self.matching[output.id] = output.matching
                case LivelinessChanged():
                    for id in output.subscribers:
                        known = self.alive[id]
                        assert (output.key in known) != output.alive, "changes only"
                        (known.add if output.alive else known.remove)(output.key)
                case CloseFace():
                    raise AssertionError(output)
        return sent


@dataclass
class Link:
    """Two faces that belong together, and the bytes on their way."""

    ends: tuple[Neighbourly, Neighbourly]
    faces: tuple[object, object]
    watches: tuple[Watch, Watch]
    ways: tuple[deque[bytes], deque[bytes]] = field(default_factory=lambda: (deque(), deque()))


class World:
    """Nodes and links. Nothing moves but in `settle`."""

    def __init__(self, nodes: list[Node], hubs: list[tuple[Neighbourly, Neighbourly]]) -> None:
        self.nodes = nodes
        self.pairs = hubs
        self.links: dict[int, Link] = {}
        self.count = 0
        self.changes = 0
        for index in range(len(hubs)):
            self.connect(index)

    def connect(self, index: int) -> None:
        self.changes += 1
        a, b = self.pairs[index]
        watches = (
            Watch(pushes=a.whatami is not WhatAmI.ROUTER and b.whatami is not WhatAmI.CLIENT),
            Watch(pushes=b.whatami is not WhatAmI.ROUTER and a.whatami is not WhatAmI.CLIENT),
        )
        self.links[index] = Link((a, b), (a.add(b), b.add(a)), watches)

    def disconnect(self, index: int) -> None:
        self.changes += 1
        link = self.links[index]
        # What was said before is not heard any more.
        self.collect()
        del self.links[index]
        for end, face in zip(link.ends, link.faces, strict=True):
            end.drop(face)

    def collect(self) -> None:
        everybody = {id(end): end for pair in self.pairs for end in pair}
        for end in everybody.values():
            for face, message in end.take():
                link = next(x for x in self.links.values() if face in x.faces)
                side = link.faces.index(face)
                link.watches[side].said(message)
                link.ways[side].append(encode(message))

    def settle(self) -> None:
        moved = True
        while moved:
            self.collect()
            moved = False
            for link in list(self.links.values()):
                for side, way in enumerate(link.ways):
                    while way:
                        moved = True
                        r = Reader(way.popleft())
                        message = read_message(r, "network")
                        link.watches[1 - side].heard(message)
                        link.ends[1 - side].hear(link.faces[1 - side], message)
                        self.collect()

    def reachable(self, node: Node) -> list[Node]:
        """Itself, and all to whom it can speak: at most two hubs lie between."""
        return [other for other in self.nodes if other is node or self.is_linked(node, other)]

    def is_linked(self, a: Node, b: Node) -> bool:
        return any(self.touch(x, y) for x in self.stand_at(a) for y in self.stand_at(b))

    def stand_at(self, node: Node) -> list[Neighbourly]:
        if node.whatami is not WhatAmI.CLIENT:
            return [node]
        ends = [link.ends for link in self.links.values() if node in link.ends]
        return [b if a is node else a for a, b in ends]

    def touch(self, x: Neighbourly, y: Neighbourly) -> bool:
        return x is y or any(x in link.ends and y in link.ends for link in self.links.values())

    # What happens.

    def put(self, node: Node, key: str) -> None:
        self.settle()
        self.count += 1
        payload = str(self.count).encode()
        for other in self.nodes:
            other.samples.clear()
        node.session.push(key, Put(payload=payload))
        self.settle()
        reachable = self.reachable(node)
        for other in self.nodes:
            expected = [
                (id, payload)
                for id, wanted in other.subscribers.items()
                if other in reachable and intersects(wanted, key)
            ]
            assert sorted(other.samples) == sorted(expected)

    def ask(self, node: Node, key: str) -> None:
        self.settle()
        before = [len(other.asked) for other in self.nodes]
        asking = question(key, target=QueryTarget.ALL, consolidation=ConsolidationMode.NONE)
        query = node.session.query(asking, 0.0)
        node.queries[query] = asked = Query(self.changes)
        self.settle()
        reachable = self.reachable(node)
        for other, start in zip(self.nodes, before, strict=True):
            expected = [
                id
                for id, served in other.queryables.items()
                if other in reachable and intersects(served, key)
            ]
            assert sorted(id for _, id, _ in other.asked[start:]) == sorted(expected)
            asked.expected += [f"{other.zid} {id}" for id in expected]

    def answer(self, node: Node) -> None:
        """The oldest question that waits here, if any does."""
        if node.asked:
            query, queryable, key = node.asked.pop(0)
            text = f"{node.zid} {queryable}"
            node.session.reply(query, queryable, key, Put(payload=text.encode()))
            node.session.finish(query, queryable)

    def check(self) -> None:
        """What is known at rest is what the oracle knows."""
        self.settle()
        for node in self.nodes:
            others = self.reachable(node)
            subscribed = [key for other in others for key in other.subscribers.values()]
            for id, key in node.publishers.items():
                expected = any(intersects(key, wanted) for wanted in subscribed)
                assert node.session.matching(id) == node.matching[id] == expected
            tokens = {key for other in others for key in other.tokens.values()}
            for id, key in node.watchers.items():
                assert node.alive[id] == {token for token in tokens if intersects(token, key)}

    def finish(self) -> None:
        """All queries are answered, and each ends once."""
        self.check()
        while any(node.asked for node in self.nodes):
            for node in self.nodes:
                self.answer(node)
            self.settle()
        for node in self.nodes:
            for query in node.queries.values():
                assert query.finished == 1
                assert len(set(query.replies)) == len(query.replies)
                if query.changes == self.changes:
                    assert sorted(query.replies) == sorted(query.expected)
            assert node.tables.deadline is None or not node.queries
            counters = node.tables.counters
            assert counters.unknown_scope == counters.bad_key == counters.alias_conflict == 0
        for link in self.links.values():
            assert not any(watch.requests.total() for watch in link.watches)


def act(world: World, what: str, who: int, key: str) -> None:
    node = world.nodes[who % len(world.nodes)]
    session = node.session
    match what:
        case "subscribe":
            node.subscribers[session.declare_subscriber(key)] = key
        case "serve":
            node.queryables[session.declare_queryable(key)] = key
        case "token":
            node.tokens[session.declare_token(key)] = key
        case "publish":
            id = session.declare_publisher(key, 0.0)
            node.publishers[id] = key
            node.matching[id] = session.matching(id)
        case "watch":
            world.settle()
            id = session.declare_liveliness_subscriber(key, 0.0, history=True)
            node.watchers[id] = key
            node.alive[id] = set()
        case "undeclare":
            kinds = [node.subscribers, node.queryables, node.tokens, node.publishers, node.watchers]
            declared = [(kind, id) for kind in kinds for id in kind]
            if declared:
                kind, id = declared[who % len(declared)]
                del kind[id]
                session.undeclare(id)
                if kind is node.publishers or kind is node.watchers:
                    world.settle()
        case "link":
            index = who % len(world.pairs)
            if index in world.links:
                world.disconnect(index)
            else:
                world.connect(index)
        case "put":
            world.put(node, key)
        case "ask":
            world.ask(node, key)
        case "answer":
            world.answer(node)
        case _:
            world.check()


def mesh(peers: int, clients: int) -> World:
    hubs = [Node(f"b{n}", PEER) for n in range(peers)]
    leaves = [Node(f"c{n}", CLIENT) for n in range(clients)]
    pairs: list[tuple[Neighbourly, Neighbourly]] = [
        (a, b) for i, a in enumerate(hubs) for b in hubs[:i]
    ]
    pairs += [(leaf, hubs[n % peers]) for n, leaf in enumerate(leaves)]
    return World([*hubs, *leaves], pairs)


def star(clients: int) -> World:
    broker = Broker()
    leaves = [Node(f"c{n}", CLIENT) for n in range(clients)]
    return World(leaves, [(leaf, broker) for leaf in leaves])


WHAT = ["subscribe", "serve", "token", "publish", "watch", "undeclare", "link", "put", "ask"]
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from([*WHAT, "undeclare", "put", "answer", "check"]),
        st.integers(0, 11),
        st.sampled_from(KEYS),
    ),
    max_size=40,
)


def live(world: World, actions: list[tuple[str, int, str]]) -> None:
    for what, who, key in actions:
        act(world, what, who, key)
    world.finish()


@settings(max_examples=150)
@given(ACTIONS)
def test_a_mesh_of_peers(actions: list[tuple[str, int, str]]) -> None:
    live(mesh(3, 0), actions)


@settings(max_examples=150)
@given(ACTIONS)
def test_a_mesh_of_peers_with_clients(actions: list[tuple[str, int, str]]) -> None:
    live(mesh(2, 3), actions)


@settings(max_examples=150)
@given(ACTIONS)
def test_clients_around_one_peer(actions: list[tuple[str, int, str]]) -> None:
    live(mesh(1, 3), actions)


@settings(max_examples=150)
@given(ACTIONS)
def test_clients_around_a_broker(actions: list[tuple[str, int, str]]) -> None:
    live(star(3), actions)


@pytest.mark.parametrize("world", [mesh(2, 2), star(2)])
def test_the_oracle_can_fail(world: World) -> None:
    act(world, "subscribe", 0, "a")
    world.nodes[1].subscribers[99] = "a"
    with pytest.raises(AssertionError):
        act(world, "put", 1, "a")
