"""A client, message by message, as a capture of the reference shows it."""

from __future__ import annotations

from tests.unit.routing.scene import client, put, raw
from zenwire.routing import (
    CloseFace,
    MatchingChanged,
    QueryFinished,
    QueryReceived,
    ReplyReceived,
    SampleReceived,
    question,
)
from zenwire.wire.data import Err, Put
from zenwire.wire.encoding import Encoding
from zenwire.wire.structs import QueryBody
from zenwire.wire.values import CloseReason, QueryTarget


def test_says_nothing_until_the_api_is_used() -> None:
    scene = client()
    router = scene.router()
    assert scene.sent(router) == b""
    scene.session.push("demo/c/2", put("plain"))
    assert scene.sent(router) == raw('7d 00 08 "demo/c/2" 01 05 "plain"')


def test_declares_a_subscriber_by_alias() -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_subscriber("demo/a/**")
    assert scene.sent(router) == raw('9e 21 08 20 01 00 06 "demo/a" 9e 21 08 62 01 01 03 "/**"')


def test_the_same_key_is_declared_once_and_undeclared_last() -> None:
    scene = client()
    router = scene.router()
    one = scene.session.declare_subscriber("k")
    two = scene.session.declare_subscriber("k")
    assert scene.sent(router) == raw('9e 21 08 20 01 00 01 "k" 9e 21 08 42 01 01')
    scene.session.undeclare(one)
    assert scene.sent(router) == b""
    scene.session.undeclare(two)
    assert scene.sent(router) == raw("9e 21 08 03 01")


def test_a_publisher_asks_and_hears_of_subscribers() -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_subscriber("demo/a/**")
    scene.forget()
    publisher = scene.session.declare_publisher("demo/b/1", scene.now)
    assert scene.sent(router) == raw('9e 21 08 20 02 00 08 "demo/b/1" f9 02 53 02 21 08')
    scene.hear(router, "be 02 21 08 1a")
    assert not scene.session.matching(publisher)
    scene.hear(router, '9e 21 08 62 01 00 08 "demo/b/*"')
    assert scene.events(MatchingChanged) == [MatchingChanged(publisher, True)]
    scene.hear(router, "9e 21 08 03 01")
    assert scene.events(MatchingChanged) == [MatchingChanged(publisher, False)]
    scene.session.undeclare(publisher)
    assert scene.sent(router) == raw("99 02 21 08")
    assert scene.quiet()


def test_holds_back_only_the_very_key_that_nobody_wants() -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_publisher("b/*", scene.now)
    scene.forget()
    scene.session.push("b/*", put())
    assert scene.sent(router) != b"", "before D_FINAL everything is sent"
    scene.hear(router, "be 01 21 08 1a")
    scene.session.push("b/*", put())
    assert scene.sent(router) == b""
    scene.session.push("b/1", put())
    assert scene.sent(router) == raw('7d 01 02 "/1" 01 01 "x"')
    scene.hear(router, '9e 21 08 62 01 00 03 "b/1"')
    scene.session.push("b/*", put())
    assert scene.sent(router) == raw('7d 01 02 "/*" 01 01 "x"')


def test_a_query_nobody_serves_is_finished_without_a_request() -> None:
    scene = client()
    router = scene.router()
    querier = scene.session.declare_querier("q/1", scene.now)
    assert scene.sent(router) == raw('9e 21 08 20 01 00 03 "q/1" f9 01 55 01 21 08')
    scene.hear(router, "be 01 21 08 1a")
    query = scene.session.query(question("q/1"), scene.now)
    assert scene.sent(router) == b""
    assert scene.events(QueryFinished) == [QueryFinished(query)]
    scene.hear(router, '9e 21 08 64 01 00 04 "q/**"')
    assert scene.events(MatchingChanged) == [MatchingChanged(querier, True)]
    scene.session.query(question("q/1"), scene.now)
    assert scene.sent(router) == raw("dc 01 01 a1 0d 26 90 4e 23 03")


def test_an_unanswered_interest_counts_as_answered_after_ten_seconds() -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_publisher("b", scene.now)
    scene.forget()
    scene.wait(9.9)
    scene.session.push("b", put())
    assert scene.sent(router) != b""
    scene.wait(0.1)
    scene.session.push("b", put())
    assert scene.sent(router) == b""


def test_resolves_its_own_alias_in_what_comes() -> None:
    scene = client()
    router = scene.router()
    subscriber = scene.session.declare_subscriber("demo/a/**")
    scene.hear(router, '3d 01 03 "/zz" 21 c0 fe e1 e3 a7 bd 81 fd 6a 02 01 aa 0b "from router"')
    (sample,) = scene.events(SampleReceived)
    assert sample.subscribers == (subscriber,)
    assert sample.key == "demo/a/zz"
    assert isinstance(sample.body, Put)
    assert sample.body.payload == b"from router"
    # The other side's 1 is another key.
    scene.hear(router, '9e 21 08 20 01 00 06 "demo/a" 7d 01 02 "zz" 01 01 "y"')
    assert scene.events(SampleReceived) == []
    scene.hear(router, '7d 01 03 "/zz" 01 01 "y"')
    assert [s.key for s in scene.events(SampleReceived)] == ["demo/a/zz"]


