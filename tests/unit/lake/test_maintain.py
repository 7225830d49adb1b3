"""Maintenance of a lake, and its command."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.lake.test_ingest import check, fill, ingest_all, opened, table
from zenwire.cli.main import main
from zenwire.lake import maintain
from zenwire.lake.lake import Lake

DAY = 24 * 3600 * 10**9


def told(_text: str) -> None:
    pass


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two days of one spool, in many files."""
    fill(tmp_path / "a", 0, 300)
    fill(tmp_path / "a", 300, 200, step=DAY // 400)
    ingest_all(opened(tmp_path / "lake", tmp_path / "a"), 50)
    return tmp_path / "lake"


def test_rebuilt_tables_equal_those_of_ingest(lake: Path) -> None:
    before = {name: table(lake, name) for name in ("latest", "key_stats")}
    maintain.rebuild(Lake(lake), told)
    for name, rows in before.items():
        keys = ("key", "window_start") if name == "key_stats" else ("key", "key")
        again = table(lake, name)
        order = [sorted(its, key=lambda r: (r[keys[0]], r[keys[1]])) for its in (rows, again)]
        assert order[0] == order[1]
    # And ingest goes on from there.
    fill(lake.parent / "a", 500, 100)
    ingest_all(opened(lake, lake.parent / "a"))
    check(lake, lake.parent / "a")


def test_expire_removes_old_days_and_keeps_latest(lake: Path) -> None:
    keys = len(table(lake, "latest"))
    now = datetime(2026, 3, 3, tzinfo=UTC)
    gone = maintain.expire(Lake(lake), timedelta(days=1), told, now)
    assert gone > 0
    rows = table(lake, "samples")
    assert len(rows) == 500 - gone
    assert {row["day"] for row in rows} == {"2026-03-02"}
    assert len(table(lake, "latest")) == keys
    # Expired rows are not taken from the spool again.
    ingest_all(opened(lake, lake.parent / "a"))
    assert len(table(lake, "samples")) == len(rows)


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_vacuum_deletes_what_no_recent_snapshot_refers_to(tmp_path: Path, format: str) -> None:
    path, lake = tmp_path / "a", tmp_path / "lake"
    fill(path, 0, 300)
    ingest_all(opened(lake, path, format=format), 100)
    (lake / "samples" / "day=2026-03-01" / "left.parquet").write_bytes(b"left by a killed task")
    opened_lake = Lake(lake, format)
    assert maintain.vacuum(opened_lake, timedelta(days=1), told) == 0
    deleted = maintain.vacuum(opened_lake, timedelta(seconds=-1), told)
    assert deleted >= 1
    assert not (lake / "samples" / "day=2026-03-01" / "left.parquet").exists()
    check(lake, path)
    assert maintain.check(opened_lake, told).problems == []


def test_check_finds_damage(lake: Path) -> None:
    opened_lake = Lake(lake)
    assert maintain.check(opened_lake, told).problems == []
    first, second = opened_lake["samples"].files()[:2]
    (lake / "samples" / first.path).unlink()
    (lake / "samples" / second.path).write_bytes(b"PAR1")
    problems = maintain.check(opened_lake, told).problems
    assert len(problems) == 2
    assert all(any(file.path in said for said in problems) for file in (first, second))


def test_the_command(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lake", "info", str(lake)]) == 0
    assert "samples from 2026-03-01T11:59:50" in capsys.readouterr().out
    assert main(["lake", "compact", str(lake), "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["files_saved"] > 0
    assert main(["lake", "check", str(lake)]) == 0
    assert "no problems" in capsys.readouterr().out
    assert main(["lake", "expire", str(lake)]) == 2
    assert "--keep is required" in capsys.readouterr().err
    assert main(["lake", "info", str(lake.parent / "none")]) == 1
    assert "is no lake" in capsys.readouterr().err
