"""Everything that links carry, in a file that the readers of captures read."""

from __future__ import annotations

import json
import resource
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port

pytest.importorskip("numba")

from tests.unit.api.nodes import config, run, until
from tests.unit.node import nodes
from zenwire import aio
from zenwire.capture import BatchReader, RecordReader
from zenwire.capture.rotation import in_turn
from zenwire.cli.main import main
from zenwire.node import open_node
from zenwire.node.carrier import Carrier
from zenwire.node.tap import Counted, Tap, address_of
from zenwire.wire.locator import Locator

SIZES = [0, 5, 30_000, 200_000]
"""Of payloads; the last ones go in pieces."""


def at(mode: str, how: str, where: str) -> aio.Config:
    chosen = config(mode)
    chosen.insert_json5(how, {"endpoints": [where]})
    return chosen


@asynccontextmanager
async def tapped(tap: Tap, where: str) -> AsyncIterator[aio.Session]:
    """A router, all of whose links are written down."""
    chosen = at("router", "listen", where)
    async with aio.Session(await open_node(chosen, tap=tap), chosen) as session:
        yield session


async def talk(where: str) -> None:
    """A subscriber and a publisher at a node, and a query."""
    async with (
        aio.open(at("client", "connect", where)) as one,
        aio.open(at("client", "connect", where)) as two,
    ):
        subscriber = await one.declare_subscriber("demo/**")
        queryable = await one.declare_queryable("ask/me")
        publisher = await two.declare_publisher(
            "demo/x", congestion_control=aio.CongestionControl.BLOCK
        )
        await until(lambda: publisher.matching_status.matching)
        for size in SIZES:
            await publisher.put(bytes(size))
            assert len((await subscriber.recv()).payload) == size
        replies = await two.get("ask/me", target=aio.QueryTarget.ALL)
        async with await queryable.recv() as query:
            await query.reply("ask/me", b"answer")
        assert [reply.ok.payload.to_bytes() async for reply in replies if reply.ok] == [b"answer"]


def inspected(
    path: Path, capsys: pytest.CaptureFixture[str], *args: str
) -> tuple[list[dict[str, Any]], str]:
    capsys.readouterr()
    assert main(["inspect", str(path), "--json", *args]) == 0
    out, err = capsys.readouterr()
    return [json.loads(line) for line in out.splitlines()], err


def rows_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The ``batches`` table of files that continue one another."""
    reader = BatchReader("tap")
    found = []
    for turn in in_turn(map(str, paths)):
        for records in RecordReader(turn.path):
            found += [row for rows in reader.feed(records) for row in rows.to_pylist()]
    return found + [row for rows in reader.finish() for row in rows.to_pylist()]


def faults(paths: Iterable[Path]) -> list[Any]:
    """What is wrong; that packets have headers is no fault."""
    found = [row["fault"] for row in rows_of(paths) if row["fault"] is not None]
    return [fault for fault in found if fault != "overhead"]


PROTOCOLS = ["tcp", "udp", "ws", "unixsock-stream"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_said_is_in_the_file(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tap.pcapng"
    place = str(tmp_path / "socket") if "unix" in protocol else f"127.0.0.1:{free_port()}"
    where = f"{protocol}/{place}"
    tap = Tap(path)

    async def scenario() -> None:
        async with tapped(tap, where):
            await talk(where)

    run(scenario())
    tap.close()
    assert tap.counted.lost_packets == 0
    assert tap.counted.files == 1
    assert faults([path]) == []
    entries, said = inspected(path, capsys, "--kind", "all")
    assert "2 sessions" in said
    assert "no losses" in said
    assert "nothing malformed" in said
    kinds = Counter(entry["kind"] for entry in entries)
    # Each comes to the router, and leaves it.
    assert kinds["put"] >= 2 * 2
    assert kinds["query"] == kinds["reply"] == 2
    assert kinds["init"] == kinds["open"] == 4
    assert {entry["key"] for entry in entries if entry["kind"] == "put"} == {"demo/x"}


def test_without_one_nothing_is_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        chosen = config("router", listen=int(where.rpartition(":")[2]))
        async with aio.Session(await open_node(chosen), chosen) as session:
            kinds: set[type] = set()
            session._core.node.on_neighbour.append(
                lambda neighbour, _: kinds.update(map(type, neighbour.carriers))
            )
            await talk(where)
            assert session._core.node.tap is None
            assert kinds == {Carrier}

    run(scenario())
    assert list(tmp_path.iterdir()) == []


def test_a_client_that_dials_is_written_from_its_first_word_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, port = tmp_path / "tap.pcapng", free_port()
    tap = Tap(path)

    async def scenario() -> None:
        async with aio.open(config("router", listen=port)):
            chosen = config("client", connect=port)
            async with aio.Session(await open_node(chosen, tap=tap), chosen) as session:
                await session.put("demo/x", b"hello")

    run(scenario())
    tap.close()
    entries, _ = inspected(path, capsys, "--kind", "all")
    kinds = Counter(entry["kind"] for entry in entries)
    assert kinds["init"] == kinds["open"] == 2
    assert kinds["put"] == 1
    assert faults([path]) == []


def test_files_take_turns_and_the_oldest_go(tmp_path: Path) -> None:
    async def scenario(tap: Tap) -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        async with tapped(tap, where):
            await talk(where)

    whole = tmp_path / "whole"
    whole.mkdir()
    tap = Tap(whole / "tap.pcapng", rotate=20_000)
    run(scenario(tap))
    tap.close()
    assert tap.counted.files == len(list(whole.iterdir())) > 3
    files = list(whole.iterdir())
    assert faults(files) == []
    carried = sum(len(row["bytes"]) + 2 for row in rows_of(files) if row["bytes"] is not None)
    assert carried == tap.counted.bytes

    few = tmp_path / "few"
    few.mkdir()
    tap = Tap(few / "tap.pcapng", rotate=20_000, keep=2)
    run(scenario(tap))
    tap.close()
    last = tap.counted.files - 1
    assert {path.name for path in few.iterdir()} == {f"tap.{last - 1}.pcapng", f"tap.{last}.pcapng"}


def test_what_finds_no_room_is_counted_and_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk does not take anything for a while, and others do not notice."""
    stuck = threading.Event()

    class Stuck(Tap):
        def _write(self, packets: Any) -> None:
            stuck.wait(30)
            super()._write(packets)

    path = tmp_path / "tap.pcapng"
    tap = Stuck(path, buffer=60_000)

    async def scenario() -> None:
        where = f"tcp/127.0.0.1:{free_port()}"
        async with tapped(tap, where):
            await talk(where)
            assert tap.counted.lost_packets > 0
            assert tap.counted.lost_bytes > 100_000
            stuck.set()

    run(scenario())
    tap.close()
    capsys.readouterr()
    main(["inspect", str(path), "--kind", "all"])
    assert "bytes missing" in capsys.readouterr().err


