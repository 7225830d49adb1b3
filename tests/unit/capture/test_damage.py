"""Damaged captures: what can be right is right, the rest is in fault rows, and the books balance."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.recorded import CAPTURES
from tests.unit.capture import writer as w
from zenwire.wire import compress_batch, frame_stream

BY_NAME = {path.stem: path for path in CAPTURES}
STREAMS = ["client_router_pubsub", "three_routers", "liveliness", "compression", "lowlatency"]
WHOLE = {name: w.read(path) for name, path in BY_NAME.items()}
LOST = {"lost", "damaged", "truncated", "handshake", "not_zenoh"}


def subsequence(part: list[bytes], whole: list[bytes]) -> bool:
    rest = iter(whole)
    return all(any(one == other for other in rest) for one in part)


@pytest.mark.parametrize("name", [*STREAMS, "udp", "fragmentation"])
@pytest.mark.parametrize("seed", range(3))
def test_reordered_and_repeated_packets_change_nothing(
    tmp_path: Path, name: str, seed: int
) -> None:
    chance = random.Random(seed)
    packets = w.packets_of(BY_NAME[name])
    order = [(i + chance.uniform(0, 12), p) for i, p in enumerate(packets)]
    if name != "udp":
        order += [
            (at + chance.uniform(0, 40), p) for at, p in chance.sample(order, len(order) // 4)
        ]
    order.sort(key=lambda pair: pair[0])
    found = w.read_bytes(tmp_path, w.pcap(p for _, p in order))
    if name == "udp":
        assert {f: sorted(b) for f, b in found.bytes.items()} == {
            f: sorted(b) for f, b in WHOLE[name].bytes.items()
        }
        return
    assert found.bytes == WHOLE[name].bytes
    assert not found.faults
    assert found.summary.repeated >= 0


@pytest.mark.parametrize("name", [*STREAMS, "fragmentation", "thousands"])
@pytest.mark.parametrize("seed", range(4))
def test_dropped_packets(tmp_path: Path, name: str, seed: int) -> None:
    chance = random.Random(seed)
    packets = w.packets_of(BY_NAME[name])
    kept = [p for p in packets if chance.random() > 0.03]
    found = w.read_bytes(tmp_path, w.pcap(kept))
    assert found.fault_names <= LOST
    lost = len(packets) - len(kept)
    wrong = 0
    for flow, batches in found.bytes.items():
        whole = WHOLE[name].bytes[flow]
        right = [data for data in batches if data in set(whole)]
        assert subsequence(right, whole)
        wrong += len(batches) - len(right)
    assert wrong == 0
    # A lost packet costs the batches that it carried, and at most a few at the end of a capture.
    there = sum(map(len, found.bytes.values()))
    carried = sum(map(len, WHOLE[name].bytes.values())) / len(packets)
    assert there >= sum(map(len, WHOLE[name].bytes.values())) - lost * (carried + 1) * 6 - 12
    for window in (500, 10_000):
        again = w.read_bytes(tmp_path, w.pcap(kept), window)
        assert again.bytes == found.bytes


def test_one_lost_packet_costs_the_batches_in_it(tmp_path: Path) -> None:
    packets = w.packets_of(BY_NAME["client_router_pubsub"])
    whole = sum(map(len, WHOLE["client_router_pubsub"].bytes.values()))
    losses = []
    for drop in range(20, len(packets) - 20, 7):
        kept = packets[:drop] + packets[drop + 1 :]
        found = w.read_bytes(tmp_path, w.pcap(kept))
        losses.append(whole - sum(map(len, found.bytes.values())))
        assert found.summary.missing == sum(int(str(f["missing"])) for f in found.faults)
    assert max(losses) <= 3
    assert min(losses) == 0


@pytest.mark.parametrize("name", [*STREAMS, "thousands"])
def test_first_half_cut_away(tmp_path: Path, name: str) -> None:
    packets = w.packets_of(BY_NAME[name])
    found = w.read_bytes(tmp_path, w.pcap(packets[len(packets) // 2 :]))
    assert found.fault_names <= LOST
    some = 0
    for flow, batches in found.bytes.items():
        assert batches == WHOLE[name].bytes[flow][-len(batches) :]
        some += len(batches)
        flags = ("lowlatency", "compression")
        true = [[row[flag] for flag in flags] for row in WHOLE[name].batches[flow]][-len(batches) :]
        rows = [[row[flag] for flag in flags] for row in found.batches[flow]]
        assert rows == true
    assert some > sum(map(len, WHOLE[name].bytes.values())) * 0.2


@pytest.mark.parametrize("snap", [60, 80, 120, 300, 1000])
def test_small_snap_length(tmp_path: Path, snap: int) -> None:
    packets = w.packets_of(BY_NAME["client_router_pubsub"])
    found = w.read_bytes(tmp_path, w.pcap(packets, snap=snap))
    assert found.fault_names <= LOST | {"packet_cut"}
    for flow, batches in found.bytes.items():
        assert subsequence(batches, WHOLE["client_router_pubsub"].bytes[flow])
    sent = WHOLE["client_router_pubsub"].summary.payload
    summary = found.summary
    if snap >= 120:
        assert summary.payload + summary.missing + summary.foreign_missing == sent


def test_snapped_datagrams_are_lost(tmp_path: Path) -> None:
    found = w.read_bytes(tmp_path, w.pcap(w.packets_of(BY_NAME["udp"]), snap=100))
    summary = found.summary
    whole = WHOLE["udp"].summary
    assert summary.batch_bytes + summary.skipped + summary.missing == whole.batch_bytes
    assert 0 < summary.batches < whole.batches


def test_two_files_concatenated(tmp_path: Path) -> None:
    one = BY_NAME["advanced"].read_bytes()
    packets = w.packets_of(BY_NAME["liveliness"])
    both = {**WHOLE["advanced"].bytes, **WHOLE["liveliness"].bytes}
    assert len(both) == len(WHOLE["advanced"].bytes) + len(WHOLE["liveliness"].bytes)
    raw = w.relink(packets, bytes)
    for other in (
        BY_NAME["liveliness"].read_bytes(),
        w.pcap(packets, order=">", nano=True),
        w.pcap(raw, link=101),
        w.pcapng(packets),
        w.pcapng(packets, order=">"),
    ):
        for data in (one + other, other + one):
            for window in (1 << 20, 200):
                found = w.read_bytes(tmp_path, data, window)
                assert found.bytes == both
                assert not found.faults


@pytest.mark.parametrize("form", [w.pcap, w.pcapng])
@pytest.mark.parametrize("size", [1, 15, 40, 1000, 300_000])
def test_garbage_between_records(tmp_path: Path, form: object, size: int) -> None:
    assert callable(form)
    chance = random.Random(size)
    packets = w.packets_of(BY_NAME["liveliness"])
    half = len(packets) // 2
    begin = form(packets[:half])
    head = len(form([]))
    junk = chance.randbytes(size)
    if form is w.pcapng:
        junk += bytes(-size % 4)
    data = begin + junk + form(packets[half:])[head:]
    for window in (1 << 20, 5000):
        found = w.read_bytes(tmp_path, data, window)
        assert found.bytes == WHOLE["liveliness"].bytes
        assert found.fault_names == {"file_garbage"}
        assert [f["skipped"] for f in found.faults] == [len(junk)]
        assert [f["offset"] for f in found.faults] == [len(begin)]


@pytest.mark.parametrize("name", ["client_router_pubsub", "three_routers", "lowlatency"])
@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes(tmp_path: Path, name: str, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(BY_NAME[name].read_bytes())
    flips = 5
    for _ in range(flips):
        data[chance.randrange(24, len(data))] ^= 1 << chance.randrange(8)
    found = w.read_bytes(tmp_path, bytes(data))
    right = there = 0
    for flow, whole in WHOLE[name].bytes.items():
        batches = found.bytes.get(flow, [])
        right += sum(data in set(whole) for data in batches)
        there += len(whole)
    assert right >= there * 0.5
    files = {"file_garbage", "file_fragments", "stray"}
    packets = {"packet_malformed", "packet_other_network", "packet_other_transport"}
    assert found.fault_names <= LOST | files | packets


def stream_packets(data: bytes, seed: int, size: int = 700) -> list[w.Packet]:
    packets = []
    for number, at in enumerate(range(0, len(data), size)):
        segment = w.tcp(7447, 9999, seed + at, data[at : at + size])
        packets.append(w.Packet(number, w.ethernet(w.ip4(6, b"aaaa", b"bbbb", segment))))
    return packets


@pytest.mark.parametrize("compressed", [False, True])
def test_a_flipped_length_costs_its_batch_alone(tmp_path: Path, compressed: bool) -> None:
    """In a stream without handshake, which is found by looking."""
    flow = max(
        WHOLE["client_router_pubsub"].bytes,
        key=lambda f: len(WHOLE["client_router_pubsub"].bytes[f]),
    )
    batches = WHOLE["client_router_pubsub"].bytes[flow][2:60]
    if compressed:
        batches = [compress_batch(data) for data in batches]
    stream = bytearray(b"".join(map(frame_stream, batches)))
    sizes = [2 + len(data) for data in batches]
    unlucky = 0
    for broken in (10, 11, 20):
        at = sum(sizes[:broken])
        for bit in range(14):
            damaged = bytearray(stream)
            damaged[at + bit // 8] ^= 1 << bit % 8
            found = w.read_bytes(tmp_path, w.pcap(stream_packets(bytes(damaged), 2**32 - 5000)))
            (rows,) = found.batches.values()
            got = [row["bytes"] for row in rows]
            assert {row["compression"] for row in rows} == {compressed}
            wanted = batches[:broken] + batches[broken + 1 :]
            unlucky += sum(data not in got for data in wanted) > 1
    # A wrong length may lead to where a batch might begin, by chance.
    assert unlucky <= 1
