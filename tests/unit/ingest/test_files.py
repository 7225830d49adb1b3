"""Files of ``samples`` as tasks write them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq

from zenwire.spark.ingest.sorting import new_file

VALUE = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])


@pytest.mark.parametrize(
    ("payload", "compression"),
    [
        (lambda chance: chance.randbytes(10_000), "UNCOMPRESSED"),
        (lambda chance: chance.randbytes(100), "UNCOMPRESSED"),
        (lambda chance: b"%d " % chance.randrange(9) * 5_000, "ZSTD"),
        (lambda chance: chance.randbytes(8), "ZSTD"),
        (lambda _: None, "ZSTD"),
    ],
    ids=["image", "key", "text", "number", "none"],
)
def test_what_does_not_get_smaller_is_not_compressed(
    tmp_path: Path, payload: Callable[[random.Random], bytes | None], compression: str
) -> None:
    chance = random.Random(1)
    columns = {
        "key": pa.array([f"robot/{n % 3}" for n in range(200)]),
        "payload": pa.array([payload(chance) for _ in range(200)], pa.binary()),
        "value": pa.array([{"metadata": b"m", "value": b"v" * n} for n in range(200)], VALUE),
    }
    rows = pa.record_batch(columns)
    path = tmp_path / "a" / "b.parquet"
    with new_file(path, rows) as file:
        file.write_batch(rows)
    assert pq.read_table(path).equals(pa.table(columns))
    group = pq.read_metadata(path).row_group(0)
    found = [group.column(at) for at in range(group.num_columns)]
    assert {one.path_in_schema: one.compression for one in found} == {
        "key": "ZSTD",
        "payload": compression,
        "value.metadata": "ZSTD",
        "value.value": "ZSTD",
    }
