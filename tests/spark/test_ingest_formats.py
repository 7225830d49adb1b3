"""``zenwire ingest`` into Delta and Iceberg tables: rows once, one version for each micro-batch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.spark.test_ingest import DAY, fill, ingest

pytestmark = pytest.mark.long


def delta(lake: Path, table: str) -> pa.Table:
    deltalake = pytest.importorskip("deltalake")
    return deltalake.DeltaTable(str(lake / table)).to_pyarrow_table()


def iceberg(lake: Path, table: str) -> pa.Table:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalogue = sql.SqlCatalog("zenwire", uri=f"sqlite:///{lake / 'catalog.db'}")
    try:
        return catalogue.load_table(("zenwire", table)).scan().to_arrow()
    finally:
        catalogue.engine.dispose()


@pytest.mark.parametrize("read", [delta, iceberg])
def test_rows_are_there_once(spark: SparkSession, tmp_path: Path, read) -> None:  # type: ignore[no-untyped-def] # one of the two above
    path, lake = tmp_path / "s", tmp_path / "lake"
    fill(path, 0, 400, step=500_000_000)
    how = {"format": read.__name__, "records": 200}
    ingest(spark, lake, path, **how)
    # The next day: what was written before is put together.
    fill(path, 400, 20, step=DAY // 400)
    status = ingest(spark, lake, path, **how)
    assert status.rows == 420
    rows = read(lake, "samples")
    assert sorted(rows["offset"].to_pylist()) == list(range(420))
    assert rows["value"].to_pylist().count(None) < 420
    merged = {file.parent.name for file in (lake / "samples").rglob("*-b*.parquet")}
    assert merged == {f"prefix=fleet%2Fa{i}" for i in range(7)}
    assert len(read(lake, "latest")) == len(set(rows["key"].to_pylist()))
    assert sum(read(lake, "key_stats")["messages"].to_pylist()) == 420
