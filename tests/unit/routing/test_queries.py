"""Queries: whom they go to, and that each ends exactly once."""

from __future__ import annotations

import pytest

from tests.unit.routing.scene import Scene, client, peer, put, raw
from zenwire.errors import KeyExprError, ZError
from zenwire.routing import Face, Locality, QueryFinished, QueryReceived, ReplyReceived, question
from zenwire.wire.data import Err
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import ResponseFinal
from zenwire.wire.values import ConsolidationMode, QueryTarget

ANY = QueryTarget.ALL
BEST = QueryTarget.BEST_MATCHING
COMPLETE = QueryTarget.ALL_COMPLETE


def introduced(scene: Scene, name: str, queryables: str) -> Face:
    """A peer that told all it has."""
    face = scene.peer(name)
    scene.hear(face, queryables + "be 00 21 08 1a")
    scene.forget()
    return face


@pytest.mark.parametrize(
    ("target", "asked"),
    [(BEST, ["near"]), (ANY, ["near", "far", "part", "some"]), (COMPLETE, ["near", "far"])],
)
def test_targets(target: QueryTarget, asked: list[str]) -> None:
    scene = peer()
    faces = {
        "far": introduced(scene, "b1", '9e 21 08 e4 01 00 04 "q/**" 21 81 02'),
        "near": introduced(scene, "b2", '9e 21 08 e4 01 00 04 "q/**" 21 01'),
        "part": introduced(scene, "b3", '9e 21 08 e4 01 00 03 "q/1" 21 01'),
        "some": introduced(scene, "b4", '9e 21 08 64 01 00 04 "q/**"'),
        "none": introduced(scene, "b5", '9e 21 08 e4 01 00 01 "z" 21 01'),
    }
    scene.session.query(question("q/*", target=target), scene.now)
    assert {name for name, face in faces.items() if scene.sent(face)} == set(asked)


def test_best_matching_asks_all_if_none_is_complete() -> None:
    scene = peer()
    one = introduced(scene, "b1", '9e 21 08 64 01 00 01 "q"')
    two = introduced(scene, "b2", '9e 21 08 64 01 00 01 "q"')
    unknown = scene.peer("b3")
    scene.forget()
    scene.session.query(question("q"), scene.now)
    assert scene.sent(one)
    assert scene.sent(two)
    assert scene.sent(unknown), "one that has not told what it has may have it"


def test_a_session_asks_its_own_queryables_besides_the_best_remote() -> None:
    scene = peer()
    other = introduced(scene, "b1", '9e 21 08 e4 01 00 01 "q" 21 01')
    mine = scene.session.declare_queryable("q", complete=True)
    scene.forget()
    query = scene.session.query(question("q", consolidation=ConsolidationMode.NONE), scene.now)
    (event,) = scene.events(QueryReceived)
    assert (event.queryables, event.local) == ((mine,), True)
    assert scene.sent(other)
    scene.session.reply(event.query, mine, "q", put("mine"))
    (reply,) = scene.events(ReplyReceived)
    assert (reply.query, reply.key, reply.body) == (query, "q", put("mine"))
    scene.session.finish(event.query, mine)
    assert scene.events(QueryFinished) == []
    scene.hear(other, "1a 01")
    assert scene.events(QueryFinished) == [QueryFinished(query)]


@pytest.mark.parametrize(
    ("destination", "local", "remote"),
    [
        (Locality.ANY, True, True),
        (Locality.SESSION_LOCAL, True, False),
        (Locality.REMOTE, False, True),
    ],
)
def test_locality_of_a_query(destination: Locality, local: bool, remote: bool) -> None:
    scene = client()
    router = scene.router()
    scene.session.declare_queryable("q")
    scene.forget()
    scene.session.query(question("q", allowed_destination=destination), scene.now)
    assert bool(scene.events(QueryReceived)) == local
    assert bool(scene.sent(router)) == remote


