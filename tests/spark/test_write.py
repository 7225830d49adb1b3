"""Tables on disk: replaced, added, completed after a failure, and the same as those made directly."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from tests.spark.conftest import CAPTURES
from zenwire.spark import tables, write
from zenwire.spark.write import FORMATS, TABLES, TableError, capture_id, write_tables
from zenwire.spark.write_layout import Layout, ParquetFormat

UDP, QUERIES, ROUTERS = (
    CAPTURES / f"{name}.pcap" for name in ("udp", "peer_query_reply", "three_routers")
)
SOME = ("samples", "queries", "latest")
Rows = list[tuple[Any, ...]]


def rows(frame: DataFrame, *columns: str) -> Rows:
    found = frame.select(*columns).toArrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def test_all_tables_are_those_that_are_made_directly(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "tables"
    seen: list[str] = []
    result = write_tables(spark, [UDP, QUERIES], out, progress=seen.append)
    assert seen == [*TABLES, "commit"]
    assert result.replaced == []
    found = {name: made.rows for name, made in result.tables.items()}
    assert found | {"samples": 80, "sessions": 2, "queries": 15, "replies": 51} == found
    assert found["messages"] == 320
    assert found["malformed"] == 0
    for name in TABLES:
        assert spark.read.parquet(str(out / name)).count() == found[name], name
    direct = tables.samples(spark.read.format("zenoh.capture").load([str(UDP), str(QUERIES)]))
    written = spark.read.parquet(str(out / "samples"))
    assert written.drop("capture_id").columns == direct.columns
    columns = ("capture", "flow", "side", "sequence", "offset", "key", "kind", "payload", "ntp64")
    assert rows(written, *columns) == rows(direct, *columns)
    assert dict(written.dtypes)["value"] == "variant"
    assert result.accounts["batches"] == 215_258 + 5_191
    assert not list(out.glob(".zenwire-staging"))


def test_again_replaces_and_others_are_added(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_tables(spark, [UDP, QUERIES], tmp_path, names=SOME)
    assert first.tables["samples"].rows == 80
    # The same file by another name, and a link to it, are the same capture.
    monkeypatch.chdir(CAPTURES)
    (tmp_path / "link").symlink_to(UDP)
    again = write_tables(spark, ["udp.pcap", tmp_path / "link"], tmp_path, names=SOME)
    assert again.captures == again.replaced == [str(UDP.resolve())]
    added = write_tables(spark, [ROUTERS], tmp_path, names=SOME)
    assert added.replaced == []
    samples = spark.read.parquet(str(tmp_path / "samples"))
    counts = {row.capture: row["count"] for row in samples.groupBy("capture").count().collect()}
    assert counts == {str(UDP.resolve()): 80, str(ROUTERS.resolve()): 320}
    assert spark.read.parquet(str(tmp_path / "queries")).count() == 15 + 7
    # Made of all that is there.
    columns = ("key", "kind", "capture", "sequence", "offset")
    written = spark.read.parquet(str(tmp_path / "latest"))
    assert rows(written, *columns) == rows(tables.latest(samples), *columns)
    assert written.count() == len({row.key for row in samples.select("key").distinct().collect()})


def test_tables_that_are_not_asked_for_are_not_there(spark: SparkSession, tmp_path: Path) -> None:
    result = write_tables(spark, [UDP], tmp_path, names=["latest"])
    assert set(result.tables) == {"samples", "latest"}
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"samples", "latest"}


def test_a_table_without_rows_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    write_tables(spark, [UDP], tmp_path, names=["queries"])
    empty = spark.read.parquet(str(tmp_path / "queries"))
    assert empty.count() == 0
    assert {"capture", "key", "outcome", "latency"} <= {*empty.columns}
    # The null partition, which earlier versions wrote for it, goes with the next run.
    null = tmp_path / "queries" / "capture_id=__HIVE_DEFAULT_PARTITION__"
    assert not null.exists()
    shutil.copytree(next((tmp_path / "queries").glob("capture_id=*")), null)
    # And keeps them when there are rows.
    write_tables(spark, [QUERIES], tmp_path, names=["queries"])
    assert spark.read.parquet(str(tmp_path / "queries")).count() == 15
    assert not null.exists()


def test_a_capture_whose_rows_are_gone_leaves_the_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    capture = tmp_path / "one.pcap"
    out = tmp_path / "out"
    for source, count in ((QUERIES, 15), (UDP, 0)):
        shutil.copy(source, capture)
        write_tables(spark, [capture], out, names=["queries"])
        written = spark.read.parquet(str(out / "queries"))
        assert written.count() == count
        assert {"capture", "key", "outcome", "latency", "capture_id"} <= {*written.columns}


def test_a_run_that_fails_leaves_everything_as_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tables(spark, [UDP], tmp_path, names=["samples", "losses"])
    before = _files(tmp_path)

    def broken(made: object) -> DataFrame:
        return spark.range(1).select(
            F.lit("x").alias("capture"), F.raise_error(F.lit("disk on fire")).alias("y")
        )

    monkeypatch.setitem(write._TABLES, "losses", broken)
    with pytest.raises(TableError, match="are as they were"):
        write_tables(spark, [UDP, QUERIES], tmp_path, names=["samples", "losses"])
    assert _files(tmp_path) == before


def test_a_run_that_is_ended_while_it_moves_is_completed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tables(spark, [UDP], tmp_path, names=["samples", "queries"])
    moves: list[dict[str, Any]] = []
    apply = ParquetFormat.apply

    def ended(self: ParquetFormat, plan: dict[str, Any]) -> None:
        moves.append(plan)
        if len(moves) == 2:
            raise KeyboardInterrupt
        apply(self, plan)

    monkeypatch.setattr(ParquetFormat, "apply", ended)
    with pytest.raises(KeyboardInterrupt):
        write_tables(spark, [UDP, QUERIES], tmp_path, names=["samples", "queries"])
    monkeypatch.undo()
    result = write_tables(spark, [ROUTERS], tmp_path, names=["samples", "queries"])
    assert result.completed
    assert spark.read.parquet(str(tmp_path / "queries")).count() == 15 + 7
    assert spark.read.parquet(str(tmp_path / "samples")).count() == 80 + 320


@pytest.mark.parametrize("point", range(6))
def test_moves_can_be_ended_anywhere(tmp_path: Path, point: int) -> None:
    """Without Spark: the moves of two partitions, one of which is new, one replaced, one gone."""
    layout = Layout(tmp_path, ParquetFormat(tmp_path))
    for name, text in (("replaced", "old"), ("gone", "old")):
        _put(tmp_path / "t" / f"capture_id={name}", text)
    for name in ("replaced", "new"):
        _put(layout.staging / "t" / f"capture_id={name}", "new")
    done = 0
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        nonlocal done
        if target.name != "moves.json":
            if done == point:
                raise KeyboardInterrupt
            done += 1
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        captures = {name: name for name in ("replaced", "new", "gone")}
        with contextlib.suppress(KeyboardInterrupt):
            layout.commit(["t"], captures)
    again = Layout(tmp_path, ParquetFormat(tmp_path))
    again.complete()
    left = {path.parent.name: path.read_text() for path in tmp_path.rglob("*.parquet")}
    assert left == {"capture_id=replaced": "new", "capture_id=new": "new"}


def _put(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "x.parquet").write_text(text)


def _files(path: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in path.rglob("*.parquet")}


def test_two_runs_at_once(spark: SparkSession, tmp_path: Path) -> None:
    with (
        Layout(tmp_path, ParquetFormat(tmp_path)).locked(),
        pytest.raises(TableError, match="another run"),
    ):
        write_tables(spark, [UDP], tmp_path)


def test_what_there_is_not(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no table nonsense; there are batches, messages"):
        write_tables(spark, [UDP], tmp_path, names=["nonsense"])
    with pytest.raises(TableError, match="no format csv"):
        write_tables(spark, [UDP], tmp_path, format="csv")
    text = tmp_path / "text.pcap"
    text.write_text("this is not a capture, whatever its name says")
    with pytest.raises(TableError, match=r"neither pcap nor pcapng.*as they were"):
        write_tables(spark, [text], tmp_path / "out")


def test_names_of_captures_fit_any_file_system(spark: SparkSession) -> None:
    names = ["/a/b.pcap", "/a/" + "\u00e9 =%/" * 50 + "x" * 200 + ".pcap", "/c/b.pcap"]
    frame = spark.createDataFrame([(name,) for name in names], "capture string")
    found = [row[0] for row in frame.select(write._capture_id(F.col("capture"))).collect()]
    assert found == [capture_id(name) for name in names]
    assert len(set(found)) == 3
    assert all(len(name.encode()) < 120 for name in found)


def test_rotating_files_are_one_capture(spark: SparkSession, tmp_path: Path) -> None:
    from tests.unit.capture.writer import packets_of, pcap

    packets = packets_of(ROUTERS)
    folder = tmp_path / "rotated"
    folder.mkdir()
    half = len(packets) // 2
    (folder / "1.pcap").write_bytes(pcap(packets[:half]))
    (folder / "0.pcap").write_bytes(pcap(packets[half:]))
    out = tmp_path / "out"
    result = write_tables(spark, [folder], out, names=["samples"], rotating=True)
    assert result.captures == [str(folder.resolve())]
    samples = spark.read.parquet(str(out / "samples"))
    assert samples.where("key is not null").count() == 320
    again = write_tables(spark, [folder], out, names=["samples"], rotating=True)
    assert again.replaced == again.captures


# --- formats with a log of their own ----------------------------------------------------------------


def _delta(out: Path, name: str) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(str(out / name)).to_pyarrow_table()


def _iceberg(out: Path, name: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    catalogue = SqlCatalog("zenwire", uri=f"sqlite:///{out}/catalog.db", warehouse=f"file://{out}")
    return catalogue.load_table(("zenwire", name)).scan().to_arrow()


@pytest.mark.parametrize(
    ("format", "needs", "read"),
    [("delta", "deltalake", _delta), ("iceberg", "pyiceberg.catalog.sql", _iceberg)],
)
def test_formats(
    spark: SparkSession,
    tmp_path: Path,
    format: str,
    needs: str,
    read: Callable[[Path, str], Any],
) -> None:
    if not _installed(needs):
        with pytest.raises(TableError, match=rf"pip install 'zenwire\[{format}\]'"):
            write_tables(spark, [UDP], tmp_path, format=format)
        return
    write_tables(spark, [UDP, QUERIES], tmp_path, names=SOME, format=format)
    again = write_tables(spark, [ROUTERS, UDP], tmp_path, names=SOME, format=format)
    assert again.replaced == [str(UDP.resolve())]
    with pytest.raises(TableError, match=f"of format {format}"):
        write_tables(spark, [UDP], tmp_path)
    plain = tmp_path / "plain"
    write_tables(spark, [UDP, QUERIES, ROUTERS], plain, names=SOME)
    for name in SOME:
        expected = spark.read.parquet(str(plain / name)).drop("capture_id")
        kinds = dict(expected.dtypes)
        if "value" in kinds:
            expected = expected.withColumn("value", F.to_json("value"))
        found = read(tmp_path, name).select(expected.columns).to_pylist()
        wanted = expected.toArrow().to_pylist()
        order = lambda row: json.dumps(row, default=str, sort_keys=True)  # noqa: E731
        assert sorted(map(order, found)) == sorted(map(order, wanted)), name


def _installed(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def test_formats_are_those_of_the_command() -> None:
    from zenwire.cli.tables import FORMATS as TOLD

    assert tuple(FORMATS) == TOLD
