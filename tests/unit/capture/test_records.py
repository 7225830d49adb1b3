"""Records of damaged files, and that every byte of a file is counted once."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from tests.recorded import CAPTURES
from tests.unit.capture import writer as w
from zenwire.capture import FileFault, RecordReader
from zenwire.capture import kernels as k

BY_NAME = {path.stem: path for path in CAPTURES}


def records(
    path: Path, window: int = 1 << 20
) -> tuple[list[tuple[int, int, int]], list[FileFault]]:
    """(place in the file, captured length, time) of each."""
    found: list[tuple[int, int, int]] = []
    faults: list[FileFault] = []
    size = 0
    for some in RecordReader(path, window=window):
        columns = some.table[[k.R_AT, k.R_CAPTURED, k.R_TIME], : some.count]
        found += [tuple(row) for row in columns.T.tolist()]
        faults += some.faults
        size += some.size
    assert size == path.stat().st_size
    return found, faults


@pytest.mark.parametrize("form", [w.pcap, w.pcapng])
def test_truncated_at_every_byte(tmp_path: Path, form: object) -> None:
    assert callable(form)
    packets = w.packets_of(BY_NAME["usrpwd"])[:6]
    data = form(packets)
    path = tmp_path / "x"
    path.write_bytes(data)
    whole, _ = records(path)
    for size in range(len(form([])), len(data)):
        path.write_bytes(data[:size])
        found, faults = records(path)
        complete = [row for row in found if row in whole]
        assert whole[: len(complete)] == complete
        assert len(found) - len(complete) <= 1
        ends = [at for at, _, _ in whole]
        if size not in ends:
            assert [fault.fault for fault in faults] == ["truncated"]


def test_a_wrong_record_length_is_passed_over(tmp_path: Path) -> None:
    packets = w.packets_of(BY_NAME["no_qos"])
    data = w.pcap(packets)
    path = tmp_path / "x"
    path.write_bytes(data)
    whole, _ = records(path)
    for broken in (0, 5, len(packets) - 1):
        at = whole[broken][0]
        for wrong in (1, 77, 5000, 250_000, 2**31, 2**32 - 1):
            changed = bytearray(data)
            struct.pack_into("<I", changed, at + 8, wrong)
            path.write_bytes(changed)
            found, faults = records(path)
            assert [row for row in found if row != (at, wrong, whole[broken][2])][-3:] or faults
            assert set(whole[broken + 1 :]) <= set(found)
            assert set(whole[:broken]) <= set(found)


def test_memory_does_not_grow_with_garbage(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(w.pcap([]) + random.Random(3).randbytes(3_000_000))
    size = 0
    for some in RecordReader(path, window=4096):
        size = max(size, len(some.buffer))
    assert size < 2_000_000