def test_locality_of_a_queryable() -> None:
    scene = peer()
    other = introduced(scene, "b1", "")
    own = scene.session.declare_queryable("q", allowed_origin=Locality.SESSION_LOCAL)
    assert scene.sent(other) == b"", "purely local ones are not declared"
    foreign = scene.session.declare_queryable("q", allowed_origin=Locality.REMOTE)
    assert scene.sent(other)
    scene.session.query(question("q"), scene.now)
    assert [event.queryables for event in scene.events(QueryReceived)] == [(own,)]
    scene.hear(other, '7c 01 00 01 "q" 03')
    assert [event.queryables for event in scene.events(QueryReceived)] == [(foreign,)]


def test_two_queryables_make_one_final() -> None:
    scene = peer()
    other = introduced(scene, "b1", "")
    one, two = scene.session.declare_queryable("q/*"), scene.session.declare_queryable("q/1")
    scene.forget()
    scene.hear(other, '7c 05 00 03 "q/1" 03')
    (event,) = scene.events(QueryReceived)
    assert event.queryables == (one, two)
    scene.session.finish(event.query, one)
    assert not scene.session.reply(event.query, one, "q/1", put())
    assert scene.quiet()
    scene.session.finish(event.query, two)
    assert scene.sent(other) == raw("1a 05")


def test_a_reply_on_another_key_is_refused_unless_any_is_asked_for() -> None:
    scene = peer()
    other = introduced(scene, "b1", "")
    mine = scene.session.declare_queryable("q")
    scene.hear(other, '7c 05 00 01 "q" 03 7c 06 00 01 "q" 43 06 "_anyke"')
    plain, anyke = scene.events(QueryReceived)
    with pytest.raises(ZError, match="_anyke"):
        scene.session.reply(plain.query, mine, "z", put())
    with pytest.raises(KeyExprError):
        scene.session.reply(plain.query, mine, "z//", put())
    assert scene.session.reply(anyke.query, mine, "z", put())


def test_foreign_replies_are_dropped_by_the_asker() -> None:
    scene = client()
    router = scene.router()
    scene.session.query(question("q", consolidation=ConsolidationMode.NONE), scene.now)
    scene.hear(router, '7b 01 00 01 "z" 04 01 01 "x"')
    assert scene.events(ReplyReceived) == []
    assert scene.tables.counters.foreign_reply == 1
    scene.session.query(
        question("q", parameters="a;_anyke", consolidation=ConsolidationMode.NONE), scene.now
    )
    scene.hear(router, '7b 02 00 01 "z" 04 01 01 "x"')
    assert [reply.key for reply in scene.events(ReplyReceived)] == ["z"]


def test_out_of_time_the_asker_gets_what_there_is_and_an_error() -> None:
    scene = client()
    router = scene.router()
    query = scene.session.query(question("q", timeout=0.5), scene.now)
    scene.hear(router, '7b 01 00 01 "q" 04 01 01 "x"')
    scene.forget()
    assert scene.tables.deadline == scene.now + 0.5
    scene.wait(0.5)
    held, error = scene.events(ReplyReceived)
    assert held.body == put("x")
    assert error.body == Err(encoding=Encoding.parse("zenoh/string"), payload=b"Timeout")
    assert scene.events(QueryFinished) == [QueryFinished(query)]
    scene.hear(router, '7b 01 00 01 "q" 04 01 01 "y" 1a 01')
    assert scene.quiet()
    assert scene.tables.deadline is None


def test_out_of_time_a_relaying_node_answers_for_the_silent_one() -> None:
    scene = peer("aa02")
    asker, silent = scene.client("c1"), scene.client("c2")
    scene.hear(silent, '9e 21 08 64 01 00 01 "q"')
    scene.hear(asker, 'fc 09 00 01 "q" a1 0d 26 64 03')
    scene.forget()
    scene.wait(0.1)
    assert scene.sent(asker) == raw('db 09 00 a1 0d 43 03 00 c2 00 05 07 "Timeout" 9a 09 21 0d')
    scene.hear(silent, '7b 01 00 01 "q" 04 01 01 "x" 1a 01')
    assert scene.quiet()
    assert scene.tables.counters.unknown_request == 2


def test_a_request_without_a_timeout_has_ten_seconds() -> None:
    scene = peer("aa02")
    other = introduced(scene, "b1", "")
    mine = scene.session.declare_queryable("q")
    scene.hear(other, '7c 09 00 01 "q" 03')
    (event,) = scene.events(QueryReceived)
    scene.forget()
    scene.wait(9.9)
    assert scene.quiet()
    scene.wait(0.1)
    assert scene.sent(other) == raw('db 09 00 43 04 10 02 aa 00 05 07 "Timeout" 1a 09')
    assert not scene.session.reply(event.query, mine, "q", put())


