"""Consolidation, with what eclipse-zenoh 1.10.2 does with the same replies as expected values."""

from __future__ import annotations

import pytest

from tests.unit.routing.scene import zid
from zenwire.routing import Counters, ReplyReceived
from zenwire.routing.consolidation import Consolidation, parameter_names, resolve
from zenwire.wire.data import Del, Put
from zenwire.wire.structs import Timestamp
from zenwire.wire.values import ConsolidationMode, QoS

AUTO, NONE, MONOTONIC, LATEST = ConsolidationMode


def deliver(mode: ConsolidationMode, replies: str) -> list[str]:
    """Replies on one key: ``n`` has no timestamp, digits are times. Delivered ones by position."""
    consolidation = Consolidation(mode, "k", None, Counters())
    delivered = []
    for at, age in enumerate(replies):
        stamp = None if age == "n" else Timestamp(time=int(age), id=zid("a"))
        body = Put(payload=f"{at}{age}".encode(), timestamp=stamp)
        delivered += consolidation.receive(ReplyReceived(1, "k", body, None, QoS()))
    delivered += consolidation.end()
    return [reply.body.payload.decode() for reply in delivered if isinstance(reply.body, Put)]


@pytest.mark.parametrize(
    ("replies", "monotonic", "latest"),
    [
        ("nn", ["0n", "1n"], ["1n"]),
        ("11", ["01", "11"], ["11"]),
        ("12", ["01", "12"], ["12"]),
        ("21", ["02"], ["02"]),
        ("n1", ["0n", "11"], ["11"]),
        ("1n", ["01"], ["01"]),
        ("2n1n2", ["02", "42"], ["42"]),
    ],
)
def test_modes(replies: str, monotonic: list[str], latest: list[str]) -> None:
    assert deliver(MONOTONIC, replies) == monotonic
    assert deliver(LATEST, replies) == latest
    assert len(deliver(NONE, replies)) == len(replies)


def test_deletions_take_part_and_ids_decide_between_equal_times() -> None:
    consolidation = Consolidation(LATEST, "*", None, Counters())
    for body in (
        Put(payload=b"", timestamp=Timestamp(time=1, id=zid("b"))),
        Del(timestamp=Timestamp(time=1, id=zid("c"))),
        Put(payload=b"", timestamp=Timestamp(time=1, id=zid("a"))),
    ):
        assert consolidation.receive(ReplyReceived(1, "k", body, None, QoS())) == []
    (reply,) = consolidation.end()
    assert isinstance(reply.body, Del)
    assert consolidation.end() == []


def test_auto() -> None:
    assert resolve(AUTO, "") is LATEST
    assert resolve(AUTO, "a=1;_time=[now(-1h)..]") is NONE
    assert resolve(AUTO, "x_time=1") is LATEST
    assert resolve(MONOTONIC, "_time=[..]") is MONOTONIC


def test_parameter_names() -> None:
    assert parameter_names("a=1;;b;c=d=e") == {"a", "b", "c"}
    assert parameter_names("") == set()
