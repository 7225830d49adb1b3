"""Writing: offsets, syncs, one writer, full disks, directories that go, and kills."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from pyarrow import ipc

from tests.unit.spool.rows import losses, numbers, samples
from zenwire.spool import (
    Retention,
    Settings,
    Spool,
    SpoolError,
    SpoolFailed,
    SpoolLocked,
    Writer,
)
from zenwire.spool.inspection import verify


def test_offsets_are_given_at_once_and_rows_come_after_a_sync(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "s", Settings(sync_interval=3600.0)) as writer:
        assert writer.append(samples(range(5))) == 0
        assert writer.append(samples(range(5, 7))) == 5
        spool = Spool.open(tmp_path / "s")
        assert spool.samples.latest() == 0
        assert writer.flush()
        assert spool.samples.latest() == 7
        assert numbers(spool.samples) == list(range(7))
        assert numbers(spool.samples, 3, 6) == [3, 4, 5]
        assert writer.counts()[:3] == (7, 7, 0)
    assert spool.manifest().closed is not None
    assert losses(tmp_path / "s") == []


def test_rows_come_by_themselves(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "s", Settings(sync_interval=0.01)) as writer:
        spool = Spool.open(tmp_path / "s")
        for i in range(3):
            writer.append(samples([i]))
            while spool.samples.latest() <= i:
                time.sleep(0.005)


def test_any_arrow_reader_reads_a_segment(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "s") as writer:
        writer.append(samples(range(100)))
        writer.flush()
        writer.append(samples(range(100, 150)))
    (file,) = (tmp_path / "s" / "samples").glob("*.arrow")
    with ipc.open_stream(file) as stream:
        assert stream.read_all().num_rows == 150


def test_segments_end_and_the_next_writer_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s"
    few = Settings(segment_bytes=1000, sync_interval=3600.0)
    for run in range(3):
        with Writer.open(path, few) as writer:
            for i in range(4):
                first = run * 40 + i * 10
                assert writer.append(samples(range(first, first + 10))) == first
                writer.flush()
    spool = Spool.open(path)
    assert len(spool.samples.segments()) == 12
    assert numbers(spool.samples) == list(range(120))
    assert numbers(spool.samples, 35, 81) == list(range(35, 81))
    assert all(s.end is not None for s in spool.samples.segments())
    assert verify(path).faults == ()


def test_other_columns_are_refused(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "s") as writer:
        rows = samples(range(3))
        with pytest.raises(SpoolError, match="no column time"):
            writer.append(rows.drop_columns(["time"]))
        with pytest.raises(SpoolError, match="column time is"):
            writer.append(rows.set_column(13, "time", rows.column("payload")))
        assert writer.append(rows) == 0


def test_a_second_writer_is_told_whose_it_is(tmp_path: Path) -> None:
    with (
        Writer.open(tmp_path / "s", program="first one"),
        pytest.raises(SpoolLocked, match=f"first one.*{os.getpid()}") as told,
    ):
        Writer.open(tmp_path / "s")
    assert "first one" in told.value.owner
    Writer.open(tmp_path / "s").close()


def test_a_closed_or_forked_writer_takes_nothing(tmp_path: Path) -> None:
    writer = Writer.open(tmp_path / "s")
    with warnings.catch_warnings():
        # Python warns of threads: that there is one, and that it is not copied, is the point here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            writer.append(samples([1]))
        except SpoolFailed:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    writer.close()
    writer.close()
    with pytest.raises(SpoolFailed, match="closed"):
        writer.append(samples([1]))
    # The child's end did not end the lock of its parent, and left the spool alone.
    assert verify(tmp_path / "s").faults == ()


def test_what_finds_no_room_is_counted_and_becomes_a_loss(tmp_path: Path) -> None:
    rows = samples(range(100), size=1000)
    settings = Settings(queue_bytes=4 * rows.nbytes, sync_interval=3600.0)
    with Writer.open(tmp_path / "s", settings) as writer:
        with writer._changed:
            # The thread that writes cannot take anything meanwhile.
            given = [writer.append(rows) for _ in range(7)]
        assert given == [0, 100, 200, 300, None, None, None]
        writer.flush()
        assert writer.append(rows) == 400
        assert writer.counts().lost == 300
    assert numbers(Spool.open(tmp_path / "s").samples) == list(range(100)) * 5
    (lost,) = losses(tmp_path / "s")
    assert (lost["kind"], lost["offset"], lost["count"]) == ("overflow", 400, 300)
    assert lost["bytes"] == 3 * rows.nbytes


def test_who_may_wait_loses_nothing(tmp_path: Path) -> None:
    rows = samples(range(1000), size=100)
    settings = Settings(queue_bytes=rows.nbytes, overflow="wait", sync_bytes=rows.nbytes)
    with Writer.open(tmp_path / "s", settings) as writer:
        threads = [
            threading.Thread(target=lambda: [writer.append(rows) for _ in range(20)])
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert numbers(Spool.open(tmp_path / "s").samples) == list(range(1000)) * 60
    assert losses(tmp_path / "s") == []


def test_a_caller_that_pauses_by_itself_loses_nothing(tmp_path: Path) -> None:
    rows = samples(range(100), size=1000)
    settings = Settings(queue_bytes=2 * rows.nbytes, overflow="accept", sync_interval=3600.0)
    with Writer.open(tmp_path / "s", settings) as writer:
        told = threading.Event()
        writer.on_room = told.set
        assert writer.queue_limit == 2 * rows.nbytes
        with writer._changed:
            # The thread that writes cannot take anything meanwhile.
            for _ in range(7):
                writer.append(rows)
            assert writer.queued_bytes == 7 * rows.nbytes
        writer.flush()
        assert told.is_set()
        assert writer.queued_bytes == 0
    assert numbers(Spool.open(tmp_path / "s").samples) == list(range(100)) * 7
    assert losses(tmp_path / "s") == []


def test_a_flush_ends_although_the_queue_is_never_empty(tmp_path: Path) -> None:
    rows = samples(range(1000), size=1000)
    settings = Settings(queue_bytes=8 * rows.nbytes, overflow="wait")
    over = threading.Event()
    with Writer.open(tmp_path / "s", settings) as writer:

        def fill() -> None:
            while not over.is_set():
                writer.append(rows)

        threads = [threading.Thread(target=fill) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            while writer.queued_bytes < 4 * rows.nbytes:
                time.sleep(0.001)
            for _ in range(3):
                before = writer.next_offset
                assert writer.flush(30)
                assert writer.counts().synced >= before
        finally:
            over.set()
            for thread in threads:
                thread.join()


def test_losses_that_the_caller_knows(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "s") as writer:
        writer.append(samples(range(5)))
        writer.lose("session", "tcp/10.0.0.1:7447 closed", count=None)
        writer.flush()
    (lost,) = losses(tmp_path / "s")
    assert (lost["kind"], lost["offset"], lost["count"]) == ("session", 5, None)


def test_gaps_in_source_numbers_become_losses(tmp_path: Path) -> None:
    def of(sns: list[int]) -> object:
        count = len(sns)
        return samples(sns, source_sn=sns, source_zid=[b"z"] * count, source_eid=[3] * count)

    with Writer.open(tmp_path / "s") as writer:
        writer.append(of([0, 1, 2]))
        writer.flush()
        writer.append(of([5, 6, 9]))
    found = [(x["offset"], x["from_sn"], x["to_sn"], x["count"]) for x in losses(tmp_path / "s")]
    assert found == [(3, 3, 4, 2), (5, 7, 8, 2)]


def test_a_directory_that_is_taken_away_stops_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "s"
    writer = Writer.open(path, Settings(sync_interval=0.01))
    writer.append(samples(range(5)))
    writer.flush()
    shutil.rmtree(path)
    writer.append(samples(range(5)))
    with pytest.raises(SpoolFailed, match="taken away"):
        writer.flush()
    with pytest.raises(SpoolFailed, match="taken away"):
        writer.append(samples(range(5)))
    with pytest.raises(SpoolFailed, match=r"taken away.*rows could not be written"):
        writer.close()
    with pytest.raises(SpoolError, match="no spool"):
        Spool.open(path)
    # Nothing of it is in the way of another one.
    Writer.open(path).close()


def test_a_directory_that_another_one_replaced_stops_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "s"
    writer = Writer.open(path)
    writer.append(samples(range(5)))
    writer.flush()
    path.rename(tmp_path / "t")
    with Writer.open(path) as other:
        other.append(samples(range(3)))
    writer.append(samples(range(5, 10)))
    with pytest.raises(SpoolFailed, match="another is in its place"):
        writer.flush()
    with pytest.raises(SpoolFailed):
        writer.close()
    assert numbers(Spool.open(path).samples) == [0, 1, 2]
    with Writer.open(tmp_path / "t"):
        pass
    assert set(range(5)) <= set(numbers(Spool.open(tmp_path / "t").samples))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 8 MiB, where one may be mounted."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = shutil.which("mount")
    done = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(path)], check=False
    )
    if not done or done.returncode:
        pytest.skip("no filesystem can be mounted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_full_disk_is_waited_for_and_what_finds_no_room_is_told(small_disk: Path) -> None:
    path = small_disk / "s"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(7 << 20))
    rows = samples(range(100), size=1000)
    few = Settings(queue_bytes=8 * rows.nbytes, sync_interval=0.01, sync_bytes=2 * rows.nbytes)
    with Writer.open(path, few) as writer:
        given = 0
        while not writer.counts().trouble:
            # On a busy machine it must not be the queue that is full.
            given += writer.append(rows) is not None
            writer.flush(timeout=0.05)
        while not writer.counts().lost:
            given += writer.append(rows) is not None
        counts = writer.counts()
        assert "No space" in counts.trouble
        spool = Spool.open(path)
        assert spool.samples.latest() == counts.synced
        assert numbers(spool.samples) == list(range(100)) * (counts.synced // 100)
        ballast.unlink()
        assert writer.flush(timeout=60)
        assert writer.counts().trouble == ""
        # It goes on, and offsets too.
        assert writer.append(rows) == given * 100
    assert numbers(Spool.open(path).samples) == list(range(100)) * (given + 1)
    (lost,) = losses(path)
    assert lost["kind"] == "overflow"
    assert "No space" in str(lost["reason"])
    assert (lost["offset"], lost["count"]) == (given * 100, counts.lost)
    assert verify(path).faults == ()


def test_a_disk_that_stays_full_ends_with_an_error_and_nothing_corrupt(small_disk: Path) -> None:
    path = small_disk / "s"
    rows = samples(range(100), size=10_000)
    writer = Writer.open(path, Settings(sync_interval=0.01))
    for _ in range(10):
        writer.append(rows)
    with pytest.raises(SpoolFailed, match=r"No space.*rows could not be written"):
        writer.close(timeout=0.5)
    assert verify(path).faults == ()
    kept = numbers(Spool.open(path).samples)
    assert kept == (list(range(100)) * 10)[: len(kept)]
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    with Writer.open(path) as again:
        assert again.append(rows) == len(kept)
    assert [x["kind"] for x in losses(path)][:1] == ["recorder"]


def test_a_clock_that_jumps_changes_no_offset(tmp_path: Path) -> None:
    clock = [1_000_000_000_000]
    settings = Settings(segment_age=10.0, sync_interval=3600.0)
    with Writer.open(tmp_path / "s", settings, now=lambda: clock[0]) as writer:
        at = 0
        for jump in (0, 10**18, -(10**18), -9 * 10**18, 5, 2 * 10**18):
            clock[0] += jump
            assert writer.append(samples(range(at, at + 5), time=clock[0])) == at
            writer.flush()
            at += 5
    assert numbers(Spool.open(tmp_path / "s").samples) == list(range(at))
    assert verify(tmp_path / "s").faults == ()


def test_rows_of_10_mb_and_100_000_keys(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "s", Settings(overflow="wait")) as writer:
        for i in range(6):
            writer.append(samples([i], size=10_000_000))
        big = samples(range(6, 12), size=10_000_000)
        writer.append(big)
        keys = [f"fleet/{i}/speed" for i in range(100_000)]
        writer.append(samples(range(12, 100_012), key=keys))
    spool = Spool.open(tmp_path / "s")
    assert numbers(spool.samples) == list(range(100_012))
    assert numbers(spool.samples, 8, 10) == [8, 9]
    found = [k for rows in spool.samples.read(12, 100_012) for k in rows.batch["key"].to_pylist()]
    assert found == keys
    # To read one row of many large ones, not all of them are looked at.
    assert max(e.length for _, e in spool.samples.entries(0, 12)) < 21_000_000


CHILD = """
import sys
from tests.unit.spool.rows import samples
from zenwire.spool import Settings, Writer

