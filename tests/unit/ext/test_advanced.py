"""Advanced publishers and subscribers without a loop."""

from __future__ import annotations

import gc
import threading

import pytest

import zenwire
from tests.unit.sync.places import TIMEOUT, config, joined, until
from zenwire import aio, ext

NUMBERED = ext.MissDetectionConfig()


def words(subscriber: ext.AdvancedSubscriber, count: int) -> list[str]:
    return [subscriber.recv().payload.to_string() for _ in range(count)]


def test_history_and_what_follows() -> None:
    one, other = joined()
    with one, other:
        publisher = ext.declare_advanced_publisher(
            one,
            "a/b",
            encoding="text/plain",
            priority=zenwire.Priority.DATA_HIGH,
            cache=ext.CacheConfig(2),
            sample_miss_detection=NUMBERED,
            publisher_detection=True,
        )
        for text in "123":
            publisher.put(text, attachment="more")
        how = {"accept_replies": zenwire.ReplyKeyExpr.ANY, "target": zenwire.QueryTarget.ALL}
        until(lambda: list(other.get("a/b/@adv/**", **how)))  # type: ignore[call-overload]
        with ext.declare_advanced_subscriber(
            other, "a/*", history=ext.HistoryConfig(), recovery=ext.RecoveryConfig(heartbeat=True)
        ) as subscriber:
            first = subscriber.recv()
            assert first.payload == "2"
            assert first.encoding == "text/plain"
            assert first.attachment == "more"
            assert first.source_info == zenwire.SourceInfo(publisher.id, 1)
            assert words(subscriber, 1) == ["3"]
            until(lambda: publisher.matching_status.matching)
            publisher.delete()
            assert subscriber.recv().kind is zenwire.SampleKind.DELETE
            assert subscriber.try_recv() is None
            assert (subscriber.missed, subscriber.duplicates, subscriber.dropped) == (0, 0, 0)
            detected = subscriber.detect_publishers(history=True)
            assert str(publisher.id.zid) in str(detected.recv().key_expr)
        assert publisher.key_expr == "a/b"
        assert publisher.encoding == "text/plain"
        assert publisher.priority is zenwire.Priority.DATA_HIGH
        assert publisher.congestion_control is zenwire.CongestionControl.DROP
        assert "a/b" in repr(publisher)


def test_callbacks_have_threads_and_may_use_the_session() -> None:
    with zenwire.open(config()) as session:
        publisher = ext.declare_advanced_publisher(session, "a", sample_miss_detection=NUMBERED)
        echo = session.declare_subscriber("echo")
        threads: set[str] = set()

        def take(sample: zenwire.Sample) -> None:
            threads.add(threading.current_thread().name)
            session.put("echo", sample.payload)

        subscriber = ext.declare_advanced_subscriber(session, "a", take)
        misses: list[ext.Miss] = []
        subscriber.sample_miss_listener(misses.append)
        publisher.put("x")
        assert echo.recv().payload == "x"
        assert threads == {"zenwire-callback"}
        assert subscriber.handler is None
        with pytest.raises(zenwire.ZError, match=r"advanced subscriber\.recv"):
            subscriber.recv()
        assert misses == []


def test_what_is_let_go_is_undeclared_unless_it_has_a_callback() -> None:
    with zenwire.open(config()) as session:
        publisher = ext.declare_advanced_publisher(session, "a", sample_miss_detection=NUMBERED)
        subscriber = ext.declare_advanced_subscriber(session, "a")
        assert publisher.matching_status.matching
        del subscriber
        gc.collect()
        until(lambda: not publisher.matching_status.matching)
        heard = threading.Event()
        ext.declare_advanced_subscriber(session, "a", lambda _sample: heard.set())
        gc.collect()
        publisher.put("x")
        assert heard.wait(TIMEOUT)


def test_after_the_end() -> None:
    session = zenwire.open(config())
    publisher = ext.declare_advanced_publisher(session, "a", sample_miss_detection=NUMBERED)
    subscriber = ext.declare_advanced_subscriber(session, "a")
    listener = subscriber.sample_miss_listener()
    handler = subscriber.handler
    assert isinstance(handler, zenwire.Handler)
    subscriber.undeclare()
    subscriber.undeclare()
    for reads in (handler.recv, listener.recv):
        with pytest.raises(zenwire.ChannelClosed):
            reads()
    publisher.undeclare()
    with pytest.raises(zenwire.Undeclared):
        publisher.put("x")
    session.close()
    with pytest.raises(zenwire.SessionClosed):
        ext.declare_advanced_publisher(session, "a")


def test_each_is_for_its_own_sessions() -> None:
    with zenwire.open(config()) as session:
        with pytest.raises(TypeError, match=r"there is zenwire\.aio\.ext"):
            ext.declare_advanced_subscriber(session.access.inner, "a")  # type: ignore[call-overload]
        with pytest.raises(TypeError, match=r"aio\.Session, not zenwire\.sync"):
            session.loop.run(lambda: aio.ext.declare_advanced_subscriber(session, "a"))  # type: ignore[call-overload]
        with pytest.raises(zenwire.ZError, match="neither numbers nor times"):
            ext.declare_advanced_publisher(session, "a", cache=ext.CacheConfig(1))


def test_both_have_the_same_names() -> None:
    assert set(ext.__all__) == set(aio.ext.__all__)
    assert ext.Miss is aio.ext.Miss
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        aio.nothing  # noqa: B018 # asking is the test
