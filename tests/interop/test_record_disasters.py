"""What happens to a recorder: it goes on, or says why not; and what it leaves can be read."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import zenoh
import zenoh.ext

from tests.interop.exchange import PATIENT, node_settings
from tests.interop.test_record import (
    BLOCK,
    losses,
    mcap_written,
    number,
    recording,
    rows,
    safe,
    wait,
)
from tests.ports import free_port
from tests.unit.api.nodes import TIMEOUT, run, until
from zenwire import aio
from zenwire.record import Recorder
from zenwire.record.hole import NAME as HOLE
from zenwire.spool import Retention, Settings, Spool, Writer
from zenwire.spool.inspection import verify


@contextmanager
def router(**more: Any) -> Iterator[tuple[str, zenoh.Session]]:
    """Of the reference, and where it listens."""
    where = f"tcp/127.0.0.1:{free_port()}"
    settings = node_settings("router", listen=where, **more)
    with zenoh.open(zenoh.Config.from_json5(json.dumps(settings))) as session:
        yield where, session


def options(where: str, key: str) -> tuple[str, ...]:
    return ("-m", "client", "-e", where, "-k", key, "--cfg", "connect/timeout_ms:-1")


def publisher_of(session: zenoh.Session, key: str) -> Any:
    """One that somebody listens to."""
    declared: Any = session.declare_publisher(key, congestion_control=BLOCK)
    wait(lambda: bool(declared.matching_status.matching))
    return declared


def peak(pid: int) -> int:
    """Most bytes of memory that a process had."""
    text = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) << 10


def end(child: subprocess.Popen[str]) -> str:
    """As a service is ended."""
    child.send_signal(signal.SIGTERM)
    _, said = child.communicate(timeout=TIMEOUT)
    assert child.returncode == 143, said
    return said


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 16 MiB, where one may be mounted."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = shutil.which("mount")
    done = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(path)], check=False
    )
    if not done or done.returncode:
        pytest.skip("no filesystem can be mounted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill(disk: Path) -> Path:
    """Nothing more can be written to it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(1 << 16)):
            pass
    return ballast


@pytest.mark.long
def test_a_full_disk(small_disk: Path) -> None:
    """It waits for room, and what came meanwhile is there."""
    spool = small_disk / "s"
    with router() as (where, session), recording(spool, *options(where, "k/*")) as child:
        publisher = publisher_of(session, "k/a")
        publisher.put((0).to_bytes(4, "little"))
        wait(lambda: safe(spool) == 1)
        ballast = fill(small_disk)
        for n in range(1, 500):
            publisher.put(n.to_bytes(4, "little") + bytes(1000))
        assert child.stderr is not None
        while "No space left" not in child.stderr.readline():
            pass
        assert verify(spool).faults == ()
        ballast.unlink()
        wait(lambda: safe(spool) == 500)
        end(child)
    assert [number({"payload": row["payload"][:4]}) for row in rows(spool)] == list(range(500))
    assert losses(spool) == []
    assert verify(spool).faults == ()


@pytest.mark.long
def test_a_disk_that_stays_full(small_disk: Path) -> None:
    spool = small_disk / "s"
    with router() as (where, session), recording(spool, *options(where, "k/*")) as child:
        publisher = publisher_of(session, "k/a")
        publisher.put((0).to_bytes(4, "little"))
        wait(lambda: safe(spool) == 1)
        ballast = fill(small_disk)
        for n in range(1, 500):
            publisher.put(n.to_bytes(4, "little") + bytes(1000))
        time.sleep(1)
        child.send_signal(signal.SIGTERM)
        _, said = child.communicate(timeout=60)
        assert child.returncode == 1
        assert f"{spool}: No space left on device; 499 rows could not be written" in said
        ballast.unlink()
        with recording(spool, *options(where, "k/*")) as again:
            wait(lambda: bool(losses(spool)))
            end(again)
    assert len(rows(spool)) == 1
    assert "recorder" in {row["kind"] for row in losses(spool)}
    assert verify(spool).faults == ()


@pytest.mark.long
def test_a_spool_that_is_taken_away(tmp_path: Path) -> None:
    spool, away = tmp_path / "s", tmp_path / "away"
    with router() as (where, session), recording(spool, *options(where, "k/*")) as child:
        publisher = publisher_of(session, "k/a")
        for n in range(100):
            publisher.put(n.to_bytes(4, "little"))
        wait(lambda: safe(spool) == 100)
        spool.rename(away)
        publisher.put((100).to_bytes(4, "little"))
        _, said = child.communicate(timeout=TIMEOUT)
        assert child.returncode == 1
        assert str(spool) in said
        assert "taken away" in said
        assert not spool.exists()
        wait(lambda: not publisher.matching_status.matching)
        with recording(away, *options(where, "k/*")) as again:
            wait(lambda: bool(publisher.matching_status.matching))
            publisher.put((101).to_bytes(4, "little"))
            wait(lambda: any(number(row) == 101 for row in rows(away)))
            end(again)
    assert {*range(100), 101} <= {number(row) for row in rows(away)}
    assert "recorder" in {row["kind"] for row in losses(away)}
    assert verify(away).faults == ()


