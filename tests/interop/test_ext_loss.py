"""Advanced publishers and subscribers over a link that drops, with either import and mixed.

The publisher dials the subscriber through `lossy`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import zenoh as reference
import zenoh.ext

import zenwire
import zenwire.ext
from tests.interop.exchange import PATIENT, node_settings
from tests.interop.lossy import Lossy, by_chance, lossy, these
from tests.unit.sync.places import until

pytestmark = pytest.mark.interop

PAIRS = [
    # What the reference does with itself says what to expect, and needs no looking every time.
    pytest.param(reference, reference, id="zenoh-zenoh", marks=pytest.mark.long),
    pytest.param(zenwire, zenwire, id="zenwire-zenwire"),
    pytest.param(zenwire, reference, id="zenwire-zenoh"),
    pytest.param(reference, zenwire, id="zenoh-zenwire"),
]
pairs = pytest.mark.parametrize(("sends", "takes"), PAIRS)
links = pytest.mark.parametrize("kind", ["tcp", "udp"])


def opened(zenoh: Any, **settings: Any) -> Any:
    return zenoh.open(zenoh.Config.from_json5(json.dumps(node_settings("peer", **settings))))


class Taken:
    """What a subscriber got, and what it missed."""

    def __init__(self, zenoh: Any, session: Any, **how: Any) -> None:
        self.words: list[str] = []
        self.misses: list[Any] = []
        self.subscriber = zenoh.ext.declare_advanced_subscriber(
            session, "k/*", lambda sample: self.words.append(sample.payload.to_string()), **how
        )
        self.listener = self.subscriber.sample_miss_listener(self.misses.append)

    def wait(self, *words: str) -> None:
        """Exactly these, in this order."""
        until(lambda: len(self.words) >= len(words))
        assert self.words == list(words)


@contextmanager
def publishing(
    zenoh: Any, link: Lossy, cache: int = 100, period: float | None = None, **settings: Any
) -> Iterator[Any]:
    """A publisher in a session of its own, which somebody listens to."""
    with opened(zenoh, connect=link.dial, **PATIENT | settings) as session:
        yield advanced(zenoh, session, cache, period)


def advanced(zenoh: Any, session: Any, cache: int = 100, period: float | None = None) -> Any:
    publisher = zenoh.ext.declare_advanced_publisher(
        session,
        "k/1",
        congestion_control=zenoh.CongestionControl.BLOCK,
        cache=zenoh.ext.CacheConfig(cache),
        sample_miss_detection=zenoh.ext.MissDetectionConfig(heartbeat=period),
        publisher_detection=True,
    )
    # The advanced ones of the reference do not tell.
    plain = session.declare_publisher("k/1")
    until(lambda: plain.matching_status.matching)
    plain.undeclare()
    return publisher


def reached(zenoh: Any, session: Any, key: str) -> bool:
    """Whether somebody answers on that key."""
    how = {"accept_replies": zenoh.ReplyKeyExpr.ANY, "target": zenoh.QueryTarget.ALL}
    return bool(list(session.get(key, **how)))


def numbers(first: int, last: int) -> list[str]:
    return [str(n) for n in range(first, last + 1)]


@pairs
def test_history_for_a_late_joiner(sends: Any, takes: Any) -> None:
    """Of what nobody heard, as much as the cache has; then what comes, once."""
    with (
        lossy("udp") as link,
        opened(takes, listen=link.where, **PATIENT) as session,
        opened(sends, connect=link.dial, **PATIENT) as other,
    ):
        publisher = sends.ext.declare_advanced_publisher(
            other,
            "k/1",
            cache=sends.ext.CacheConfig(3),
            sample_miss_detection=sends.ext.MissDetectionConfig(),
            publisher_detection=True,
        )
        for n in range(5):
            publisher.put(str(n))
        until(lambda: reached(takes, session, "k/1/@adv/**"))
        taken = Taken(takes, session, history=takes.ext.HistoryConfig())
        taken.wait("2", "3", "4")
        publisher.put("5")
        taken.wait("2", "3", "4", "5")
        assert taken.misses == []


@links
@pairs
def test_what_is_lost_is_recovered_by_heartbeat(sends: Any, takes: Any, kind: str) -> None:
    """A later sample shows what is missing; that the last one is, a heartbeat does."""
    with lossy(kind) as link, opened(takes, listen=link.where, **PATIENT) as session:
        taken = Taken(takes, session, recovery=takes.ext.RecoveryConfig(heartbeat=True))
        with publishing(sends, link, period=0.05) as publisher:
            link.loses = these(3, 4, 8, 11)
            for n in range(12):
                publisher.put(str(n))
            taken.wait(*numbers(0, 11))
            assert link.lost == [3, 4, 8, 11]
            assert taken.misses == []


@links
@pairs
def test_what_is_lost_is_recovered_by_queries(sends: Any, takes: Any, kind: str) -> None:
    with lossy(kind) as link, opened(takes, listen=link.where, **PATIENT) as session:
        every = timedelta(seconds=0.05)
        taken = Taken(takes, session, recovery=takes.ext.RecoveryConfig(periodic_queries=every))
        with publishing(sends, link) as publisher:
            link.loses = these(2, 3)
            for n in range(4):
                publisher.put(str(n))
            taken.wait(*numbers(0, 3))
            assert link.lost == [2, 3]
            assert taken.misses == []


@links
@pairs
@pytest.mark.parametrize("seed", [1, 2])
def test_a_third_is_lost_by_chance(sends: Any, takes: Any, kind: str, seed: int) -> None:
    count = 200
    with lossy(kind) as link, opened(takes, listen=link.where, **PATIENT) as session:
        taken = Taken(takes, session, recovery=takes.ext.RecoveryConfig(heartbeat=True))
        with publishing(sends, link, cache=count, period=0.05) as publisher:
            link.loses = by_chance(seed, 1 / 3)
            for n in range(count):
                publisher.put(str(n))
                if n % 20 == 0:
                    # So that a busy machine loses none besides: nobody asks twice for an answer.
                    time.sleep(0.01)
            taken.wait(*numbers(0, count - 1))
            assert len(link.lost) > count // 5
            assert taken.misses == []


@links
@pairs
def test_what_no_cache_has_is_missed_once(sends: Any, takes: Any, kind: str) -> None:
    with lossy(kind) as link, opened(takes, listen=link.where, **PATIENT) as session:
        taken = Taken(takes, session, recovery=takes.ext.RecoveryConfig(heartbeat=True))
        with publishing(sends, link, cache=2, period=0.05) as publisher:
            link.loses = these(*range(1, 7))
            for n in range(8):
                publisher.put(str(n))
            taken.wait("0", "6", "7")
            until(lambda: taken.misses)
            publisher.put("8")
            taken.wait("0", "6", "7", "8")
            assert [miss.nb for miss in taken.misses] == [5]
            assert str(taken.misses[0].source) == str(publisher.id)


@links
@pairs
def test_without_recovery_each_hole_is_missed_once(sends: Any, takes: Any, kind: str) -> None:
    with lossy(kind) as link, opened(takes, listen=link.where, **PATIENT) as session:
        taken = Taken(takes, session)
        with publishing(sends, link, period=0.05) as publisher:
            link.loses = these(1, 2, 5)
            for n in range(8):
                publisher.put(str(n))
            taken.wait("0", "3", "4", "6", "7")
            until(lambda: len(taken.misses) == 2)
            assert [miss.nb for miss in taken.misses] == [2, 1]


@links
@pairs
def test_a_publisher_restarts(sends: Any, takes: Any, kind: str) -> None:
    """Its session ends, and another one publishes on the same key: both are heard completely."""
    with lossy(kind) as link, opened(takes, listen=link.where, **PATIENT) as session:
        taken = Taken(
            takes,
            session,
            recovery=takes.ext.RecoveryConfig(heartbeat=True),
            history=takes.ext.HistoryConfig(detect_late_publishers=True),
        )
        for turn in ("a", "b"):
            with publishing(sends, link, period=0.05) as publisher:
                link.loses = these(1, 2, 5)
                for n in range(6):
                    publisher.put(f"{turn}{n}")
                wanted = [f"{one}{n}" for one in ("a", "b")[: 1 + (turn == "b")] for n in range(6)]
                taken.wait(*wanted)
            until(lambda: not session.info.peers_zid())
        assert link.lost == [1, 2, 5, 1, 2, 5]
        assert taken.misses == []


@links
@pytest.mark.parametrize("sends", [reference, zenwire], ids=["zenoh", "zenwire"])
@pytest.mark.parametrize("times", [False, True], ids=["token", "clock"])
def test_a_publisher_restarts_under_its_id(sends: Any, kind: str, times: bool) -> None:
    """Its numbers start anew, which its token or its clock shows. The reference hears no more."""
    same: dict[str, Any] = {"id": "abcdef", "timestamping": {"enabled": times}}
    with lossy(kind) as link, opened(zenwire, listen=link.where, **PATIENT) as session:
        taken = Taken(
            zenwire,
            session,
            recovery=zenwire.ext.RecoveryConfig(heartbeat=True),
            history=zenwire.ext.HistoryConfig(detect_late_publishers=True),
        )
        ids = set()
        for turn in ("a", "b"):
            with publishing(sends, link, period=0.05, **same) as publisher:
                ids.add(str(publisher.id))
                link.loses = these(1, 2, 5)
                for n in range(6):
                    publisher.put(f"{turn}{n}")
                wanted = [f"{one}{n}" for one in ("a", "b")[: 1 + (turn == "b")] for n in range(6)]
                taken.wait(*wanted)
            until(lambda: not session.info.peers_zid())
        assert len(ids) == 1
        assert taken.misses == []
        assert taken.subscriber.missed == 0


@pairs
def test_publishers_and_subscribers_are_detected(sends: Any, takes: Any) -> None:
    with lossy("tcp") as link, opened(takes, listen=link.where, **PATIENT) as session:
        subscriber = takes.ext.declare_advanced_subscriber(
            session, "k/*", subscriber_detection=True
        )
        detected = subscriber.detect_publishers(history=True)
        with publishing(sends, link) as publisher:
            token = detected.recv()
            assert str(token.kind) == "SampleKind.PUT"
            where = f"{publisher.id.zid}/{publisher.id.eid}"
            assert str(token.key_expr) == f"k/1/@adv/pub/{where}/_"
            publisher.undeclare()
            assert str(detected.recv().kind) == "SampleKind.DELETE"
