"""Interests of served faces: what is told, in which order, and how often."""

from __future__ import annotations

import pytest

from tests.unit.routing.scene import Scene, peer, put, raw
from zenwire.routing import CLIENT, RoutingOptions
from zenwire.routing.interests import KeySet


def test_answers_come_before_final_and_changes_without_the_id() -> None:
    scene = peer()
    scene.session.declare_subscriber("k/1")
    client = scene.client()
    scene.hear(client, 'f9 02 32 00 03 "k/*" 21 08')
    assert scene.sent(client) == raw('be 02 21 08 62 01 00 03 "k/1" be 02 21 08 1a')
    two = scene.session.declare_subscriber("k/2")
    scene.session.declare_subscriber("other")
    assert scene.sent(client) == raw('9e 21 08 62 02 00 03 "k/2"')
    scene.session.undeclare(two)
    assert scene.sent(client) == raw("9e 21 08 03 02")


def test_a_declaration_told_before_is_told_again_with_its_id() -> None:
    scene = peer()
    scene.session.declare_subscriber("k/1")
    client = scene.client()
    scene.hear(client, 'f9 02 32 00 03 "k/*" 21 08')
    scene.forget()
    scene.hear(client, "f9 03 02 21 08")
    assert scene.sent(client) == raw('be 03 21 08 62 01 00 03 "k/1" be 03 21 08 1a')
    scene.hear(client, "99 02 21 08")
    one = scene.session.declare_subscriber("k/3")
    assert scene.sent(client) == raw('9e 21 08 62 02 00 03 "k/3"'), "told once"
    scene.hear(client, "99 03 21 08")
    scene.session.undeclare(one)
    assert scene.sent(client) == raw("9e 21 08 03 02"), "who was told of it hears of its end"


def test_who_asks_again_is_told_the_same_under_the_same_id() -> None:
    scene = peer()
    one = scene.session.declare_subscriber("k/1")
    client = scene.client()
    for id in ("02", "03"):
        scene.hear(client, f'f9 {id} 32 00 03 "k/*" 21 08')
        assert scene.sent(client) == raw(f'be {id} 21 08 62 01 00 03 "k/1" be {id} 21 08 1a')
        scene.hear(client, f"99 {id} 21 08")
        assert scene.sent(client) == b""
    scene.session.undeclare(one)
    assert scene.sent(client) == raw("9e 21 08 03 01")
    scene.session.declare_subscriber("k/1")
    assert scene.sent(client) == b"", "nobody asks any more"


def test_what_stands_for_others_ends_with_the_interest() -> None:
    scene = peer()
    scene.session.declare_subscriber("k/1")
    client = scene.client()
    scene.hear(client, 'f9 02 b2 00 03 "k/*" 21 08')
    assert scene.sent(client) == raw('be 02 21 08 62 01 00 03 "k/*" be 02 21 08 1a')
    scene.hear(client, "99 02 21 08")
    assert scene.sent(client) == raw("9e 21 08 03 01")


def test_future_alone_gets_no_current_ones() -> None:
    scene = peer()
    scene.session.declare_subscriber("k/1")
    client = scene.client()
    scene.hear(client, "d9 02 02 21 08")
    assert scene.sent(client) == b""
    scene.session.declare_subscriber("k/2")
    assert scene.sent(client) == raw('9e 21 08 62 01 00 03 "k/2"')


@pytest.mark.parametrize("options", ["01", "02", "04", "0a", "0c"])
def test_current_is_answered_for_tokens_only(options: str) -> None:
    scene = peer()
    client = scene.client()
    scene.hear(client, f"b9 02 {options} 21 08")
    assert scene.sent(client) == b""
    assert scene.tables.counters.ignored_interest == 1


def test_aliases_are_declared_if_asked_for_and_the_prefix_matches() -> None:
    scene = peer()
    client = scene.client()
    scene.hear(client, 'f9 02 33 00 08 "demo/b/1" 21 08')
    scene.forget()
    scene.session.declare_subscriber("demo/b/*")
    assert scene.sent(client) == raw('9e 21 08 62 01 00 08 "demo/b/*"')
    scene.hear(client, 'f9 03 33 00 04 "live" 21 08')
    scene.forget()
    scene.session.declare_subscriber("live/**")
    assert scene.sent(client) == raw('9e 21 08 20 01 00 04 "live" 9e 21 08 62 02 01 03 "/**"')