def test_a_disk_that_is_full_is_told_once_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(Tap):
        def _next(self) -> Any:
            if self.counted.files:
                raise OSError(28, "No space left on device")
            return super()._next()

    path = tmp_path / "tap.pcapng"
    tap = Full(path, rotate=1)
    for _ in range(3):
        tap.put(1, b"", bytes(10))
        while tap._size or tap.counted.packets + tap.counted.lost_packets == 0:
            pass
    tap.close()
    assert tap.counted == Counted(packets=1, bytes=10, files=1, lost_packets=2, lost_bytes=20)
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: [Errno 28] No space left on device; what is not written is counted"
    ]


def test_half_a_packet_does_not_stay_in_a_file(tmp_path: Path) -> None:
    tap = Tap(tmp_path / "tap.pcapng")
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, allowed[1]))
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for size in (50_000, 60_000, 10):
            tap.put(1, b"", bytes(size))
            while tap.counted.packets + tap.counted.lost_packets == 0:
                pass
        tap.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, allowed)
        signal.signal(signal.SIGXFSZ, before)
    assert tap.counted.lost_packets >= 1
    for path in tmp_path.iterdir():
        assert path.stat().st_size % 4 == 0
        assert sum(records.count for records in RecordReader(path)) >= 1
    packets = sum(records.count for path in tmp_path.iterdir() for records in RecordReader(path))
    assert packets == tap.counted.packets


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Tap(tmp_path / "nowhere" / "tap.pcapng")


def test_addresses() -> None:
    assert address_of(Locator.parse("tcp/127.0.0.1:7447")) == (bytes([127, 0, 0, 1]), 7447)
    assert address_of(Locator.parse("udp/[::1]:80")) == (bytes(15) + b"\1", 80)
    assert address_of(Locator.parse("tls/[fe80::1%eth0]:80")) is not None
    assert address_of(Locator.parse("unixsock-stream//tmp/a")) is None
    assert address_of(Locator.parse("tcp/localhost:80")) is None


def test_what_a_group_says_is_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tap.pcapng"
    tap = Tap(path)

    async def scenario() -> None:
        lan = nodes.Lan()
        one = await lan.open(listen="udp/224.0.0.225:7447")
        one.tap = tap
        two = await lan.open(listen="udp/224.0.0.225:7447")
        taker = nodes.Taker(one, "a/**")
        await nodes.until(lambda: bool(two.stats().groups[0].members))
        nodes.put(two, "a/1", b"heard")
        nodes.put(one, "a/2", b"said")
        await nodes.until(lambda: sorted(taker.payloads) == [b"heard", b"said"])
        await lan.close()

    nodes.run(scenario())
    tap.close()
    assert faults([path]) == []
    entries, _ = inspected(path, capsys, "--kind", "all")
    keys = {entry["key"] for entry in entries if entry["kind"] == "put"}
    assert keys == {"a/1", "a/2"}
    assert any(entry["kind"] == "join" for entry in entries)
