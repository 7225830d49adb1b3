"""Ranges of a capture give together what one pass gives, however it is cut and damaged."""

from __future__ import annotations

import gzip
import pickle
import random
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from tests.recorded import CAPTURES
from tests.unit.capture import writer as w
from zenwire.capture import SCHEMA, Index, Part, Range, index, read_capture, read_range
from zenwire.capture import kernels as k
from zenwire.errors import CaptureError

BY_NAME = {path.stem: path for path in CAPTURES}
SMALL = [name for name, path in BY_NAME.items() if path.stat().st_size < 80_000] + ["udp"]
# One row of each for every range.
BOOKS = {"overhead", "repeated", "stray", "file_fragments", "file_blocks"}
Row = dict[str, object]


def streams(rows: list[Row]) -> dict[object, list[Row]]:
    """The batches and the faults of each stream in their order; of bookkeeping, the sums."""
    found: dict[object, list[Row]] = {}
    sums: dict[object, int] = {}
    for row in rows:
        fault = str(row["fault"])
        if fault in BOOKS or fault.startswith("packet_"):
            sums[fault] = sums.get(fault, 0) + int(str(row["skipped"]))
        else:
            ends = (row["flow"], row["source"], row["source_port"])
            key = (*ends, row["connection"], row["fault"] is None)
            found.setdefault(key, []).append(row)
    return {**found, **{name: [{"skipped": size}] for name, size in sums.items()}}


def rows_of(found: Index) -> list[Row]:
    """Each range as a task would read it, in an order that says nothing."""
    pieces: list[list[Row]] = [[] for _ in found.ranges]
    numbers = list(range(len(pieces)))
    random.Random(len(pieces)).shuffle(numbers)
    for i in numbers:
        there = pickle.loads(pickle.dumps(found.ranges[i]))
        pieces[i] = pa.Table.from_batches(read_range(there), SCHEMA).to_pylist()
    return [row for piece in pieces for row in piece]


def same(path: Path, size: int, window: int, whole_window: int = 0) -> int:
    """In a damaged capture, what one direction tells of the other may depend on the window."""
    whole = pa.Table.from_batches(read_capture(path, window=whole_window or window), SCHEMA)
    found = index(path, size, window=window)
    rows = rows_of(found)
    one, other = streams(rows), streams(whole.to_pylist())
    assert one.keys() == other.keys()
    for stream in one:
        assert one[stream] == other[stream]
    table = pa.Table.from_pylist(rows, SCHEMA)
    assert w.total(table) == w.total(whole) == path.stat().st_size
    return len(found.ranges)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("window", [700, 1500])
def test_all_captures(name: str, window: int) -> None:
    path = BY_NAME[name]
    size = window if path.stat().st_size < 300_000 else path.stat().st_size // 40
    assert same(path, size, window, 1 << 24) > 1


@pytest.mark.parametrize("name", ["usrpwd", "compression", "peer_query_reply"])
@pytest.mark.parametrize("form", [w.pcap, w.pcapng])
def test_a_range_for_each_packet(tmp_path: Path, name: str, form: object) -> None:
    assert callable(form)
    path = tmp_path / "x"
    packets = w.packets_of(BY_NAME[name])
    path.write_bytes(form(packets))
    assert same(path, 1, 64, 1 << 24) > len(packets) // 3


