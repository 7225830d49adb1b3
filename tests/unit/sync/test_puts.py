"""Many puts that differ in their value alone: they go into the loop together, in their order."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

import zenwire as zenoh
from tests.unit.sync.places import TIMEOUT, config, joined, until

BLOCK = zenoh.CongestionControl.BLOCK


@contextmanager
def pair() -> Iterator[tuple[zenoh.Session, zenoh.Session]]:
    there, here = joined()
    with there, here:
        yield here, there


def matched(session: zenoh.Session, key: str, **how: Any) -> zenoh.Publisher:
    publisher = session.declare_publisher(key, **how)
    until(lambda: publisher.matching_status.matching)
    return publisher


def test_the_order_is_that_of_the_calls() -> None:
    got: list[tuple[str, bytes]] = []

    def take(sample: zenoh.Sample) -> None:
        kind = "" if sample.kind is zenoh.SampleKind.PUT else "-"
        got.append((f"{kind}{sample.key_expr}", sample.payload.to_bytes()))

    wanted: list[tuple[str, bytes]] = []
    with pair() as (here, there):
        subscriber = there.declare_subscriber("k/*", take)
        one = matched(here, "k/1", congestion_control=BLOCK)
        two = matched(here, "k/2", congestion_control=BLOCK)
        for n in range(4000):
            value = b"%d" % n * (1 + n % 3) + (bytes(70_000) if n % 900 == 7 else b"")
            one.put(value)
            wanted.append(("k/1", value))
            if n % 100 < 30:
                two.put(value)
                here.put("k/3", value, congestion_control=BLOCK)
                here.put("k/4", value, congestion_control=BLOCK)
                wanted += [("k/2", value), ("k/3", value), ("k/4", value)]
            if n % 300 == 0:
                one.delete()
                here.put("k/4", value, congestion_control=BLOCK, attachment=b"x")
                wanted += [("-k/1", b""), ("k/4", value)]
        until(lambda: len(got) >= len(wanted))
        assert got == wanted
        subscriber.undeclare()


def test_what_was_put_is_sent_before_the_end() -> None:
    got: list[bytes] = []
    with pair() as (here, there):
        subscriber = there.declare_subscriber("k", lambda s: got.append(s.payload.to_bytes()))
        publisher = matched(here, "k", congestion_control=BLOCK)
        for n in range(5000):
            publisher.put(b"%d" % n)
        publisher.undeclare()
        with pytest.raises(zenoh.ZError):
            publisher.put(b"late")
        for n in range(5000, 5010):
            here.put("k", b"%d" % n, congestion_control=BLOCK)
        here.close()
        with pytest.raises(zenoh.ZError):
            here.put("k", b"late", congestion_control=BLOCK)
        until(lambda: len(got) == 5010)
        assert got == [b"%d" % n for n in range(5010)]
        subscriber.undeclare()


def test_every_thread_has_its_order() -> None:
    got: list[tuple[int, int]] = []

    def take(sample: zenoh.Sample) -> None:
        who, n = sample.payload.to_bytes().split()
        got.append((int(who), int(n)))

    with pair() as (here, there):
        subscriber = there.declare_subscriber("k", take)
        shared = matched(here, "k", congestion_control=BLOCK)

        def puts(who: int) -> None:
            own = here.declare_publisher("k", congestion_control=BLOCK)
            for n in range(3000):
                value = b"%d %d" % (who, n)
                if n % 3 == 0:
                    own.put(value)
                elif n % 3 == 1:
                    shared.put(value)
                else:
                    here.put("k", value, congestion_control=BLOCK)

        threads = [threading.Thread(target=puts, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        until(lambda: len(got) == 12_000)
        for who in range(4):
            assert [n for w, n in got if w == who] == list(range(3000))
        subscriber.undeclare()


def test_wrong_arguments_raise_where_they_are_given() -> None:
    with zenoh.open(config()) as session:
        publisher = session.declare_publisher("k")
        bad: Any
        for bad in (None, 3.5j, object()):
            with pytest.raises(TypeError):
                publisher.put(bad)
        for _ in range(3):
            with pytest.raises(zenoh.ZError):
                session.put("not//canonical", b"x")
            bad = "high"
            with pytest.raises(TypeError):
                session.put("k", b"x", priority=bad)
            session.put("k", b"x")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_told() -> None:
    with pair() as (here, there):
        subscriber = there.declare_subscriber("k", lambda _: None)
        publisher = matched(here, "k")
        for _ in range(10):
            publisher.put(b"x")
            here.put("k", b"x")
        child = os.fork()
        if not child:
            told = 0
            for put in (partial(publisher.put, b"x"), partial(here.put, "k", b"x")):
                try:
                    put()
                except zenoh.ZError:
                    told += 1
            os._exit(told)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 2
        subscriber.undeclare()


def test_tables() -> None:
    pa = pytest.importorskip("pyarrow")
    got: list[bytes] = []
    with pair() as (here, there):
        subscriber = there.declare_subscriber("k/*", lambda s: got.append(s.payload.to_bytes()))
        publisher = matched(here, "k/1", congestion_control=BLOCK)
        publisher.put(b"before")
        written = publisher.put_batch(pa.array([b"%d" % n for n in range(1000)]))
        assert (written.rows, written.sent, written.dropped) == (1000, 1000, 0)
        publisher.put(b"after")
        table = pa.table({"key": ["k/1", "k/2"], "payload": [b"one", b"two"]})
        assert here.put_batch(table, congestion_control=BLOCK).sent == 2
        wanted = [b"before", *(b"%d" % n for n in range(1000)), b"after", b"one", b"two"]
        until(lambda: len(got) == len(wanted))
        assert got == wanted
        with pytest.raises(zenoh.ZError, match="in row 1"):
            here.put_batch(pa.table({"key": ["k/1", "/"], "payload": [b"", b""]}))
        subscriber.undeclare()
