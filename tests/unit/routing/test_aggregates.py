from __future__ import annotations

from tests.unit.routing.scene import Scene, put, raw
from zenwire.routing import CLIENT, PEER, Aggregates, Locality, RoutingOptions, SampleReceived
from zenwire.wire.network import Push
from zenwire.wire.values import WireExpr

SUBSCRIBERS = RoutingOptions(aggregates=Aggregates(subscribers=("a/**", "**")))
PUBLISHERS = RoutingOptions(aggregates=Aggregates(publishers=("a/**",)))


def test_subscribers_are_declared_as_the_first_aggregate_that_includes_them() -> None:
    scene = Scene(CLIENT, options=SUBSCRIBERS)
    router = scene.router()
    scene.forget()
    first = scene.session.declare_subscriber("a/b")
    # An alias of "a", then D_SUBSCRIBER of "a/**".
    assert scene.sent(router) == raw('9e 21 08 20 01 00 01 "a" 9e 21 08 62 01 01 03 "/**"')
    second = scene.session.declare_subscriber("a/c/d")
    assert scene.quiet()
    other = scene.session.declare_subscriber("b")
    assert scene.sent(router) == raw('9e 21 08 62 02 00 02 "**"')
    scene.session.undeclare(first)
    assert scene.quiet()
    scene.session.undeclare(second)
    assert scene.sent(router) == raw("9e 21 08 03 01")
    scene.session.undeclare(other)
    assert scene.sent(router) == raw("9e 21 08 03 02")
    assert scene.quiet()


def test_each_subscriber_gets_samples_of_its_own_key() -> None:
    scene = Scene(PEER, options=SUBSCRIBERS)
    peer = scene.peer()
    keys = ("a/b", "a/*", "x")
    ids = {scene.session.declare_subscriber(key): key for key in keys}
    scene.forget()
    for key, expected in (("a/b", ["a/b", "a/*"]), ("a/c", ["a/*"]), ("a/c/d", []), ("y", [])):
        scene.tables.receive(peer, Push(key=WireExpr(0, key), body=put()), scene.now)
        told = [each for event in scene.events(SampleReceived) for each in event.subscribers]
        assert [ids[each] for each in told] == expected, key


def test_a_subscriber_of_its_own_session_alone_is_not_declared() -> None:
    scene = Scene(CLIENT, options=SUBSCRIBERS)
    scene.router()
    scene.forget()
    scene.session.declare_subscriber("a/b", allowed_origin=Locality.SESSION_LOCAL)
    assert scene.quiet()


def test_publishers_ask_for_the_subscribers_of_their_aggregate_once() -> None:
    scene = Scene(CLIENT, options=PUBLISHERS)
    router = scene.router()
    scene.forget()
    first = scene.session.declare_publisher("a/b", scene.now)
    # An alias of "a", then INTEREST in subscribers of "a/**".
    alias, interest = '9e 21 08 20 01 00 01 "a"', 'f9 01 73 01 03 "/**" 21 08'
    assert scene.sent(router) == raw(f"{alias} {interest}")
    second = scene.session.declare_publisher("a/c", scene.now)
    assert scene.quiet()
    # Until that is answered everything goes there.
    scene.session.push("a/b", put())
    assert scene.sent(router)
    scene.hear(router, "be 01 21 08 1a")
    scene.session.push("a/b", put())
    scene.session.push("a/zzz", put())
    assert scene.quiet()
    scene.session.push("b", put())
    assert scene.sent(router)
    # Of subscribers below the aggregate each publisher takes those on its own key.
    scene.hear(router, '9e 21 08 62 01 00 03 "a/b"')
    assert (scene.session.matching(first), scene.session.matching(second)) == (True, False)
    scene.forget()
    scene.session.undeclare(first)
    assert scene.quiet()
    scene.session.undeclare(second)
    assert scene.sent(router) == raw("99 01 21 08")
    scene.session.push("a/b", put())
    assert scene.sent(router)


def test_a_key_without_an_aggregate_stays() -> None:
    assert Aggregates().of_subscriber("a/b") == Aggregates().of_publisher("a/b") == "a/b"
    assert PUBLISHERS.aggregates.of_publisher("b/a") == "b/a"