def damaged(chance: random.Random, packets: list[w.Packet]) -> list[w.Packet]:
    """Packets lost, repeated, reordered and snapped."""
    order = [(i + chance.uniform(0, 6), p) for i, p in enumerate(packets) if chance.random() > 0.03]
    order += [(at + chance.uniform(0, 9), p) for at, p in chance.sample(order, len(order) // 9)]
    order.sort(key=lambda pair: pair[0])
    return [
        w.Packet(p.time, p.data[: chance.randint(20, 400)], p.length)
        if chance.random() < 0.01
        else p
        for _, p in order
    ]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("seed", range(3))
def test_damaged_captures(tmp_path: Path, name: str, seed: int) -> None:
    chance = random.Random(f"{name}{seed}")
    path = tmp_path / "x"
    packets = damaged(chance, w.packets_of(BY_NAME[name]))
    for form in (w.pcap, w.pcapng):
        data = bytearray(form(packets))
        path.write_bytes(data)
        same(path, 1, chance.randint(64, 6000))
        for _ in range(6):
            data[chance.randrange(60, len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        same(path, 1, chance.randint(64, 6000))


def test_first_half_cut_and_two_files_in_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for name in SMALL:
        packets = w.packets_of(BY_NAME[name])
        path.write_bytes(w.pcap(packets[len(packets) // 2 :]))
        same(path, 1, 2000)
    path.write_bytes(BY_NAME["liveliness"].read_bytes() + w.pcapng(w.packets_of(BY_NAME["udp"])))
    same(path, 1, 3000)


def test_fragments_of_datagrams(tmp_path: Path) -> None:
    packets = []
    for number, p in enumerate(w.packets_of(BY_NAME["udp"])[:400]):
        ip = p.data[14:]
        for at in range(0, len(ip) - 20, 96):
            piece = ip[20 + at : 20 + at + 96]
            bits = at // 8 | (0x2000 if 20 + at + 96 < len(ip) else 0)
            if number % 17 or at:
                whole = w.ip4(ip[9], ip[12:16], ip[16:20], piece, part=bits, ident=number)
                packets.append(w.Packet(p.time, w.ethernet(whole)))
    path = tmp_path / "x"
    path.write_bytes(w.pcap(packets))
    assert same(path, 1, 900) > 50


def test_pcapng_interfaces_are_kept(tmp_path: Path) -> None:
    packets = w.packets_of(BY_NAME["advanced"])
    raw = [w.Packet(p.time, p.data[14:]) for p in packets]
    blocks = [w.section(), w.interface(link=1), w.interface(link=101, resolution=9)]
    for i, p in enumerate(packets):
        if i % 2:
            blocks.append(w.enhanced("<", p, p.time // 1000))
        else:
            blocks.append(w.enhanced("<", raw[i], p.time, 1))
    path = tmp_path / "x"
    path.write_bytes(b"".join(blocks))
    assert same(path, 1, 500) > 10


def short(number: int, port: int, body: bytes, *, reset: bool = False) -> list[w.Packet]:
    """A connection from SYN to FIN or RST, a tenth of a second after the one before."""

    def packet(seq: int, data: bytes = b"", *, flags: int, back: bool = False) -> w.Packet:
        ports, ends = (port, 7447), (b"\x0a\0\0\x01", b"\x0a\0\0\x02")
        if back:
            ports, ends = ports[::-1], ends[::-1]
        segment = w.tcp(*ports, seq, data, flags=flags, ack=number * 7 + 1)
        return w.Packet(10**18 + number * 10**8, w.ethernet(w.ip4(6, *ends, segment)))

    isn = number * 7
    done = w.RST if reset else w.FIN | w.ACK
    return [
        packet(isn, flags=w.SYN),
        packet(isn, flags=w.SYN | w.ACK, back=True),
        packet(isn + 1, body, flags=w.ACK),
        packet(isn + 1 + len(body), flags=done),
        packet(isn + 1, flags=done, back=True),
    ]


INIT = w.packets_of(BY_NAME["usrpwd"])


def test_many_short_connections_take_bounded_memory(tmp_path: Path) -> None:
    """20,000 connections from 500 ports, each used 40 times."""
    path = tmp_path / "x"
    packets = []
    for number in range(20_000):
        packets += short(number, 20_000 + number % 500, b"GET / HTTP/1.1", reset=number % 3 == 0)
    path.write_bytes(w.pcap(packets))
    found = index(path, 1, window=200_000)
    sizes = [len(pickle.dumps(some.begin)) for some in found.ranges[1:]]
    assert len(sizes) > 30
    assert max(sizes) < 40_000
    # The later ones are no larger than the earlier ones.
    assert max(sizes[len(sizes) // 2 :]) < 1.2 * max(sizes[: len(sizes) // 2])
    rows = rows_of(found)
    whole = pa.Table.from_batches(read_capture(path), SCHEMA).to_pylist()
    assert streams(rows) == streams(whole)
    numbers: dict[object, list[object]] = {}
    for row in rows:
        if row["fault"] == "not_zenoh":
            numbers.setdefault(row["source_port"], []).append(row["connection"])
    assert len(numbers) == 500
    assert all(found == list(range(40)) for found in numbers.values())


def test_ports_that_are_not_used_again_cost_a_few_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    packets = []
    for number in range(20_000):
        packets += short(number, 20_000 + number, b"GET / HTTP/1.1")
    path.write_bytes(w.pcap(packets))
    found = index(path, 1, window=200_000)
    last = found.ranges[-1].begin
    assert last is not None
    assert len(pickle.dumps(last)) < 20_000 * 16


@pytest.mark.parametrize("gap", [1, 20, 40, 4000])
def test_a_late_packet_of_a_closed_connection(tmp_path: Path, gap: int) -> None:
    """Whether its state was dropped by then does not show."""
    first = short(1, 5000, b"hello")
    last = first[0].time
    late = w.Packet(last + gap * 10**9, first[2].data)
    end = w.Packet(last + gap * 10**9, first[3].data)
    others = [short(10 * i, 6000 + i, b"other")[i % 5] for i in range(1, 2000)]
    packets = sorted([*first, *others, late, end], key=lambda p: p.time)
    path = tmp_path / "x"
    path.write_bytes(w.pcap(packets))
    for window in (300, 4000):
        same(path, 1, window)


def test_reused_ports_of_zenoh(tmp_path: Path) -> None:
    """The same session three times over the same ports, with an hour between them."""
    packets = w.packets_of(BY_NAME["liveliness"])
    later = []
    for turn in range(3):
        shifted = w.shift_sequences(packets, turn * 1_000_003)
        later += [w.Packet(p.time + turn * 3600 * 10**9, p.data, p.original) for p in shifted]
    path = tmp_path / "x"
    path.write_bytes(w.pcap(later))
    assert same(path, 1, 1000) > 10
    assert {flow[-1] for flow in w.read(path).batches} == {0, 1, 2}


def test_a_compressed_file_is_one_range(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(BY_NAME["udp"].read_bytes()))
    (only,) = index(path, 1, window=1000).ranges
    assert (only.begin, only.end) == (None, None)


def test_a_capture_that_changes_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(BY_NAME["udp"].read_bytes())
    found = index(path, 20_000, window=10_000).ranges[2]
    data = bytearray(path.read_bytes())
    assert found.begin is not None
    assert found.begin.place is not None
    struct.pack_into("<I", data, found.begin.place.offset + 8, 60_000)
    path.write_bytes(data)
    with pytest.raises(CaptureError, match="changed"):
        list(read_range(found))


def test_checkpoints_are_small() -> None:
    found = index(BY_NAME["thousands"], 1, window=100_000).ranges
    assert all(len(pickle.dumps(some.begin)) < 70_000 for some in found)
    assert min(len(pickle.dumps(some.begin)) for some in found[1:]) < 3000


@pytest.mark.parametrize("name", ["client_router_pubsub", "udp", "compression", "fragmentation"])
@pytest.mark.parametrize("form", [w.pcap, w.pcapng])
def test_files_that_continue_one_another(tmp_path: Path, name: str, form: object) -> None:
    """A capture in several files gives what it gives in one, but for the books."""
    assert callable(form)
    chance = random.Random(name)
    packets = w.packets_of(BY_NAME[name])
    cuts = sorted(chance.sample(range(1, len(packets)), 4))
    parts = []
    for number, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(packets)], strict=True)):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(form(packets[a:b]))
        parts.append(Part(str(path)))
    one = tmp_path / "all"
    one.write_bytes(form(packets))
    whole = streams(pa.Table.from_batches(read_capture(one), SCHEMA).to_pylist())
    some = Range(str(one), tuple(parts), window=4000)
    for size in (1, 1 << 30):
        rows = streams(rows_of(index(some, size)))
        assert {x for x in rows if x not in BOOKS} == {x for x in whole if x not in BOOKS}
        assert all(rows[x] == whole[x] for x in whole if x not in BOOKS)


@pytest.mark.parametrize("form", [w.pcap, w.pcapng])
@pytest.mark.parametrize("seed", range(4))
def test_a_file_that_grows(tmp_path: Path, form: object, seed: int) -> None:
    """Read as far as it is there, byte by byte or more: the same rows, and no cut record."""
    assert callable(form)
    chance = random.Random(seed)
    packets = w.packets_of(BY_NAME["usrpwd" if seed else "compression"])
    data = form(packets)
    if seed > 1:
        half = len(form(packets[:9]))
        data = data[:half] + chance.randbytes(100) + data[half:]
    path = tmp_path / "x"
    path.write_bytes(data)
    whole = streams(pa.Table.from_batches(read_capture(path), SCHEMA).to_pylist())
    rows: list[Row] = []
    begin = None
    size = 0
    while size < len(data):
        size = min(size + chance.choice([1, 7, 50, 400]), len(data))
        part = Part(str(path), size, growing=True)
        found = index(Range(str(path), (part,), begin, None, ends=False), 100)
        rows += rows_of(found)
        begin = found.end
    last = Range(str(path), (Part(str(path)),), begin)
    assert streams(rows + rows_of(index(last))) == whole


def test_linger_is_longer_than_what_a_stack_waits() -> None:
    assert k.LINGER >= 10**10
