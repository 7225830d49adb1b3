"""Files made to break the reader: a documented error or fault rows, and nothing else."""

from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import pytest

from tests.recorded import CAPTURES
from tests.unit.capture import writer as w
from zenwire.capture import CaptureReader
from zenwire.errors import CaptureError

BY_NAME = {path.stem: path for path in CAPTURES}
SMALL = [BY_NAME[name] for name in ("usrpwd", "compression", "peer_query_reply")]


def survive(path: Path, data: bytes, window: int = 1 << 16) -> None:
    path.write_bytes(data)
    reader = CaptureReader(path, window=window)
    try:
        for batch in reader:
            batch.validate(full=True)
    except CaptureError:
        return
    assert reader.summary.balance == 0


def test_truncated_at_each_byte(tmp_path: Path) -> None:
    data = BY_NAME["usrpwd"].read_bytes()
    for size in range(len(data)):
        survive(tmp_path / "x", data[:size])


@pytest.mark.parametrize("seed", range(40))
def test_random_bytes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    junk = chance.randbytes(chance.randint(0, 20_000))
    heads = [
        b"",
        w.pcap([]),
        w.pcapng([]),
        w.section(">") + w.interface(">", chance.randrange(300)),
    ]
    for head in heads:
        survive(tmp_path / "x", head + junk, chance.choice([64, 1000, 1 << 16]))
    survive(
        tmp_path / "x",
        w.pcap(w.Packet(i, chance.randbytes(chance.randint(0, 200))) for i in range(100)),
    )


@pytest.mark.parametrize("seed", range(40))
def test_mutated_captures(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for path in SMALL:
        packets = w.packets_of(path)
        for form in (w.pcap, w.pcapng):
            data = bytearray(form(packets))
            for _ in range(chance.randint(1, 200)):
                at = chance.randrange(len(data))
                match chance.randrange(4):
                    case 0:
                        data[at] = chance.randrange(256)
                    case 1:
                        del data[at : at + chance.randint(1, 30)]
                    case 2:
                        data[at:at] = chance.randbytes(chance.randint(1, 30))
                    case 3:
                        data[at : at + 4] = chance.choice([b"\xff" * 4, bytes(4), b"\0\0\0\x7f"])
            survive(tmp_path / "x", bytes(data), chance.choice([64, 1000, 1 << 16]))


@pytest.mark.parametrize("size", [0, 1, 15, 262_144, 262_145, 2**24, 2**31 - 1, 2**32 - 1])
def test_record_lengths(tmp_path: Path, size: int) -> None:
    for order in "<>":
        head = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 2**32 - 1, 1)
        record = struct.pack(order + "IIII", 1, 1, size, 2**32 - 1)
        survive(tmp_path / "x", head + record)
        survive(tmp_path / "x", head + record + bytes(1000) + record * 50)
        for kind in (1, 2, 3, 5, 6, 0x0A0D0D0A):
            block = struct.pack(order + "II", kind, size) + bytes(32)
            survive(tmp_path / "x", w.pcapng([], order=order) + block * 20)


def test_lengths_that_are_not_there_take_no_memory(tmp_path: Path) -> None:
    """Segments whose missing bytes would fill any memory."""
    path = tmp_path / "x"
    cut = w.ip4(6, b"aaaa", b"bbbb", w.tcp(7, 9, 1, b"x"))
    cut = cut[:2] + b"\0\0" + cut[4:]
    packets = [w.Packet(i, w.ethernet(cut), 2**31 - 1) for i in range(2000)]
    data = w.pcap(packets)
    tracemalloc.start()
    try:
        survive(path, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 << 20


def test_segments_of_one_byte_in_reverse(tmp_path: Path) -> None:
    packets = [
        w.Packet(1, w.ethernet(w.ip4(6, b"aaaa", b"bbbb", w.tcp(7, 9, 100_000 - 2 * i, b"x"))))
        for i in range(20_000)
    ]
    survive(tmp_path / "x", w.pcap(packets))


def test_patterns_that_look_like_batches(tmp_path: Path) -> None:
    for pattern in (b"\x02\x00\x26\x01", b"\x01\x00\x04", b"\x03\x00\x25\x01\x1d", bytes(4)):
        stream = pattern * (300_000 // len(pattern))
        packets = [
            w.Packet(
                at, w.ethernet(w.ip4(6, b"aaaa", b"bbbb", w.tcp(7, 9, at, stream[at : at + 1400])))
            )
            for at in range(0, len(stream), 1400)
        ]
        survive(tmp_path / "x", w.pcap(packets))
