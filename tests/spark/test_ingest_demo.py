"""``make demo``, shortened: the whole way, from robots to answers and a page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_demo_twice(tmp_path: Path) -> None:
    """The second time, over what the first has left."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(DEMO), "--seconds", "4"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        said = done.stdout
        for robot in (1, 2, 3):
            assert f"fleet/robot{robot}/pose" in said
        alive = said.partition("Who was alive when?")[2].partition("What was lost?")[0]
        assert [line.split()[2] for line in alive.splitlines() if "robot3" in line] == [
            "came",
            "went",
            "came",
        ]
        assert max(map(len, said.splitlines())) < 200
        page = (tmp_path / "demo-lake" / "report.html").read_text()
        assert "fleet/robot3/pose" in page
        assert "is not in this directory" not in page


def test_demo_leaves_other_directories_alone(tmp_path: Path) -> None:
    (tmp_path / "demo-lake").mkdir()
    (tmp_path / "demo-lake" / "mine").write_text("mine")
    done = subprocess.run(
        [sys.executable, str(DEMO)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "demo-lake" / "mine").read_text() == "mine"