def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A year ahead, and two back: everything is kept, in order, and nothing is too old at once."""
    jumped = [0]
    seconds, nanoseconds = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: seconds() + jumped[0])
    monkeypatch.setattr(time, "time_ns", lambda: nanoseconds() + jumped[0] * 10**9)
    run(jump(tmp_path / "s", jumped))


async def jump(spool: Path, jumped: list[int]) -> None:
    year = 365 * 24 * 3600
    kept = Settings(retention=Retention(age=3600), segment_age=1800)
    stamping = {"timestamping": {"enabled": True}}
    with router(**stamping) as (where, session):
        client = node_settings("client", connect=where)
        async with aio.open(client) as ours:
            with Writer.open(spool, kept) as writer:
                async with Recorder(ours, writer, ["k/*"], spool=spool) as recorder:
                    publisher: Any = session.declare_publisher("k/a", congestion_control=BLOCK)
                    await until(lambda: bool(publisher.matching_status.matching))
                    for turn, by in enumerate((0, year, -2 * year)):
                        jumped[0] += by
                        for n in range(100):
                            publisher.put((100 * turn + n).to_bytes(4, "little"))
                        await until(lambda: recorder.status().rows == 100 * turn + 100)  # noqa: B023 - at once
                        writer.flush()
    assert [number(row) for row in rows(spool)] == list(range(300))
    times = [row["time"] for row in rows(spool)]
    assert times[100] - times[99] > 360 * 86_400 * 10**9
    assert times[200] < times[0]
    assert losses(spool) == []
    assert verify(spool).faults == ()


@pytest.mark.long
def test_samples_of_10_mb(tmp_path: Path) -> None:
    spool = tmp_path / "s"
    with router(**PATIENT) as (where, session), recording(spool, *options(where, "k/*")) as child:
        publisher = publisher_of(session, "k/a")
        for n in range(12):
            publisher.put(n.to_bytes(4, "little") + bytes(10_000_000))
        wait(lambda: safe(spool) == 12)
        assert peak(child.pid) < 1 << 30
        end(child)
    found = rows(spool)
    assert [number({"payload": row["payload"][:4]}) for row in found] == list(range(12))
    assert {len(row["payload"]) for row in found} == {10_000_004}
    assert losses(spool) == []


@pytest.mark.long
def test_keys_that_explode(tmp_path: Path) -> None:
    """100,000 keys, and then 200,000 more: memory does not grow with them."""
    spool = tmp_path / "s"
    with router(**PATIENT) as (where, session), recording(spool, *options(where, "k/**")) as child:
        publisher_of(session, "k/a")
        peaks = []
        for first, until_ in ((0, 100_000), (100_000, 300_000)):
            for n in range(first, until_):
                session.put(f"k/{n}/x", b"", congestion_control=BLOCK)
            wait(lambda: Spool.open(spool).samples.latest() >= until_, 120)  # noqa: B023 - at once
            peaks.append(peak(child.pid))
        assert peaks[0] < 600 << 20
        assert peaks[1] < peaks[0] + (50 << 20)
        end(child)
    found = [row["key"] for row in rows(spool)]
    assert len(found) == len({*found}) == 300_000
    assert losses(spool) == []


def test_a_hole_that_was_not_filled_is_left_to_the_next_recorder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(leave_hole(tmp_path / "s", monkeypatch))


async def leave_hole(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends while it asks; by then the spool has rows of after the hole."""
    ext: Any = zenoh.ext  # its stubs are not complete
    with router() as (where, session):
        client = node_settings("client", connect=where)
        cached = ext.declare_advanced_publisher(
            session,
            "k/a",
            cache=ext.CacheConfig(max_samples=20),
            sample_miss_detection=ext.MissDetectionConfig(),
            congestion_control=BLOCK,
        )
        sent = 0

        def send(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                cached.put(sent.to_bytes(4, "little"))
                sent += 1

        async def once(*, filled: bool) -> None:
            with Writer.open(spool) as writer:
                async with (
                    aio.open(client) as ours,
                    Recorder(ours, writer, ["k/*"], spool=spool, history_timeout=60) as recorder,
                ):
                    if filled:
                        await recorder.filled.wait()
                    rows = recorder.status().rows
                    while recorder.status().rows < rows + 5:
                        send(1)
                        await asyncio.sleep(0.02)

        await once(filled=True)
        send(100)
        with monkeypatch.context() as patched:
            patched.setattr("zenwire.record.history.all_of", lambda _: "nobody/has/this")
            patched.setattr("zenwire.record.recorder._SETTLE", 3600.0)
            await once(filled=False)
        assert (spool / HOLE).exists()
        await once(filled=True)
        assert not (spool / HOLE).exists()
        cached.undeclare()
    kept = [number(row) for row in rows(spool)]
    assert len(kept) == len(set(kept))
    (told,) = [(row["from_sn"], row["to_sn"]) for row in losses(spool) if row["kind"] == "source"]
    missing = set(range(kept[0], kept[-1])) - {*kept}
    assert missing == set(range(told[0], told[1] + 1))
    assert len(missing) > 50


def test_a_slow_publisher_whose_samples_were_missed(tmp_path: Path) -> None:
    run(miss_slow(tmp_path / "s"))


async def miss_slow(spool: Path) -> None:
    """It numbers its samples, has no cache, and says nothing until all histories are in."""
    with router() as (where, session):
        client = node_settings("client", connect=where)
        publisher: Any = session.declare_publisher("k/a", congestion_control=BLOCK)

        def put(n: int) -> None:
            publisher.put(n.to_bytes(4, "little"), source_info=zenoh.SourceInfo(publisher.id, n))

        for n in (5, 9):
            async with aio.open(client) as ours:
                with Writer.open(spool) as writer:
                    async with Recorder(ours, writer, ["k/*"], spool=spool) as recorder:
                        await recorder.filled.wait()
                        await until(lambda: bool(publisher.matching_status.matching))
                        put(n)
                        await until(lambda: recorder.status().rows == 1)
    assert [number(row) for row in rows(spool)] == [5, 9]
    (told,) = [row for row in losses(spool) if row["kind"] == "source"]
    assert (told["from_sn"], told["to_sn"], told["count"]) == (6, 8, 3)


def mcap_messages(file: Path) -> list[int]:
    reader = pytest.importorskip("mcap.reader")
    with file.open("rb") as stream:
        found = reader.make_reader(stream).iter_messages(topics=["m/a"])
        return [int.from_bytes(message.data[:4], "little") for _, _, message in found]


@pytest.mark.long
def test_a_killed_recorder_of_mcap(tmp_path: Path) -> None:
    """What it had written is set aside, as a whole file, by the next one."""
    pytest.importorskip("mcap")
    file, aside = tmp_path / "out.mcap", tmp_path / "out-1.mcap"
    more = ("--format", "mcap")
    with router() as (where, session):
        with recording(file, *options(where, "m/*"), *more) as child:
            publisher = publisher_of(session, "m/a")
            for n in range(3000):
                publisher.put(n.to_bytes(4, "little") + random.Random(n).randbytes(1000))
            # Chunks are a second old at most.
            wait(lambda: file.stat().st_size > 3_000_000)
            child.kill()
            child.wait()
            wait(lambda: not publisher.matching_status.matching)
        with file.open("ab") as torn:
            torn.write(b"\x06" + (10**6).to_bytes(8, "little") + b"half a chunk")
        with recording(file, *options(where, "m/*"), *more) as child:
            wait(lambda: bool(publisher.matching_status.matching))
            last = (3000).to_bytes(4, "little")
            publisher.put(last)
            wait(lambda: mcap_written(file) == [last])
            said = end(child)
    assert f"{file} was not closed by its recorder: it is {aside} now" in said
    assert mcap_messages(aside) == list(range(3000))
    assert mcap_messages(file) == [3000]
    with recording(file, "-k", "m/*", *more) as child:
        _, said = child.communicate(timeout=TIMEOUT)
        assert child.returncode == 1
        assert "is there, and complete; give another name" in said
    assert mcap_messages(file) == [3000]


@pytest.mark.long
def test_mcap_on_a_full_disk(small_disk: Path) -> None:
    """It stops, says why, and what is there can be read."""
    pytest.importorskip("mcap")
    file = small_disk / "out.mcap"
    with router() as (where, session):
        more = ("--format", "mcap")
        with recording(file, *options(where, "m/*"), *more) as child:
            publisher = publisher_of(session, "m/a")
            for n in range(2000):
                publisher.put(n.to_bytes(4, "little") + random.Random(n).randbytes(10_000))
                if child.poll() is not None:
                    break
            _, said = child.communicate(timeout=TIMEOUT)
            assert child.returncode == 1
            assert str(file) in said
            assert "No space left on device" in said
            assert "Traceback" not in said
    found = mcap_messages(file)
    assert found == list(range(len(found)))
    assert len(found) > 1000