writer = Writer.open(sys.argv[1], Settings(sync_interval=0.003, segment_bytes=60_000))
at = writer.append(samples([])) or 0
print(at, flush=True)
while True:
    assert writer.append(samples(range(at, at + 7), size=200)) == at
    at += 7
    if at % 3 == 0:
        writer.flush()
        print(at, flush=True)
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_everything_that_was_synced(tmp_path: Path) -> None:
    chance = random.Random(5)
    path = tmp_path / "s"
    synced = 0
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            began = int(child.stdout.readline())
            spool = Spool.open(path)
            assert began >= synced
            for _line in range(chance.randrange(1, 60)):
                child.stdout.readline()
            time.sleep(chance.random() / 50)
            child.send_signal(signal.SIGKILL)
            said = child.stdout.read().split()
        synced = max([began, *map(int, said)])
        assert spool.samples.latest() >= synced
        assert numbers(spool.samples) == list(range(spool.samples.latest()))
        assert verify(path).faults == ()
    with Writer.open(path) as writer:
        end = writer.append(samples([]))
    assert numbers(Spool.open(path).samples) == list(range(end or 0))
    assert sum("did not close" in str(x["reason"]) for x in losses(path)) == 8


DYING = """
import os, sys
from tests.unit.spool.rows import samples
from zenwire.spool import Settings, Writer

writer = Writer.open(sys.argv[1], Settings(sync_interval=3600.0, sync_bytes=1 << 30))
sources = {"source_zid": [b"z"] * 5, "source_eid": [1] * 5}
writer.append(samples(range(5), source_sn=range(5), **sources))
writer.flush()
log = writer._disk.samples
if sys.argv[2] == "losses":
    # Dies between the syncs of both: the rows are in the file, and not published.
    log.sync = lambda now: os.kill(os.getpid(), 9)
writer.append(samples(range(5, 10), source_sn=range(50, 55), time=100, **sources))
if sys.argv[2] == "pump":
    # Dies when the rows are in the file, and nothing was said of the gap.
    pump = log.pump
    log.pump = lambda now: (pump(now), os.kill(os.getpid(), 9))
writer.flush()
"""


