"""What programs say; names and parameters are those of eclipse-zenoh."""

from __future__ import annotations

import inspect
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import zenoh.ext

from zenwire.aio import ext
from zenwire.api.ext.keys import (
    all_of,
    parse_instance,
    publisher_key,
    publishers_of,
    source_of,
    subscriber_key,
)
from zenwire.api.values import EntityGlobalId, ZenohId
from zenwire.keyexpr import KeyExpr

CAPTURE = Path(__file__).parents[3] / "captures" / "advanced.pcap"


@pytest.mark.interop
def test_the_names_are_those_of_the_reference() -> None:
    theirs = {name for name in dir(zenoh.ext) if not name.startswith("_")}
    assert theirs == set(ext.__all__)


@pytest.mark.interop
@pytest.mark.parametrize("name", ["declare_advanced_publisher", "declare_advanced_subscriber"])
def test_the_parameters_are_those_of_the_reference(name: str) -> None:
    ours = inspect.signature(getattr(ext, name)).parameters
    theirs = inspect.signature(getattr(zenoh.ext, name)).parameters
    assert list(ours) == list(theirs)
    assert [p.kind for p in ours.values()] == [p.kind for p in theirs.values()]


@pytest.mark.parametrize("kind", ["AdvancedPublisher", "AdvancedSubscriber", "SampleMissListener"])
def test_the_methods_are_there(kind: str) -> None:
    theirs = {name for name in dir(getattr(zenoh.ext, kind)) if not name.startswith("_")}
    assert theirs <= set(dir(getattr(ext, kind)))


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (ext.RecoveryConfig, {}),
        (ext.RecoveryConfig, {"heartbeat": True, "periodic_queries": 1}),
        (ext.RecoveryConfig, {"heartbeat": False}),
        (ext.RecoveryConfig, {"periodic_queries": 0}),
        (ext.RecoveryConfig, {"periodic_queries": timedelta(0)}),
        (ext.MissDetectionConfig, {"heartbeat": 0}),
        (ext.MissDetectionConfig, {"heartbeat": -1}),
        (ext.MissDetectionConfig, {"sporadic_heartbeat": float("nan")}),
        (ext.MissDetectionConfig, {"heartbeat": 1, "sporadic_heartbeat": 1}),
        (ext.HistoryConfig, {"max_samples": 0}),
        (ext.HistoryConfig, {"max_age": 0}),
        (ext.HistoryConfig, {"max_age": -1}),
        (ext.CacheConfig, {"max_samples": 0}),
    ],
)
def test_what_makes_no_sense(kind: Any, how: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"above zero|one of"):
        kind(**how)


def test_periods() -> None:
    assert ext.RecoveryConfig(periodic_queries=timedelta(seconds=2)).period == 2
    assert ext.RecoveryConfig(periodic_queries=0.5).period == 0.5
    assert ext.RecoveryConfig(heartbeat=True).period is None
    assert ext.MissDetectionConfig().period is None
    assert ext.MissDetectionConfig(sporadic_heartbeat=3).period == 3


def test_keys_are_those_of_the_recorded_ones() -> None:
    recorded = CAPTURE.read_bytes()
    for kind, make in (
        (b"/@adv/pub/", lambda key, id: publisher_key(key, id, numbered=True)),
        (b"/@adv/sub/", subscriber_key),
    ):
        at = recorded.index(kind)
        key = "k" + recorded[at : recorded.index(b"/_", at) + 2].decode()
        instance = parse_instance(key)
        assert instance is not None
        assert instance.eid is not None
        assert str(make(KeyExpr("k"), EntityGlobalId(instance.zid, instance.eid))) == key
    for key_expr in (all_of(KeyExpr("adv/**")), publishers_of(KeyExpr("adv/**"))):
        assert str(key_expr).removeprefix("adv").encode() in recorded


def test_keys() -> None:
    id = EntityGlobalId(ZenohId(b"\xcd\xab"), 12)
    key = KeyExpr("a/**")
    assert str(publisher_key(key, id, numbered=False)) == "a/**/@adv/pub/abcd/uhlc/_"
    assert str(subscriber_key(key, id)) == "a/**/@adv/sub/abcd/12/_"
    assert str(source_of(key, id)) == "a/**/@adv/*/abcd/12/**"
    timed = parse_instance("a/b/@adv/pub/abcd/uhlc/x/y")
    assert timed is not None
    assert (timed.zid, timed.eid) == (id.zid, None)
