"""Small rows are compressed, large ones are not, and both are read as they were appended."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.spool.rows import samples
from zenwire.spool import Spool, Writer
from zenwire.spool.segment import message_of


@pytest.mark.parametrize(
    ("size", "rows", "compressed"), [(8, 5000, True), (8, 3, False), (2000, 500, False)]
)
def test_rows_are_what_they_were(tmp_path: Path, size: int, rows: int, *, compressed: bool) -> None:
    batch = samples(range(rows), size=size)
    assert (message_of(batch).data.size < batch.nbytes / 2) == compressed
    with Writer.open(tmp_path / "s") as writer:
        writer.append(batch)
    (found,) = Spool.open(tmp_path / "s").samples.read(0, rows)
    assert found.batch.equals(batch)
    # Any reader of Arrow reads the file.
    (path,) = (tmp_path / "s" / "samples").glob("*.arrow")
    with pa.ipc.open_stream(path.read_bytes()) as stream:
        assert stream.read_all().to_batches() == [batch]


@pytest.mark.parametrize(("size", "rows"), [(8, 5000), (2000, 50)])
def test_some_of_the_columns(tmp_path: Path, size: int, rows: int) -> None:
    batch = samples(range(rows), size=size)
    with Writer.open(tmp_path / "s") as writer:
        writer.append(batch)
    (found,) = Spool.open(tmp_path / "s").samples.read(1, rows, columns=["time", "key"])
    assert found.first == 1
    assert found.batch.equals(batch.select(["time", "key"])[1:])
