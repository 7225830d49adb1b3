"""A peer towards peers, routers and its own clients, as captures of the reference show it."""

from __future__ import annotations

from tests.unit.routing.scene import Scene, peer, put, raw
from zenwire.routing import (
    PEER,
    MatchingChanged,
    QueryFinished,
    QueryReceived,
    SampleReceived,
    question,
)


def test_tells_a_peer_everything_then_final_zero() -> None:
    scene = Scene(PEER, "aa02", locators=("tcp/127.0.0.1:17010",))
    scene.session.declare_subscriber("p/a/*")
    scene.session.declare_queryable("p/q")
    scene.session.declare_token("p/tok")
    other = scene.peer("bb02")
    assert scene.sent(other) == raw(
        'df 01 21 08 26 02 07 00 02 02 02 aa 02 01 13 "tcp/127.0.0.1:17010" 00'
        "03 01 00 02 02 bb 02 00"
        '9e 21 08 20 01 00 03 "p/a" 9e 21 08 20 02 00 03 "p/q" 9e 21 08 20 03 00 05 "p/tok"'
        '9e 21 08 62 01 01 02 "/*"'
        "9e 21 08 44 02 02"
        "9e 21 08 46 03 03"
        "be 00 21 08 1a"
    )


def test_hears_a_peer_and_uses_its_aliases() -> None:
    scene = peer("bb02")
    other = scene.peer("aa02")
    assert scene.sent(other) == raw(
        "df 01 21 08 12 02 07 00 02 02 02 bb 02 00 00 03 01 00 02 02 aa 02 00 be 00 21 08 1a"
    )
    scene.hear(
        other,
        'df 01 21 08 26 02 07 00 02 02 02 aa 02 01 13 "tcp/127.0.0.1:17010" 00'
        "03 01 00 02 02 bb 02 00"
        '9e 21 08 20 01 00 03 "p/a" 9e 21 08 20 02 00 03 "p/q" 9e 21 08 20 03 00 05 "p/tok"'
        '9e 21 08 62 01 01 02 "/*" 9e 21 08 44 02 02 9e 21 08 46 03 03 be 00 21 08 1a',
    )
    scene.session.push("p/a/1", put())
    assert scene.sent(other) == raw('3d 01 02 "/1" 01 01 "x"')
    query = scene.session.query(question("p/q"), scene.now)
    assert scene.sent(other) == raw("9c 01 02 a1 0d 26 90 4e 23 03")
    scene.hear(other, 'fb 01 00 03 "p/q" a1 0d 43 04 10 02 aa 07 04 01 02 "ok" 9a 01 21 0d')
    assert scene.events(QueryFinished) == [QueryFinished(query)]
    publisher = scene.session.declare_publisher("p/**", scene.now)
    assert scene.session.matching(publisher)
    assert scene.sent(other) == b"", "peers send each other no interests"
    scene.hear(other, "9e 21 08 03 01")
    assert scene.events(MatchingChanged) == [MatchingChanged(publisher, False)]


def test_sends_everything_until_final_zero() -> None:
    scene = peer()
    other = scene.peer()
    scene.forget()
    scene.session.push("k", put())
    query = scene.session.query(question("k"), scene.now)
    assert scene.sent(other) == raw('7d 00 01 "k" 01 01 "x" fc 01 00 01 "k" a1 0d 26 90 4e 23 03')
    scene.hear(other, "9a 01 21 0d be 00 21 08 1a")
    assert scene.events(QueryFinished) == [QueryFinished(query)]
    scene.session.push("k", put())
    query = scene.session.query(question("k"), scene.now)
    assert scene.sent(other) == b""
    assert scene.events(QueryFinished) == [QueryFinished(query)]


def test_changes_are_told_unasked() -> None:
    scene = peer()
    other = scene.peer()
    scene.hear(other, "be 00 21 08 1a")
    scene.forget()
    subscriber = scene.session.declare_subscriber("a/*")
    assert scene.sent(other) == raw('9e 21 08 20 01 00 01 "a" 9e 21 08 62 01 01 02 "/*"')
    scene.session.undeclare(subscriber)
    assert scene.sent(other) == raw("9e 21 08 03 01")


def test_tells_a_router_unasked_and_asks_it() -> None:
    scene = peer("bb03")
    scene.session.declare_subscriber("p/a/*")
    router = scene.router("aa03")
    assert scene.sent(router) == raw(
        "df 01 21 08 13 02 07 00 02 02 03 bb 02 00 01 01 13 01 00 02 03 aa 01 00"
        '9e 21 08 20 01 00 03 "p/a" 9e 21 08 62 01 01 02 "/*"'
    )
    scene.hear(router, "df 01 21 08 01 00")
    publisher = scene.session.declare_publisher("far/x", scene.now)
    assert scene.sent(router) == raw('9e 21 08 20 02 00 05 "far/x" f9 02 53 02 21 08')
    scene.hear(router, 'be 02 21 08 62 01 00 06 "far/**" be 02 21 08 1a')
    assert scene.events(MatchingChanged) == [MatchingChanged(publisher, True)]


