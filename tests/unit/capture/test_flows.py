"""TCP reassembly, against a model that knows what was sent."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.recorded import CAPTURES
from tests.unit.capture import writer as w
from zenwire.capture import Flows, Limits, PacketReader, Reassembly, RecordReader
from zenwire.capture import kernels as k

BY_NAME = {path.stem: path for path in CAPTURES}
A, B = b"\x0a\0\0\x01", b"\x0a\0\0\x02"
Event = tuple[str, int, bytes | int]


def packet(
    seq: int,
    body: bytes = b"",
    *,
    flags: int = w.ACK,
    back: bool = False,
    ack: int = 0,
    time: int = 1,
) -> w.Packet:
    ports, ends = ((9, 7), (B, A)) if back else ((7, 9), (A, B))
    return w.Packet(
        time, w.ethernet(w.ip4(6, *ends, w.tcp(*ports, seq, body, flags=flags, ack=ack)))
    )


def streams(
    folder: Path, packets: list[w.Packet], limits: Limits | None = None, window: int = 1 << 20
) -> dict[int, list[Event]]:
    """(kind, offset, bytes or length of a gap) of each stream; pieces in a row are one."""
    path = folder / "x.pcap"
    path.write_bytes(w.pcap(packets, nano=True))
    flows, reassembly = Flows(), Reassembly(limits)
    found: dict[int, list[Event]] = {}

    def take() -> None:
        for pieces in source:
            for row in pieces.table[:, : pieces.count].T.tolist():
                stream, offset, length, kind, pos, pooled, _ = row
                events = found.setdefault(stream, [])
                where = pieces.pool if pooled else pieces.buffer
                if kind == k.DATA:
                    data = where[pos : pos + length].tobytes()
                    if events and events[-1][0] == "data":
                        _, before, old = events.pop()
                        assert isinstance(old, bytes)
                        assert before + len(old) == offset
                        offset, data = before, old + data
                    events.append(("data", offset, data))
                else:
                    events.append(("gap" if kind == k.GAP else "end", offset, length))

    reader = PacketReader()
    for records in RecordReader(path, window=window):
        packets_ = reader.read(records)
        source = reassembly.feed(packets_, *flows.assign(packets_))
        take()
    source = reassembly.finish()
    take()
    return found


def test_handshake_data_and_fin(tmp_path: Path) -> None:
    found = streams(
        tmp_path,
        [
            packet(99, flags=w.SYN),
            packet(499, flags=w.SYN | w.ACK, back=True, ack=100),
            packet(100, b"hello "),
            packet(106, b"world"),
            packet(105, b" "),
            packet(500, b"back", back=True),
            packet(111, flags=w.FIN | w.ACK),
        ],
    )
    assert found == {
        0: [("data", 0, b"hello world"), ("end", 11, 0)],
        1: [("data", 0, b"back"), ("end", 4, 0)],
    }


def test_the_first_of_overlapping_bytes_wins(tmp_path: Path) -> None:
    found = streams(
        tmp_path,
        [
            packet(0, flags=w.SYN),
            packet(5, b"EFGH"),
            packet(11, b"KL"),
            packet(3, b"cdefghijklm"),
            packet(1, b"abCD"),
        ],
    )
    assert found[0] == [("data", 0, b"abcdEFGHijKLm"), ("end", 13, 0)]


def test_missing_bytes_are_a_gap(tmp_path: Path) -> None:
    sent = [packet(0, flags=w.SYN), packet(1, b"ab"), packet(6, b"fg")]
    assert streams(tmp_path, sent)[0] == [
        ("data", 0, b"ab"),
        ("gap", 2, 3),
        ("data", 5, b"fg"),
        ("end", 7, 0),
    ]


def test_a_late_start_waits_for_what_changed_places_with_it(tmp_path: Path) -> None:
    sent = [packet(1004, b"efgh"), packet(1000, b"abcd"), packet(1008, b"ij")]
    assert streams(tmp_path, sent)[0] == [("data", 0, b"abcdefghij"), ("end", 10, 0)]


def test_a_syn_after_its_data(tmp_path: Path) -> None:
    sent = [packet(1004, b"efgh"), packet(999, flags=w.SYN), packet(1000, b"abcd")]
    assert streams(tmp_path, sent)[0] == [("data", 0, b"abcdefgh"), ("end", 8, 0)]


def test_ports_used_again_are_another_connection(tmp_path: Path) -> None:
    found = streams(
        tmp_path,
        [
            packet(99, flags=w.SYN),
            packet(100, b"one"),
            packet(99, flags=w.SYN),
            packet(7000, flags=w.SYN),
            packet(7001, b"two"),
            packet(103, b"stray"),
        ],
    )
    assert found[0] == [("data", 0, b"one"), ("end", 3, 0)]
    assert found[2][0] == ("data", 0, b"two")


def test_a_fin_before_data_ends_nothing(tmp_path: Path) -> None:
    sent = [packet(118, b"later"), packet(0, b"abcdefgh", flags=w.SYN | w.FIN), packet(9, b"i")]
    assert streams(tmp_path, sent)[0] == [
        ("data", 0, b"abcdefghi"),
        ("gap", 9, 108),
        ("data", 117, b"later"),
        ("end", 122, 0),
    ]


def test_keep_alive_probes_add_nothing(tmp_path: Path) -> None:
    sent = [packet(0, flags=w.SYN), packet(1, b"abc"), packet(3, b"x"), packet(3), packet(4, b"d")]
    assert streams(tmp_path, sent)[0] == [("data", 0, b"abcd"), ("end", 4, 0)]


def test_waiting_ends_by_bytes_segments_and_time(tmp_path: Path) -> None:
    sent = [packet(0, flags=w.SYN), *(packet(10 + i, bytes([i])) for i in range(100))]
    for limits in (Limits(bytes=20), Limits(segments=20)):
        found = streams(tmp_path, [*sent, packet(1, bytes(9))], limits)[0]
        assert found == [("gap", 0, 9), ("data", 9, bytes(range(100))), ("end", 109, 0)]
    late = [sent[0], packet(10, b"x", time=1), packet(11, b"y", time=50), packet(1, b"z", time=51)]
    found = streams(tmp_path, late, Limits(time=40))[0]
    assert found == [("gap", 0, 9), ("data", 9, b"xy"), ("end", 11, 0)]


def test_a_pause_of_the_capture_is_a_gap(tmp_path: Path) -> None:
    far = 3_000_000_000
    sent = [packet(0, flags=w.SYN), packet(1, b"ab")]
    sent += [packet(far + 4 * i, b"abcd") for i in range(6)]
    found = streams(tmp_path, sent)[0]
    assert found[1] == ("gap", 2, far + 8 - 3)
    assert found[2] == ("data", far + 7, b"abcd" * 4)


@pytest.mark.parametrize("seed", range(30))
def test_random_segments_against_what_was_sent(tmp_path: Path, seed: int) -> None:
    """Cut at random, reordered, repeated, overlapping, around the wrap of sequence numbers."""
    chance = random.Random(seed)
    data = chance.randbytes(chance.randint(1, 20_000))
    isn = chance.choice([0, 2**32 - 1, 2**32 - 5000, chance.randrange(2**32)])
    pieces = []
    at = 0
    while at < len(data):
        size = chance.randint(1, 900)
        begin = max(0, at - chance.choice([0, 0, 0, chance.randint(0, 500)]))
        pieces.append((begin, min(at + size, len(data))))
        at += size
    pieces += chance.sample(pieces, len(pieces) // 3)
    order = sorted(pieces, key=lambda piece: piece[0] + chance.uniform(0, 5000))
    sent = [packet(isn, flags=w.SYN)] if seed % 2 else []
    sent += [packet(isn + 1 + a, data[a:b]) for a, b in order]
    limits = Limits(held_segments=64, held_bytes=1 << 20)
    for window in (1 << 20, 1000):
        found = streams(tmp_path, sent, limits, window)
        assert found[0] == [("data", 0, data), ("end", len(data), 0)]


@pytest.mark.parametrize("seed", range(20))
def test_random_losses_leave_exact_gaps(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = chance.randbytes(20_000)
    sent = [packet(5, flags=w.SYN)]
    there = bytearray(len(data))
    for at in range(0, len(data), 100):
        if chance.random() < 0.8:
            sent.append(packet(6 + at, data[at : at + 100]))
            there[at : at + 100] = b"\1" * 100
    chance.shuffle(sent[1:])
    out = bytearray(len(data))
    for kind, offset, value in streams(tmp_path, sent, window=chance.choice([500, 1 << 20]))[0]:
        if kind == "data":
            assert isinstance(value, bytes)
            assert data[offset : offset + len(value)] == value
            out[offset : offset + len(value)] = b"\1" * len(value)
    assert out == there


@pytest.mark.parametrize("shift", [0, 2**31, 2**32 - 300, 2**32 - 400_000_000])
def test_sequence_wrap_in_real_traffic(tmp_path: Path, shift: int) -> None:
    packets = w.packets_of(BY_NAME["fragmentation"])
    found = w.read_bytes(tmp_path, w.pcap(w.shift_sequences(packets, shift)))
    assert found.bytes == w.read(BY_NAME["fragmentation"]).bytes


def test_flow_ids_do_not_depend_on_order_or_direction(tmp_path: Path) -> None:
    one = w.read(BY_NAME["three_routers"])
    packets = w.packets_of(BY_NAME["three_routers"])
    other = w.read_bytes(tmp_path, w.pcap(packets[len(packets) // 3 :]))
    ids = {flow: rows[0]["flow"] for flow, rows in one.batches.items()}
    assert all(ids[flow] == rows[0]["flow"] for flow, rows in other.batches.items())
    assert len(set(ids.values())) == len(ids) // 2


def test_many_flows(tmp_path: Path) -> None:
    packets = [
        w.Packet(1, w.ethernet(w.ip4(6, A, B, w.tcp(port, 9, 1, b"x")))) for port in range(1, 5000)
    ]
    found = w.read_bytes(tmp_path, w.pcap(packets))
    assert found.summary.foreign == found.summary.foreign_flows == 4999
