"""A face that asks for too much is refused and counted, and is no trouble for the others."""

from __future__ import annotations

import random

import pytest

from tests.unit.routing.scene import Scene, client, peer, put, raw
from zenwire.routing import Limits, QueryReceived, SampleReceived, Send, question
from zenwire.wire.data import Err
from zenwire.wire.network import Push, Response, ResponseFinal
from zenwire.wire.values import WireExpr


def test_aliases() -> None:
    scene = peer(limits=Limits(aliases=1))
    other = scene.client()
    scene.hear(other, '9e 21 08 20 01 00 01 "a" 9e 21 08 20 02 00 01 "b" 9e 21 08 20 01 00 01 "c"')
    scene.hear(other, '9e 21 08 01 09 9e 21 08 20 00 00 01 "a"')
    counters = scene.tables.counters
    assert (counters.limit_aliases, counters.alias_conflict) == (2, 1)
    assert counters.unknown_undeclare == 1


def test_an_alias_of_an_alias_is_looked_up_in_our_table() -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_subscriber("ours/**")
    scene.hear(router, '9e 21 08 20 05 01 02 "/x" 9e 21 08 20 06 09 02 "/x" 9e 21 08 00 07 00')
    scene.hear(router, '5d 05 01 01 "x"')
    assert [sample.key for sample in scene.events(SampleReceived)] == ["ours/x"]
    assert scene.tables.counters.unknown_scope == 1
    assert scene.tables.counters.bad_key == 1


def test_declarations() -> None:
    scene = peer(limits=Limits(declarations=2))
    other = scene.client()
    for n in range(3):
        scene.hear(other, f'9e 21 08 62 0{n} 00 01 "{n}"')
    assert scene.tables.counters.limit_declarations == 1
    scene.forget()
    scene.session.push("2", put())
    assert scene.sent(other) == b""
    scene.hear(other, '9e 21 08 62 01 00 01 "2"')
    assert scene.tables.counters.limit_declarations == 1, "an id that moves is no new one"
    scene.session.push("2", put())
    assert scene.sent(other)
    scene.session.push("1", put())
    assert not scene.sent(other)


def test_interests() -> None:
    scene = peer(limits=Limits(interests=1))
    other = scene.client()
    scene.hear(other, "f9 01 02 21 08 f9 02 02 21 08")
    assert scene.sent(other) == raw("be 01 21 08 1a be 02 21 08 1a")
    assert scene.tables.counters.limit_interests == 1
    scene.session.declare_subscriber("k")
    scene.hear(other, "99 01 21 08")
    scene.forget()
    scene.session.declare_subscriber("l")
    assert scene.sent(other) == b""


def test_pending_queries() -> None:
    scene = peer(limits=Limits(pending_queries=1))
    other = scene.client()
    mine = scene.session.declare_queryable("q")
    scene.hear(other, '7c 01 00 01 "q" 03 7c 02 00 01 "q" 03')
    refusal, final = (send.message for send in scene.events(Send))
    assert isinstance(refusal, Response)
    assert isinstance(refusal.body, Err)
    assert (refusal.request_id, str(refusal.body.encoding)) == (2, "zenoh/string")
    assert refusal.body.payload == (
        b"Refused: this node holds at most 1 pending queries of a session (limit pending_queries)"
    )
    assert final == ResponseFinal(request_id=2, qos=refusal.qos)
    assert scene.tables.counters.limit_pending_queries == 1
    (event,) = scene.events(QueryReceived)
    scene.session.finish(event.query, mine)
    scene.hear(other, '7c 02 00 01 "q" 03')
    assert len(scene.events(QueryReceived)) == 1


@pytest.mark.parametrize(("neighbours", "accepted"), [(1, 10), (50, 2)])
def test_bytes_of_pending_queries(neighbours: int, accepted: int) -> None:
    # Each query takes memory, and so does each neighbour that it is sent to.
    scene = peer(limits=Limits(pending_bytes=9_500))
    other = scene.client()
    for n in range(neighbours):
        scene.hear(scene.client(f"dd{n:02x}"), '9e 21 08 64 01 00 02 "**"')
    scene.forget()
    for n in range(20):
        scene.hear(other, f'7c {n:02x} 00 01 "q" 03')
    assert len(other.asked) == accepted
    errors = [
        send.message.body.payload
        for send in scene.events(Send)
        if send.face is other and isinstance(send.message, Response)
        if isinstance(send.message.body, Err)
    ]
    assert len(errors) == 20 - accepted
    assert all(b"at most 9500 bytes of pending queries of a session" in text for text in errors)
    assert scene.tables.counters.limit_pending_queries == 20 - accepted
    scene.wait(60.0)
    assert other.asking == 0