def test_own_subscribers_and_queryables_are_not_told_back() -> None:
    scene = peer()
    client = scene.client()
    scene.hear(client, '9e 21 08 62 01 00 01 "k" 9e 21 08 64 02 00 01 "k"')
    scene.hear(client, "f9 03 06 21 08")
    assert scene.sent(client) == raw("be 03 21 08 1a")


def test_queryables_are_merged_and_updated_under_one_id() -> None:
    scene = peer()
    client = scene.client()
    scene.session.declare_queryable("q")
    scene.hear(client, "f9 01 04 21 08")
    assert scene.sent(client) == raw('be 01 21 08 64 01 00 01 "q" be 01 21 08 1a')
    whole = scene.session.declare_queryable("q", complete=True)
    assert scene.sent(client) == raw('9e 21 08 e4 01 00 01 "q" 21 01')
    scene.session.undeclare(whole)
    assert scene.sent(client) == raw('9e 21 08 64 01 00 01 "q"')


def test_aggregate_tells_one_declaration_on_its_own_key() -> None:
    scene = peer()
    client = scene.client()
    one = scene.session.declare_queryable("q/1", complete=True)
    scene.hear(client, 'f9 01 b4 00 03 "q/*" 21 08')
    assert scene.sent(client) == raw('be 01 21 08 64 01 00 03 "q/*" be 01 21 08 1a')
    wide = scene.session.declare_queryable("q/**", complete=True)
    assert scene.sent(client) == raw('9e 21 08 e4 01 00 03 "q/*" 21 01')
    scene.session.undeclare(wide)
    assert scene.sent(client) == raw('9e 21 08 64 01 00 03 "q/*"')
    scene.session.undeclare(one)
    assert scene.sent(client) == raw("9e 21 08 85 01 5f 02 00 00")


def test_an_id_used_again_replaces_the_interest() -> None:
    scene = peer()
    client = scene.client()
    scene.hear(client, 'f9 01 32 00 01 "a" 21 08 f9 01 32 00 01 "b" 21 08')
    scene.forget()
    scene.session.declare_subscriber("a")
    assert scene.sent(client) == b""
    scene.session.declare_subscriber("b")
    assert scene.sent(client) == raw('9e 21 08 62 01 00 01 "b"')


def test_a_refused_interest_gets_its_final() -> None:
    scene = peer()
    client = scene.client()
    scene.hear(client, 'f9 01 52 09 21 08 f9 02 32 00 03 "a//" 21 08 d9 03 52 09 21 08')
    assert scene.sent(client) == raw("be 01 21 08 1a be 02 21 08 1a")
    assert scene.tables.counters.unknown_scope == 2
    assert scene.tables.counters.bad_key == 1


def test_a_peer_that_asks_is_answered() -> None:
    scene = peer()
    scene.session.declare_token("t")
    other = scene.peer()
    scene.forget()
    scene.hear(other, "b9 05 08 21 08 b9 06 01 21 08")
    assert scene.sent(other) == raw("be 05 21 08 46 00 01 be 05 21 08 1a")


def test_key_set_counts() -> None:
    keys = KeySet()
    keys.add("a/*")
    keys.add("a/*")
    keys.remove("a/*")
    assert keys.touches("a/b")
    keys.remove("a/*")
    assert not keys.touches("a/b")
    keys.add(None)
    assert keys.touches("@x")
    keys.remove(None)
    assert not keys.touches("@x")


def test_the_time_for_answers_can_be_set() -> None:
    scene = Scene(CLIENT, options=RoutingOptions(interest_timeout=0.5))
    router = scene.router()
    scene.session.declare_publisher("a", scene.now)
    scene.wait(0.4)
    scene.forget()
    scene.session.push("a", put())
    assert scene.sent(router)
    scene.wait(0.2)
    scene.session.push("a", put())
    assert scene.quiet()
