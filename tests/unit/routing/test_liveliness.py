"""Liveliness: tokens, those who watch them, and those who ask once."""

from __future__ import annotations

from tests.unit.routing.scene import client, peer, raw
from zenwire.routing import LivelinessChanged, QueryFinished, ReplyReceived
from zenwire.wire.data import Err, Put


def test_a_token_and_its_end_on_the_wire() -> None:
    scene = client()
    router = scene.router()
    token = scene.session.declare_token("live/c1")
    assert scene.sent(router) == raw('9e 21 08 20 01 00 07 "live/c1" 9e 21 08 46 01 01')
    scene.session.undeclare(token)
    assert scene.sent(router) == raw("9e 21 08 87 01 5f 02 00 00")


def test_get_asks_for_current_tokens_and_tells_each_key_once() -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_token("live/c1")
    scene.forget()
    query = scene.session.liveliness_get("live/**", scene.now)
    assert scene.sent(router) == raw('9e 21 08 20 02 00 04 "live" b9 02 79 02 03 "/**" 21 08')
    scene.hear(
        router,
        'be 02 21 08 66 00 00 07 "live/r1" be 02 21 08 06 00 01 be 02 21 08 66 00 00 07 "live/r1"'
        "be 02 21 08 1a",
    )
    replies = scene.events(ReplyReceived)
    assert [reply.key for reply in replies] == ["live/c1", "live/r1"]
    assert all(r.query == query and r.body == Put(payload=b"") for r in replies)
    assert scene.events(QueryFinished) == [QueryFinished(query)]
    assert scene.quiet()
    assert scene.tables.deadline is None


def test_get_without_an_answer_ends_with_an_error() -> None:
    scene = client()
    scene.router()
    query = scene.session.liveliness_get("t", scene.now, timeout=1.0)
    scene.forget()
    scene.wait(1.0)
    (reply,) = scene.events(ReplyReceived)
    assert isinstance(reply.body, Err)
    assert reply.body.payload == b"Timeout"
    assert scene.events(QueryFinished) == [QueryFinished(query)]


def test_get_on_a_lost_link_ends() -> None:
    scene = client()
    router = scene.router()
    query = scene.session.liveliness_get("t", scene.now)
    scene.forget()
    scene.tables.remove_face(router)
    assert scene.events(QueryFinished) == [QueryFinished(query)]
    assert scene.session.liveliness_get("t", scene.now) != query
    assert len(scene.events(QueryFinished)) == 1, "nobody to ask"


def test_subscriber_with_history() -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_token("live/c1")
    scene.forget()
    watch = scene.session.declare_liveliness_subscriber("live/**", scene.now, history=True)
    assert scene.sent(router) == raw('9e 21 08 20 02 00 04 "live" f9 02 79 02 03 "/**" 21 08')
    scene.hear(
        router,
        '9e 21 08 20 06 00 07 "live/r1" be 02 21 08 06 02 01 be 02 21 08 46 03 06 be 02 21 08 1a',
    )
    assert scene.events(LivelinessChanged) == [
        LivelinessChanged((watch,), "live/c1", True),
        LivelinessChanged((watch,), "live/r1", True),
    ]
    scene.hear(router, "9e 21 08 87 03 5f 02 00 00")
    assert scene.events(LivelinessChanged) == [LivelinessChanged((watch,), "live/r1", False)]
    scene.session.undeclare(watch)
    assert scene.sent(router) == raw("99 02 21 08")
    scene.hear(router, '9e 21 08 66 04 00 07 "live/r2"')
    assert scene.quiet()


def test_subscriber_without_history_hears_the_end_of_what_was_there() -> None:
    scene = client()
    router = scene.router()
    watch = scene.session.declare_liveliness_subscriber("live/**", scene.now)
    assert scene.sent(router) == raw('9e 21 08 20 01 00 04 "live" d9 01 79 01 03 "/**" 21 08')
    scene.hear(router, 'be 01 21 08 1a 9e 21 08 87 00 5f 09 03 00 "live/r1"')
    assert scene.events(LivelinessChanged) == [LivelinessChanged((watch,), "live/r1", False)]
    scene.hear(router, "9e 21 08 07 09")
    assert scene.tables.counters.unknown_undeclare == 1
    assert scene.quiet()


def test_a_key_lives_while_anybody_has_a_token() -> None:
    scene = peer()
    one, two = scene.peer("b1"), scene.peer("b2")
    watch = scene.session.declare_liveliness_subscriber("t/*", scene.now)
    scene.forget()
    scene.hear(one, '9e 21 08 66 01 00 03 "t/1"')
    scene.hear(two, '9e 21 08 66 01 00 03 "t/1"')
    scene.hear(one, '9e 21 08 66 01 00 03 "t/1"')
    assert scene.events(LivelinessChanged) == [LivelinessChanged((watch,), "t/1", True)]
    scene.hear(one, "9e 21 08 87 01 5f 02 00 00")
    assert scene.quiet()
    scene.tables.remove_face(two)
    assert scene.events(LivelinessChanged) == [LivelinessChanged((watch,), "t/1", False)]


def test_tokens_never_meet_subscribers_or_queryables() -> None:
    scene = peer()
    other = scene.peer()
    scene.hear(other, 'be 00 21 08 1a 9e 21 08 66 01 00 01 "t"')
    publisher = scene.session.declare_publisher("t", scene.now)
    assert not scene.session.matching(publisher)


def test_a_served_client_is_told_its_own_tokens_and_those_of_others() -> None:
    scene = peer()
    client_, other = scene.client(), scene.peer()
    scene.hear(client_, '9e 21 08 20 04 00 07 "live/c1" 9e 21 08 46 04 04')
    scene.hear(other, 'be 00 21 08 1a 9e 21 08 66 01 00 07 "live/r1"')
    scene.forget()
    scene.hear(client_, 'b9 05 39 00 07 "live/**" 21 08')
    assert scene.sent(client_) == raw(
        'be 05 21 08 06 00 04 be 05 21 08 66 00 00 07 "live/r1" be 05 21 08 1a'
    )
    scene.hear(client_, 'f9 06 39 00 07 "live/**" 21 08')
    assert scene.sent(client_) == raw(
        'be 06 21 08 06 01 04 9e 21 08 20 01 00 07 "live/r1" be 06 21 08 46 02 01 be 06 21 08 1a'
    )
    scene.tables.remove_face(other)
    assert scene.sent(client_) == raw("9e 21 08 87 02 5f 02 00 00")


def test_a_served_client_hears_the_end_of_a_token_it_was_not_told() -> None:
    scene = peer()
    client_ = scene.client()
    token = scene.session.declare_token("live/r1")
    scene.hear(client_, 'd9 06 38 00 07 "live/**" 21 08')
    assert scene.sent(client_) == b""
    scene.session.undeclare(token)
    assert scene.sent(client_) == raw('9e 21 08 87 00 5f 09 03 00 "live/r1"')


def test_current_tokens_of_a_router_are_passed_on_to_a_client() -> None:
    scene = peer()
    client_, router = scene.client(), scene.router()
    scene.forget()
    scene.hear(client_, 'b9 05 38 00 02 "**" 21 08')
    assert scene.sent(client_) == b""
    assert scene.sent(router) == raw('b9 01 79 00 02 "**" 21 08')
    scene.hear(router, 'be 01 21 08 66 00 00 01 "r" be 01 21 08 66 00 00 01 "r" be 01 21 08 1a')
    assert scene.sent(client_) == raw('be 05 21 08 66 00 00 01 "r" be 05 21 08 1a')