def test_one_query_may_be_larger_than_the_limit() -> None:
    scene = peer(limits=Limits(pending_bytes=1))
    other = scene.client()
    scene.session.declare_queryable("q")
    scene.hear(other, '7c 01 00 01 "q" 03 7c 02 00 01 "q" 03')
    assert len(scene.events(QueryReceived)) == 1
    assert scene.tables.counters.limit_pending_queries == 1


def test_keys() -> None:
    scene = peer(limits=Limits(key_length=3))
    other = scene.client()
    scene.session.declare_subscriber("**")
    scene.hear(other, '7d 00 04 "abcd" 02 7d 00 03 "abc" 02 7d 00 02 "a/" 02 1d 00 02')
    assert [sample.key for sample in scene.events(SampleReceived)] == ["abc"]
    assert scene.tables.counters.bad_key == 3
    scene.hear(other, '3d 07 02 "/x" 02')
    assert scene.tables.counters.unknown_scope == 1


def test_the_cache_of_routes() -> None:
    scene = client(limits=Limits(routes=4))
    router = scene.router()
    subscriber = scene.session.declare_subscriber("**")
    for n in range(100):
        scene.tables.receive(router, Push(key=WireExpr(0, f"k/{n}"), body=put()), scene.now)
        scene.session.push(f"k/{n}", put())
    assert len(scene.events(SampleReceived)) == 200
    pubsub = scene.tables._core.pubsub
    assert all(len(routes) <= 4 for routes in pubsub._by_key.values())
    assert all(len(routes) <= 4 for routes in pubsub._by_expr.values())
    assert subscriber


def test_shared_memory_is_refused() -> None:
    scene = peer()
    other = scene.client()
    scene.session.declare_subscriber("**")
    scene.session.declare_queryable("**")
    scene.hear(other, '7d 00 01 "k" 81 12 01 "x" 7c 01 00 01 "k" 83 84 43 01 00')
    assert scene.events(SampleReceived) == []
    assert scene.events(QueryReceived) == []
    assert scene.sent(other) == raw("1a 01")
    assert scene.tables.counters.shared_memory == 2


SAID = [
    '9e 21 08 20 01 00 01 "k"',
    '9e 21 08 20 02 01 02 "/z"',
    "9e 21 08 01 01",
    '9e 21 08 62 01 01 02 "/*"',
    '9e 21 08 62 02 00 02 "**"',
    "9e 21 08 03 01",
    '9e 21 08 64 01 00 02 "**"',
    "9e 21 08 c4 01 01 21 01",
    "9e 21 08 85 01 5f 02 00 00",
    '9e 21 08 66 01 00 02 "**"',
    '9e 21 08 87 00 5f 03 03 00 "k"',
    "be 00 21 08 1a",
    "be 01 21 08 1a",
    "9e 21 08 1a",
    "f9 01 0f 21 08",
    'f9 02 bf 00 02 "**" 21 08',
    'b9 03 38 00 01 "k" 21 08',
    "d9 04 0e 21 08",
    "99 01 21 08",
    '7d 00 01 "k" 01 01 "x"',
    '3d 01 02 "/y" 02',
    '7c 01 00 01 "k" 03',
    'fc 02 00 02 "**" b4 02 26 01 03',
    '7b 01 00 01 "k" 04 01 01 "x"',
    '5b 01 00 05 01 "x"',
    "1a 01",
    "df 01 21 08 01 00",
    "df 01 21 08 02 05 01",
]


@pytest.mark.parametrize("seed", range(30))
def test_nothing_a_face_says_raises(seed: int) -> None:
    rng = random.Random(seed)
    scene: Scene = rng.choice([peer, client])(
        limits=Limits(aliases=2, declarations=3, interests=2, pending_queries=2, routes=2)
    )
    scene.session.declare_queryable("k")
    scene.session.declare_liveliness_subscriber("**", scene.now, history=True)
    scene.session.declare_publisher("k", scene.now)
    faces = [scene.peer("b1"), scene.router("a1"), scene.peer("b2")]
    if scene.tables.role.whatami.name == "PEER":
        faces.append(scene.client())
    for _ in range(300):
        face = rng.choice(faces)
        scene.hear(face, rng.choice(SAID))
        if rng.random() < 0.05:
            scene.session.query(question("**", timeout=0.2), scene.now)
            scene.session.liveliness_get("**", scene.now, timeout=0.2)
        if rng.random() < 0.02:
            faces.remove(face)
            scene.tables.remove_face(face)
            faces.append(scene.face(str(face.zid), face.whatami))
        scene.wait(0.05)
    for face in faces:
        scene.tables.remove_face(face)
    scene.wait(60.0)
    assert scene.tables.deadline is None