@pytest.mark.parametrize("dies", ["pump", "losses"])
def test_rows_that_were_not_published_are_not_settled(tmp_path: Path, dies: str) -> None:
    """They are kept; but whether what is missing before them was told, nobody can know."""
    path = tmp_path / "s"
    done = subprocess.run([sys.executable, "-c", DYING, str(path), dies], check=False)
    assert done.returncode == -signal.SIGKILL
    assert numbers(Spool.open(path).samples) == list(range(5))
    told = [x for x in losses(path) if x["kind"] == "source"]
    assert [(x["from_sn"], x["to_sn"]) for x in told] == ([(5, 49)] if dies == "losses" else [])
    with Writer.open(path) as writer:
        assert (writer.settled, writer.next_offset) == (5, 10)
    assert numbers(Spool.open(path).samples) == list(range(10))
    (ended,) = [x for x in losses(path) if x["kind"] == "recorder"]
    # Nothing was recorded from the last row on until it was noticed.
    assert (ended["offset"], ended["time"]) == (10, 104)
    with Writer.open(path) as writer:
        assert (writer.settled, writer.next_offset) == (10, 10)


def test_a_disk_that_fails_to_sync_gets_everything_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that a failed sync had may be gone, and the next sync would not say so."""
    real = os.fsync
    failing: set[int] = set()
    failed = []

    def fsync(fd: int) -> None:
        if fd in failing:
            failing.discard(fd)
            # What was written since the last sync did not reach the disk.
            size = os.fstat(fd).st_size
            os.pwrite(fd, bytes(min(size, 64)), size - min(size, 64))
            failed.append(fd)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(fd)

    path = tmp_path / "s"
    with Writer.open(path, Settings(sync_interval=3600.0)) as writer:
        writer.append(samples(range(10)))
        writer.flush()
        current = writer._disk.samples._current
        assert current is not None
        monkeypatch.setattr(os, "fsync", fsync)
        for first in range(10, 60, 10):
            writer.append(samples(range(first, first + 10)))
            failing |= set(current._fds)
            writer.flush()
    assert len(failed) == 10
    assert numbers(Spool.open(path).samples) == list(range(60))
    assert verify(path).faults == ()
    assert losses(path) == []


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_what_a_recorder_does(tmp_path: Path, seed: int) -> None:
    """Appends, syncs, restarts, crashes, retention and readers against a list."""
    chance = random.Random(seed)
    path = tmp_path / "s"
    truth: list[int] = []
    position = 0
    keep = Retention(bytes=chance.choice([5_000, 50_000]))
    settings = Settings(segment_bytes=3000, sync_interval=0.002, retention=keep)
    writer = Writer.open(path, settings)
    Spool.open(path).register("r", 0)
    for _ in range(60):
        match chance.choice(["append", "append", "append", "flush", "close", "crash", "read"]):
            case "append":
                rows = chance.randrange(1, 30)
                more = range(len(truth), len(truth) + rows)
                assert writer.append(samples(more, size=chance.choice([8, 300]))) == len(truth)
                truth += more
            case "flush":
                writer.flush()
                assert Spool.open(path).samples.latest() == len(truth)
            case "close":
                writer.close()
                writer = Writer.open(path, settings)
            case "crash":
                # As if it had been killed after its last sync: a copy is taken up.
                writer.flush()
                copy = path.with_name(f"s{len(list(tmp_path.iterdir()))}")
                shutil.copytree(path, copy)
                writer.close()
                path = copy
                writer = Writer.open(path, settings)
            case "read":
                spool = Spool.open(path)
                end = spool.samples.latest()
                assert numbers(spool.samples, position, end) == truth[position:end]
                position = chance.randrange(position, end + 1)
                spool.commit("r", position)
    writer.close()
    assert numbers(Spool.open(path).samples, position) == truth[position:]
    assert verify(path).faults == ()
