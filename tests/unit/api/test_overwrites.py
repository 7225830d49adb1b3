from __future__ import annotations

import logging
from typing import Any

import pytest

from zenwire.api.overwrites import Overwrites
from zenwire.node.config import Config
from zenwire.routing import Locality
from zenwire.wire.values import CongestionControl, Priority, QoS

ASKED = QoS.of(Priority.DATA_HIGH, CongestionControl.BLOCK)


def overwrites(*entries: tuple[list[str], dict[str, Any]]) -> Overwrites:
    publication = [{"key_exprs": keys, "config": config} for keys, config in entries]
    return Overwrites(
        Config.from_dict({"qos": {"publication": publication}}).settings.qos.publication
    )


def test_each_field_is_overwritten_alone() -> None:
    cases: list[tuple[dict[str, Any], tuple[QoS, bool, Locality]]] = [
        ({}, (ASKED, True, Locality.ANY)),
        (
            {"priority": "background"},
            (QoS.of(Priority.BACKGROUND, CongestionControl.BLOCK), True, Locality.ANY),
        ),
        ({"congestion_control": "drop"}, (QoS.of(Priority.DATA_HIGH), True, Locality.ANY)),
        (
            {"congestion_control": "block_first", "express": True},
            (QoS.of(Priority.DATA_HIGH, CongestionControl.BLOCK_FIRST, True), True, Locality.ANY),
        ),
        ({"reliability": "best_effort"}, (ASKED, False, Locality.ANY)),
        ({"allowed_destination": "remote"}, (ASKED, True, Locality.REMOTE)),
    ]
    for config, expected in cases:
        found = overwrites((["a/**"], config)).apply("a/b", ASKED, True, Locality.ANY)
        assert found == expected, config


def test_a_key_is_included_or_keeps_what_was_asked() -> None:
    rules = overwrites((["a/*", "b"], {"priority": "background"}))
    for key, changed in (("a/b", True), ("a/*", True), ("b", True), ("a/**", False), ("a", False)):
        assert (rules.apply(key, ASKED, True, Locality.ANY)[0] != ASKED) is changed, key


def test_of_several_the_last_holds_and_a_warning_names_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rules = overwrites((["a/**"], {"express": True}), (["a/*"], {"priority": "background"}))
    with caplog.at_level(logging.WARNING):
        found = [rules.apply("a/b", ASKED, True, Locality.ANY)[0] for _ in range(3)]
    assert {(qos.priority, qos.express) for qos in found} == {(Priority.BACKGROUND, False)}
    assert len(caplog.records) == 1
    assert "a/**, a/*" in caplog.text


def test_a_table_is_overwritten_row_by_row() -> None:
    pa = pytest.importorskip("pyarrow")
    publish = pytest.importorskip("zenwire.columns.publish")
    from zenwire.wire.encoding import Encoding  # after what may be absent

    rules = overwrites((["a"], {"priority": "background"}), (["b"], {"reliability": "best_effort"}))
    asked = [ASKED.raw, None, ASKED.raw, None]
    table = pa.table({"key": ["a", "a", "b", "c"], "payload": [b""] * 4, "qos": asked})
    how = publish.Stamped(QoS().raw, True, Encoding())
    found = publish.overwritten(table, how, rules.raw_qos, rules.reliable)
    background = [
        QoS.of(Priority.BACKGROUND, c).raw for c in (CongestionControl(1), CongestionControl(0))
    ]
    assert found.column("qos").to_pylist() == [*background, ASKED.raw, QoS().raw]
    assert found.column("reliable").to_pylist() == [True, True, False, True]
    assert found.column("key").to_pylist() == ["a", "a", "b", "c"]
    empty = table.slice(0, 0)
    assert publish.overwritten(empty, how, rules.raw_qos, rules.reliable) is empty
