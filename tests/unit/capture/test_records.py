"""Ranges of a file: together they give every packet once, wherever they are cut."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.recorded import CAPTURES
from tests.unit.capture import writer as w
from zenwire.capture import FileFault, read_records, splits
from zenwire.capture import kernels as k

BY_NAME = {path.stem: path for path in CAPTURES}


def records(
    path: Path, start: int = 0, end: int = 2**63 - 1, window: int = 1 << 20
) -> tuple[list[tuple[int, int, int]], list[FileFault]]:
    """(place in the file, captured length, time) of each."""
    found: list[tuple[int, int, int]] = []
    faults: list[FileFault] = []
    for some in read_records(path, start, end, window=window):
        columns = some.table[[k.R_AT, k.R_CAPTURED, k.R_TIME], : some.count]
        found += [tuple(row) for row in columns.T.tolist()]
        faults += some.faults
    return found, faults


def in_ranges(path: Path, edges: Iterable[int], window: int) -> list[tuple[int, int, int]]:
    edges = list(edges)
    found = []
    for start, end in zip([0, *edges], [*edges, 2**63 - 1], strict=True):
        some, faults = records(path, start, end, window)
        assert not faults
        found += some
    return found


@pytest.mark.parametrize("order", ["<", ">"])
def test_every_cut_of_a_small_file(tmp_path: Path, order: str) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(w.pcap(w.packets_of(BY_NAME["usrpwd"]), order=order))
    whole, _ = records(path)
    assert len(whole) == len(w.packets_of(BY_NAME["usrpwd"]))
    for cut in range(1, path.stat().st_size + 2):
        assert in_ranges(path, [cut], 512) == whole


@pytest.mark.parametrize("name", ["fragmentation", "thousands", "udp", "no_qos"])
def test_random_cuts_of_larger_files(name: str) -> None:
    chance = random.Random(name)
    path = BY_NAME[name]
    whole, _ = records(path)
    for _ in range(10):
        edges = sorted(chance.sample(range(path.stat().st_size), chance.randint(1, 8)))
        assert in_ranges(path, edges, chance.choice([512, 4096, 1 << 20])) == whole


def test_splits(tmp_path: Path) -> None:
    for path in (BY_NAME["udp"], BY_NAME["thousands"]):
        parts = splits(path, 30_000)
        assert len(parts) > 5
        found = []
        for part in parts:
            found += records(Path(part.path), part.start, part.end)[0]
        assert found == records(path)[0]
    other = tmp_path / "x.pcapng"
    other.write_bytes(w.pcapng(w.packets_of(BY_NAME["udp"])))
    assert len(splits(other, 1000)) == 1
    assert len(splits(BY_NAME["udp"])) == 1


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
    for some in read_records(path, window=4096):
        size = max(size, len(some.buffer))
    assert size < 2_000_000
