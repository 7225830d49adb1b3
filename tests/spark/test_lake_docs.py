"""docs/lake.md: its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_ingest import ingest
from tests.unit.lake.test_ingest import fill

PAGE = (Path(__file__).parents[2] / "docs" / "lake.md").read_text()


def test_the_examples_run(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(tmp_path / "robots", 0, 100)
    ingest(spark, tmp_path / "lake", tmp_path / "robots")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        exec(compile(example, "docs/lake.md", "exec"), {})
    assert "fleet/a0" in capsys.readouterr().out
