"""Samples: who gets them, once, and without looking for the way again."""

from __future__ import annotations

import pytest

from tests.unit.routing.scene import client, peer, put, raw
from zenwire.errors import KeyExprError, ZError
from zenwire.routing import Locality, SampleReceived, Send, question
from zenwire.routing.declarations import Declarations
from zenwire.wire.data import Del
from zenwire.wire.values import Priority, QoS

LOCAL, REMOTE, ANY = Locality.SESSION_LOCAL, Locality.REMOTE, Locality.ANY


def test_one_event_names_each_subscriber_once() -> None:
    scene = client()
    router = scene.router()
    ids = tuple(scene.session.declare_subscriber(key) for key in ("a/*", "a/**", "a/b", "z"))
    scene.forget()
    scene.hear(router, '7d 00 03 "a/b" 02')
    assert scene.events(SampleReceived) == [
        SampleReceived(ids[:3], "a/b", Del(), QoS()),
    ]


@pytest.mark.parametrize(
    ("destination", "origin", "delivered"),
    [
        (ANY, ANY, True),
        (ANY, LOCAL, True),
        (ANY, REMOTE, False),
        (LOCAL, ANY, True),
        (REMOTE, ANY, False),
    ],
)
def test_locality(destination: Locality, origin: Locality, delivered: bool) -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_subscriber("k", allowed_origin=origin)
    assert bool(scene.sent(router)) == (origin is not LOCAL)
    scene.session.push("k", put(), allowed_destination=destination)
    assert bool(scene.events(SampleReceived)) == delivered
    assert bool(scene.sent(router)) == (destination is not LOCAL)
    scene.hear(router, '7d 00 01 "k" 01 01 "x"')
    assert bool(scene.events(SampleReceived)) == (origin is not LOCAL)


def test_two_sessions_are_remote_to_each_other() -> None:
    scene = client()
    one, two = scene.session, scene.tables.session()
    remote = one.declare_subscriber("k", allowed_origin=REMOTE)
    local = one.declare_subscriber("k", allowed_origin=LOCAL)
    two.push("k", put())
    assert [sample.subscribers for sample in scene.events(SampleReceived)] == [(remote,)]
    two.push("k", put(), allowed_destination=LOCAL)
    assert scene.quiet()
    one.push("k", put())
    assert [sample.subscribers for sample in scene.events(SampleReceived)] == [(local,)]


def test_qos_and_body_are_kept_and_the_node_id_is_not() -> None:
    scene = peer()
    one, two = scene.client("c1"), scene.client("c2")
    scene.hear(two, '9e 21 08 62 01 00 02 "**"')
    scene.hear(one, 'fd 00 01 "k" a1 19 33 05 81 41 05 10 14 cc 06 00 01 "x"')
    assert scene.sent(two) == raw('fd 00 01 "k" 21 19 81 41 05 10 14 cc 06 00 01 "x"')


def test_wild_keys_can_be_put() -> None:
    scene = client()
    one = scene.session.declare_subscriber("w/1")
    scene.session.push("w/*", put(), qos=QoS.of(Priority.REAL_TIME))
    (sample,) = scene.events(SampleReceived)
    assert (sample.subscribers, sample.qos.priority) == ((one,), Priority.REAL_TIME)


def test_faces_with_the_same_key_share_the_message() -> None:
    scene = peer()
    for name in ("b1", "b2", "b3"):
        scene.hear(scene.peer(name), 'be 00 21 08 1a 9e 21 08 62 01 00 02 "**"')
    scene.forget()
    scene.session.push("k", put())
    sent = scene.events(Send)
    assert len(sent) == 3
    assert len({id(output.message) for output in sent}) == 1


def test_a_route_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = peer()
    other = scene.client()
    scene.session.declare_subscriber("k/*")
    scene.hear(other, '9e 21 08 20 01 00 03 "k/1"')
    looked = []
    find = Declarations.intersecting

    def intersecting(self: Declarations, *args: object) -> object:
        looked.append(args)
        return find(self, *args)  # type: ignore[arg-type] # passed through

    monkeypatch.setattr(Declarations, "intersecting", intersecting)
    for _ in range(100):
        scene.session.push("k/1", put())
        scene.hear(other, '5d 01 01 01 "x" 7d 00 03 "k/1" 01 01 "x"')
    assert len(looked) == 2, "once for each source"
    assert len(scene.events(SampleReceived)) == 300
    scene.session.declare_subscriber("k/**")
    looked.clear()
    scene.session.push("k/1", put())
    assert len(looked) == 1
    assert len(scene.events(SampleReceived)[0].subscribers) == 2


def test_keys_are_checked() -> None:
    scene = client()
    with pytest.raises(KeyExprError):
        scene.session.push("a//b", put())
    with pytest.raises(KeyExprError):
        scene.session.declare_subscriber("**/**")
    with pytest.raises(ZError, match="nothing declared"):
        scene.session.undeclare(12345)
    with pytest.raises(ZError, match="no publisher"):
        scene.session.matching(scene.session.declare_subscriber("k"))


def test_a_closed_session_leaves_nothing() -> None:
    scene = peer()
    other, router = scene.peer(), scene.router()
    scene.hear(other, "be 00 21 08 1a")
    session = scene.tables.session()
    session.declare_subscriber("k")
    session.declare_queryable("k")
    session.declare_token("k")
    session.declare_publisher("k", scene.now)
    session.declare_liveliness_subscriber("k", scene.now)
    session.liveliness_get("far", scene.now)
    session.query(question("far"), scene.now)
    scene.hear(other, '7c 01 00 01 "k" 03')
    scene.forget()
    session.close()
    session.close()
    assert scene.sent(other) == raw(
        "9e 21 08 03 01 9e 21 08 85 02 5f 02 00 00 9e 21 08 87 03 5f 02 00 00 1a 01"
    )
    assert raw("99 04 21 08") in scene.sent(router)
    assert scene.quiet()
    with pytest.raises(ZError, match="closed"):
        session.push("k", put())
    assert session.face.id not in scene.tables.faces
