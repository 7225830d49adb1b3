"""Whatever ends a commit, the next one completes it, or nothing of it is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zenwire.spark.ingest.journal import Journal, Plan, State


class EndedError(Exception):
    """As if the process had been killed there."""


class Doer:
    """Does plans, until it is ended before the given one."""

    def __init__(self, out: Path, ends: int | None = None) -> None:
        self.out = out
        self.left = ends

    def __call__(self, plan: Plan) -> None:
        if self.left == 0:
            raise EndedError
        if self.left is not None:
            self.left -= 1
        source = Path(plan["from"])
        if source.exists():
            source.replace(self.out / plan["to"])


def stage(journal: Journal) -> list[Plan]:
    staging = journal.begin()
    plans = []
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        (staging / name).write_text(name)
        plans.append({"from": str(staging / name), "to": name})
    return plans


@pytest.mark.parametrize("ends", [0, 1, 2, 3, None])
def test_a_commit_that_is_ended_is_completed(tmp_path: Path, ends: int | None) -> None:
    journal = Journal(tmp_path / "home", Doer(tmp_path, ends))
    plans = stage(journal)
    try:
        journal.commit(plans, State(batch=7, rows=3))
    except EndedError:
        assert journal.state() == State()
    again = Journal(tmp_path / "home", Doer(tmp_path))
    assert again.recover() == (ends in (0, 1, 2))
    assert sorted(p.name for p in tmp_path.glob("*.parquet")) == [
        "a.parquet",
        "b.parquet",
        "c.parquet",
    ]
    assert again.state() == State(batch=7, rows=3)
    assert not again.staging.exists()
    assert not again.recover()


def test_what_was_not_committed_leaves_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "home", Doer(tmp_path))
    stage(journal)
    # A journal that was not written to its end has not got its name yet.
    (tmp_path / "home" / "journal.new").write_text('{"plans": [')
    again = Journal(tmp_path / "home", Doer(tmp_path))
    assert not again.recover()
    assert not list(tmp_path.glob("*.parquet"))
    assert not again.staging.exists()
    assert again.state() == State()


def test_state_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps({"batch": 4, "later": True}))
    assert Journal(tmp_path, Doer(tmp_path)).state() == State(batch=4)