def test_a_dying_queryable_counts_as_finished() -> None:
    scene = peer()
    asker, one, two = scene.client("c1"), scene.client("c2"), scene.client("c3")
    for face in (one, two):
        scene.hear(face, '9e 21 08 64 01 00 01 "q"')
    scene.hear(asker, '7c 09 00 01 "q" 03')
    scene.forget()
    scene.tables.remove_face(one)
    assert scene.sent(asker) == b""
    scene.tables.remove_face(two)
    assert scene.sent(asker) == raw("1a 09")


def test_a_dying_asker_is_answered_no_more() -> None:
    scene = peer()
    asker, one = scene.client("c1"), scene.client("c2")
    scene.hear(one, '9e 21 08 64 01 00 01 "q"')
    mine = scene.session.declare_queryable("q")
    scene.hear(asker, '7c 09 00 01 "q" 03')
    (event,) = scene.events(QueryReceived)
    scene.tables.remove_face(asker)
    scene.forget()
    scene.hear(one, '7b 01 00 01 "q" 04 01 01 "x" 1a 01')
    assert not scene.session.reply(event.query, mine, "q", put())
    scene.session.finish(event.query, mine)
    assert scene.quiet()
    assert scene.tables.deadline is None


def test_no_match_unknown_scope_and_bad_keys_get_a_final_at_once() -> None:
    scene = peer()
    other = introduced(scene, "b1", "")
    scene.hear(other, '7c 01 00 01 "q" 03 5c 02 09 03 7c 03 00 02 "a/" 03')
    assert scene.sent(other) == raw("1a 01 1a 02 1a 03")


def test_a_request_id_in_use_gets_no_second_final() -> None:
    scene = peer()
    other = introduced(scene, "b1", "")
    mine = scene.session.declare_queryable("q")
    scene.forget()
    scene.hear(other, '7c 01 00 01 "q" 03 7c 01 00 01 "q" 03')
    (event,) = scene.events(QueryReceived)
    scene.session.finish(event.query, mine)
    assert scene.sent(other) == raw("1a 01")
    assert scene.tables.counters.duplicate_request == 1


def test_budget_bounds_what_is_delivered() -> None:
    scene = client()
    router = scene.router()
    scene.session.query(question("q/*", budget=2), scene.now)
    assert raw("a5 02") in scene.sent(router)
    for n in range(4):
        scene.hear(router, f'7b 01 00 03 "q/{n}" 04 01 01 "x"')
    scene.hear(router, "1a 01")
    assert [reply.key for reply in scene.events(ReplyReceived)] == ["q/0", "q/1"]
    assert scene.tables.counters.over_budget == 2


def test_errors_are_delivered_at_once_and_need_no_key() -> None:
    scene = client()
    router = scene.router()
    scene.session.query(question("q"), scene.now)
    scene.hear(router, '5b 01 00 05 03 "bad" 7b 01 00 01 "z" 05 03 "bad"')
    assert [reply.body for reply in scene.events(ReplyReceived)] == [Err(payload=b"bad")] * 2


def test_cancel_ends_without_a_word() -> None:
    scene = client()
    router = scene.router()
    query = scene.session.query(question("q"), scene.now)
    live = scene.session.liveliness_get("q", scene.now)
    scene.forget()
    scene.session.cancel(query)
    scene.session.cancel(live)
    scene.session.cancel(query)
    scene.hear(router, "1a 01 be 01 21 08 1a")
    scene.wait(11.0)
    assert scene.quiet()


def test_deadlines_of_finished_queries_do_not_pile_up() -> None:
    scene = client()
    router = scene.router()
    for n in range(1, 500):
        scene.session.query(question("q", timeout=3600.0), scene.now)
        scene.tables.receive(router, ResponseFinal(request_id=n), scene.now)
        scene.forget()
    assert len(scene.tables._core.queries._deadlines) < 100
    assert scene.tables.deadline is None
