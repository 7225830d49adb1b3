"""Matching status: whether there is anybody, and each change of it once."""

from __future__ import annotations

import pytest

from tests.unit.routing.scene import peer
from zenwire.routing import Locality, MatchingChanged
from zenwire.wire.values import QueryTarget


def test_changes_are_told_once() -> None:
    scene = peer()
    other = scene.peer()
    publisher = scene.session.declare_publisher("k/*", scene.now)
    scene.forget()
    scene.hear(
        other, '9e 21 08 62 01 00 03 "k/1" 9e 21 08 62 02 00 03 "k/2" 9e 21 08 62 03 00 01 "z"'
    )
    assert scene.events(MatchingChanged) == [MatchingChanged(publisher, True)]
    scene.hear(other, "9e 21 08 03 01")
    assert scene.quiet()
    scene.tables.remove_face(other)
    assert scene.events(MatchingChanged) == [MatchingChanged(publisher, False)]


@pytest.mark.parametrize(
    ("destination", "own", "other"),
    [
        (Locality.ANY, True, True),
        (Locality.SESSION_LOCAL, True, False),
        (Locality.REMOTE, False, True),
    ],
)
def test_locality(destination: Locality, own: bool, other: bool) -> None:
    scene = peer()
    publisher = scene.session.declare_publisher("k", scene.now, allowed_destination=destination)
    mine = scene.session.declare_subscriber("k")
    assert scene.session.matching(publisher) == own
    scene.session.undeclare(mine)
    assert not scene.session.matching(publisher)
    scene.tables.session().declare_subscriber("k")
    assert scene.session.matching(publisher) == other


def test_a_purely_local_subscriber_matches_its_own_session_only() -> None:
    scene = peer()
    publisher = scene.session.declare_publisher("k", scene.now)
    scene.tables.session().declare_subscriber("k", allowed_origin=Locality.SESSION_LOCAL)
    assert not scene.session.matching(publisher)
    scene.session.declare_subscriber("k", allowed_origin=Locality.SESSION_LOCAL)
    assert scene.events(MatchingChanged) == [MatchingChanged(publisher, True)]


def test_a_querier_for_complete_ones_needs_one_that_includes_its_key() -> None:
    scene = peer()
    other = scene.peer()
    querier = scene.session.declare_querier("q/*", scene.now, target=QueryTarget.ALL_COMPLETE)
    anyone = scene.session.declare_querier("q/*", scene.now)
    scene.forget()
    scene.hear(other, '9e 21 08 e4 01 00 03 "q/1" 21 01 9e 21 08 64 02 00 04 "q/**"')
    assert scene.events(MatchingChanged) == [MatchingChanged(anyone, True)]
    scene.hear(other, '9e 21 08 e4 02 00 04 "q/**" 21 01')
    assert scene.events(MatchingChanged) == [MatchingChanged(querier, True)]
    mine = scene.session.declare_queryable("q/**", complete=True)
    scene.tables.remove_face(other)
    assert scene.events(MatchingChanged) == []
    scene.session.undeclare(mine)
    assert len(scene.events(MatchingChanged)) == 2


def test_the_first_status_is_there_without_an_event() -> None:
    scene = peer()
    scene.session.declare_subscriber("k")
    publisher = scene.session.declare_publisher("k", scene.now)
    assert scene.session.matching(publisher)
    assert scene.quiet()