def test_asks_and_gets_replies_and_one_final() -> None:
    scene = client()
    router = scene.router()
    value = QueryBody(encoding=Encoding.parse("text/plain"), payload=b"body")
    query = scene.session.query(
        question("demo/rq/**", "a=1;b=2", timeout=3.0), scene.now, value=value, attachment=b"att"
    )
    assert scene.sent(router) == raw(
        'fc 01 00 0a "demo/rq/**" a1 0d 26 b8 17 e3 03 07 "a=1;b=2" c3 05 08 "body" 45 03 "att"'
    )
    scene.hear(router, 'fb 01 00 09 "demo/rq/1" a1 0d 43 04 10 01 aa 07 04 01 03 "rr1"')
    assert scene.events(ReplyReceived) == [], "the latest is known at the end"
    scene.hear(router, "9a 01 21 0d")
    (reply,) = scene.events(ReplyReceived)
    assert (reply.query, reply.key) == (query, "demo/rq/1")
    assert reply.responder is not None
    assert (str(reply.responder.zid), reply.responder.eid) == ("aa01", 7)
    assert scene.events(QueryFinished) == [QueryFinished(query)]
    scene.hear(router, "9a 01 21 0d")
    assert scene.quiet()
    assert scene.tables.counters.unknown_request == 1


def test_serves_a_queryable() -> None:
    scene = client("cc01")
    router = scene.router()
    queryable = scene.session.declare_queryable("demo/q/**", complete=True)
    assert scene.sent(router) == raw(
        '9e 21 08 20 01 00 06 "demo/q" 9e 21 08 e4 01 01 03 "/**" 21 01'
    )
    scene.hear(router, 'bc 01 01 03 "/**" a1 0d 26 d0 0f 23 03')
    (query,) = scene.events(QueryReceived)
    assert query.queryables == (queryable,)
    assert (query.key, query.timeout, query.local) == ("demo/q/**", 2000, False)
    assert scene.session.reply(query.query, queryable, "demo/q/1", put("r1"))
    scene.session.reply(query.query, queryable, "", Err(payload=b"bad"))
    scene.session.finish(query.query, queryable)
    scene.session.finish(query.query, queryable)
    eid = f"{queryable:02x}"
    assert scene.sent(router) == raw(
        f'fb 01 00 08 "demo/q/1" a1 0d 43 04 10 01 cc {eid} 04 01 02 "r1"'
        f'fb 01 00 09 "demo/q/**" a1 0d 43 04 10 01 cc {eid} 05 03 "bad"'
        "9a 01 21 0d"
    )
    assert not scene.session.reply(query.query, queryable, "demo/q/1", put("late"))
    assert scene.quiet()


def test_everything_is_said_again_when_the_link_returns() -> None:
    scene = client()
    old = scene.router()
    session = scene.session
    session.declare_subscriber("s/**")
    session.declare_queryable("q")
    session.declare_token("t")
    session.declare_liveliness_subscriber("l/*", scene.now)
    publisher = session.declare_publisher("p", scene.now)
    scene.hear(old, 'be 05 21 08 62 01 00 01 "p" be 05 21 08 1a')
    assert session.matching(publisher)
    query = session.query(question("far"), scene.now)
    scene.forget()
    scene.tables.remove_face(old)
    assert scene.events(MatchingChanged) == [MatchingChanged(publisher, False)]
    assert scene.events(QueryFinished) == [QueryFinished(query)]
    session.push("s/1", put())
    assert scene.events(SampleReceived) != []
    assert scene.quiet()
    new = scene.router()
    # Interests first, all of them asking for what there is; ids from 1.
    assert scene.sent(new) == raw(
        '9e 21 08 20 01 00 01 "l" f9 01 79 01 02 "/*" 21 08'
        '9e 21 08 20 02 00 01 "p" f9 02 53 02 21 08'
        '9e 21 08 20 03 00 01 "s" 9e 21 08 20 04 00 01 "q" 9e 21 08 20 05 00 01 "t"'
        '9e 21 08 62 03 03 03 "/**"'
        "9e 21 08 44 04 04"
        "9e 21 08 46 05 05"
    )
    scene.hear(old, '7d 00 03 "s/1" 01 01 "z"')
    assert scene.quiet(), "what the old link says means nothing"


def test_relays_nothing_and_ignores_interests_and_link_state() -> None:
    scene = client()
    one = scene.router("bb01")
    two = scene.router("bb02")
    scene.hear(one, 'f9 01 12 21 08 df 01 21 08 01 00 7d 00 01 "k" 01 01 "x"')
    assert scene.sent(one) == scene.sent(two) == b""
    assert scene.tables.counters.ignored_interest == 1
    assert scene.tables.counters.ignored_oam == 1


def test_a_client_of_a_client_is_refused() -> None:
    scene = client()
    face = scene.client()
    (close,) = scene.events(CloseFace)
    assert (close.face, close.reason) == (face, CloseReason.GENERIC)
    scene.hear(face, '7d 00 01 "k" 01 01 "x"')
    assert scene.quiet()


def test_declarations_nobody_asked_for_are_not_kept() -> None:
    scene = client()
    router = scene.router()
    scene.hear(router, '9e 21 08 62 01 00 01 "k"')
    assert scene.tables.counters.ignored_declaration == 1
    one = scene.session.declare_publisher("k", scene.now)
    scene.hear(router, 'be 01 21 08 62 02 00 01 "k" be 01 21 08 1a')
    assert scene.session.matching(one)
    # The router tells nothing of it any more after the interest ended.
    scene.session.undeclare(one)
    two = scene.session.declare_publisher("k", scene.now)
    assert not scene.session.matching(two)


def test_all_complete_goes_to_one_who_may_know_more() -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_querier("a/*", scene.now)
    scene.hear(router, 'be 01 21 08 64 01 00 03 "a/b" be 01 21 08 1a')
    scene.forget()
    scene.session.query(question("a/b", target=QueryTarget.ALL_COMPLETE), scene.now)
    assert scene.sent(router) == raw('fc 01 01 02 "/b" a1 0d b4 02 26 90 4e 23 03')
