"""Exactly once from the spool on, and nothing missing silently, whoever is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.kills import Kills, check, check_spool, chosen

SEED = 7


@pytest.mark.long
def test_twenty_rounds(tmp_path: Path) -> None:
    """Recorder, driver, its Python alone, Python workers and executors."""
    kills = Kills(tmp_path, SEED)
    seen = check(kills.spool, kills.lake, kills.run(*chosen(20, SEED)))
    assert sum(kills.tally.values()) >= 20
    assert seen["lost"] > 0, "a cache of 50 samples cannot have had all"


def test_the_recorder_alone(tmp_path: Path) -> None:
    kills = Kills(tmp_path, SEED)
    seen = check_spool(kills.spool, kills.run_recorder(1))
    assert seen["rows"] > 0