def test_does_not_relay_between_peers_and_routers() -> None:
    scene = peer()
    one, two, router = scene.peer("b1"), scene.peer("b2"), scene.router("a1")
    for face in (one, two):
        scene.hear(face, 'be 00 21 08 1a 9e 21 08 62 01 00 02 "**"')
    scene.forget()
    scene.hear(one, '7d 00 01 "k" 01 01 "x" 7c 01 00 01 "k" 03')
    assert scene.sent(two) == scene.sent(router) == b""
    assert scene.sent(one) == raw("1a 01"), "a query nobody serves is finished"


def test_clients_of_a_peer_hear_each_other_and_the_peers() -> None:
    scene = peer()
    one, two, far = scene.client("c1"), scene.client("c2"), scene.peer("b1")
    assert scene.sent(one) == scene.sent(two) == b"", "a client is told nothing unasked"
    scene.forget()
    scene.hear(far, "be 00 21 08 1a")
    scene.hear(one, '9e 21 08 20 01 00 01 "k" 9e 21 08 62 01 01 02 "/*"')
    assert scene.sent(far) == raw('9e 21 08 20 01 00 01 "k" 9e 21 08 62 01 01 02 "/*"')
    assert scene.sent(two) == b""
    for source in (two, far):
        scene.hear(source, '7d 00 03 "k/1" 01 01 "x"')
        assert scene.sent(one) == raw('3d 01 02 "/1" 01 01 "x"')
    scene.hear(one, '7d 01 02 "/1" 01 01 "x"')
    assert scene.sent(one) == b"", "nobody hears itself"
    assert scene.quiet()


def test_relays_a_query_of_a_client_and_sends_one_final() -> None:
    scene = peer("aa02")
    asker, near, far = scene.client("c1"), scene.client("c2"), scene.peer("b1")
    scene.hear(far, 'be 00 21 08 1a 9e 21 08 64 01 00 01 "q"')
    scene.hear(near, '9e 21 08 64 01 00 01 "q"')
    mine = scene.session.declare_queryable("q")
    scene.forget()
    scene.hear(asker, 'fc 09 00 01 "q" a1 0d 34 01 03')
    assert scene.sent(near) == raw('fc 01 00 01 "q" a1 0d 34 01 03')
    assert scene.sent(far) == raw("dc 01 01 a1 0d 34 01 03")
    (query,) = scene.events(QueryReceived)
    scene.hear(near, 'fb 01 00 01 "q" 43 04 10 02 cc 05 04 01 01 "n" 1a 01')
    assert scene.sent(asker) == raw('fb 09 00 01 "q" a1 0d 43 04 10 02 cc 05 04 01 01 "n"')
    scene.hear(far, "1a 01")
    assert scene.sent(asker) == b""
    scene.session.finish(query.query, mine)
    assert scene.sent(asker) == raw("9a 09 21 0d")
    assert scene.quiet()


def test_interests_of_clients_reach_the_router_and_wait_for_it() -> None:
    scene = peer()
    client, router = scene.client(), scene.router()
    scene.session.declare_subscriber("k/1")
    scene.forget()
    scene.hear(client, 'f9 07 33 00 03 "k/*" 21 08')
    assert scene.sent(client) == raw('9e 21 08 20 01 00 03 "k/1" be 07 21 08 42 01 01')
    assert scene.sent(router) == raw('9e 21 08 20 02 00 01 "k" f9 02 73 02 02 "/*" 21 08')
    scene.hear(router, 'be 02 21 08 62 01 00 03 "k/2"')
    assert scene.sent(client) == raw('9e 21 08 20 02 00 03 "k/2" be 07 21 08 42 02 02')
    scene.hear(router, "be 02 21 08 1a")
    assert scene.sent(client) == raw("be 07 21 08 1a")
    scene.hear(router, '9e 21 08 62 02 00 03 "k/3"')
    assert scene.sent(client) == raw('9e 21 08 20 03 00 03 "k/3" 9e 21 08 42 03 03')
    scene.hear(client, "99 07 21 08")
    assert scene.sent(router) == raw("99 02 21 08")
    # What is not asked for any more is not known any more, and who was told of it hears that.
    assert scene.sent(client) == raw("9e 21 08 03 03 9e 21 08 03 02")
    assert scene.quiet()


def test_a_router_that_goes_or_is_silent_ends_the_wait() -> None:
    scene = peer()
    client, router, other = scene.client(), scene.router("a1"), scene.router("a2")
    scene.hear(client, "79 01 02")
    scene.forget()
    scene.tables.remove_face(router)
    assert scene.sent(client) == b""
    scene.wait(10.0)
    assert scene.sent(client) == raw("be 01 21 08 1a")
    assert other.alive


def test_a_multicast_group_gets_data_and_subscribers_with_whole_keys() -> None:
    scene = peer()
    group = scene.tables.add_face(scene.peer().zid, PEER.whatami, scene.now, multicast=True)
    scene.forget()
    scene.session.declare_subscriber("a/b")
    scene.session.declare_queryable("a/b")
    scene.session.push("a/b", put())
    scene.session.query(question("z"), scene.now)
    assert scene.sent(group) == raw('9e 21 08 62 00 00 03 "a/b" 7d 00 03 "a/b" 01 01 "x"')
    scene.forget()
    scene.hear(group, '7d 00 03 "a/b" 01 01 "y"')
    assert len(scene.events(SampleReceived)) == 1
