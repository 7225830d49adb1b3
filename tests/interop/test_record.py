"""Recording what the reference publishes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zenoh
import zenoh.ext

from tests.interop.exchange import node_settings, opened
from tests.ports import free_port
from tests.unit.api.nodes import TIMEOUT, run, until
from zenwire import aio
from zenwire.columns.samples import SAMPLES
from zenwire.record import Recorder
from zenwire.spool import Spool, Writer

BLOCK = zenoh.CongestionControl.BLOCK


def rows(spool: Path) -> list[dict[str, Any]]:
    log = Spool.open(spool).samples
    batches = [part.batch for part in log.read(0, log.latest())]
    found: list[dict[str, Any]] = pa.Table.from_batches(batches, SAMPLES).to_pylist()
    return found


def losses(spool: Path) -> list[dict[str, Any]]:
    log = Spool.open(spool).losses
    return [row for part in log.read(0, log.latest()) for row in part.batch.to_pylist()]


def test_all_of_a_sample_is_kept(tmp_path: Path) -> None:
    run(record_everything(tmp_path))


async def record_everything(tmp_path: Path) -> None:
    port = free_port()
    ours = node_settings("peer", listen=f"tcp/127.0.0.1:{port}")
    theirs = node_settings("peer", connect=f"tcp/127.0.0.1:{port}")
    async with aio.open(ours) as session:
        with Writer.open(tmp_path / "s") as writer:
            async with (
                Recorder(session, writer, ["r/*", "*/a"], exclude=["r/x"]) as recorder,
                opened(theirs) as other,
            ):
                publisher: Any = other.declare_publisher("r/a", congestion_control=BLOCK)
                await until(lambda: bool(publisher.matching_status.matching))
                for n in range(3000):
                    publisher.put(n.to_bytes(4, "little"))
                other.put("r/x", b"excluded", congestion_control=BLOCK)
                other.put(
                    "s/a",
                    '{"n": 1}',
                    encoding="application/json",
                    attachment=b"att",
                    priority=zenoh.Priority.DATA_HIGH,
                    timestamp=other.new_timestamp(),
                    congestion_control=BLOCK,
                )
                other.delete("r/gone", congestion_control=BLOCK)
                await until(lambda: recorder.status().rows == 3002)
            assert recorder.status().lost == 0
    found = rows(tmp_path / "s")
    poses = [row for row in found if row["key"] == "r/a"]
    assert [int.from_bytes(row["payload"], "little") for row in poses] == list(range(3000))
    (event,) = [row for row in found if row["key"] == "s/a"]
    assert (event["payload"], event["attachment"]) == (b'{"n": 1}', b"att")
    assert event["timestamp"] is not None
    (gone,) = [row for row in found if row["key"] == "r/gone"]
    assert (gone["kind"], gone["payload"]) == (1, b"")
    assert len(found) == 3002
    assert [row["kind"] for row in losses(tmp_path / "s")] in ([], ["session"])


@contextmanager
def recording(spool: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The command; killed, if it does not end."""
    command = [sys.executable, "-m", "zenwire", "record", "--to", str(spool), *more]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def wait(true: Callable[[], bool], seconds: float = TIMEOUT) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it took too long"
        time.sleep(0.02)


def number(row: dict[str, Any]) -> int:
    return int.from_bytes(row["payload"], "little")


def safe(spool: Path) -> int:
    try:
        return len(rows(spool))
    except Exception:  # noqa: BLE001 # there is none yet
        return 0


def test_what_was_missed_comes_from_the_cache_or_stands_in_losses(tmp_path: Path) -> None:
    """A recorder is killed twice, under an advanced publisher whose cache is smaller than a hole."""
    spool, port = tmp_path / "s", free_port()
    where = f"tcp/127.0.0.1:{port}"
    options = ("-m", "client", "-e", where, "-k", "k/**", "--cfg", "connect/timeout_ms:-1")
    config = zenoh.Config.from_json5(json.dumps(node_settings("router", listen=where)))
    with zenoh.open(config) as router:
        ext: Any = zenoh.ext  # its stubs are not complete
        publisher = ext.declare_advanced_publisher(
            router,
            "k/a",
            cache=ext.CacheConfig(max_samples=100),
            sample_miss_detection=ext.MissDetectionConfig(),
            publisher_detection=True,
            congestion_control=BLOCK,
        )
        sent = 0

        def send(count: int) -> None:
            nonlocal sent
            for n in range(sent, sent + count):
                publisher.put(n.to_bytes(4, "little"))
            sent += count

        send(10)
        with recording(spool, *options) as first:
            wait(lambda: safe(spool) >= 10)
            send(1000)
            wait(lambda: safe(spool) >= 1010)
            first.kill()
            first.wait()
        assert [number(row) for row in rows(spool)] == list(range(1010))
        send(60)
        with recording(spool, *options) as second:
            wait(lambda: safe(spool) >= 1070)
            second.kill()
            second.wait()
        assert sorted(number(row) for row in rows(spool)) == list(range(1070)), (
            "all recovered, once"
        )
        send(400)
        with recording(spool, *options) as third:
            wait(lambda: safe(spool) >= 1170)
            send(50)
            wait(lambda: safe(spool) >= 1220)
            third.send_signal(signal.SIGTERM)
            _, said = third.communicate(timeout=TIMEOUT)
            assert third.returncode == 143, said
        publisher.undeclare()
    kept = [number(row) for row in rows(spool)]
    assert len(kept) == len(set(kept)), "nothing is there twice"
    gone = [row for row in losses(spool) if row["kind"] == "source"]
    missing = sorted(set(range(sent)) - set(kept))
    assert missing == list(range(1070, 1370))
    assert sum(row["count"] for row in gone) == len(missing)
    assert [(row["from_sn"], row["to_sn"]) for row in gone] == [(1070, 1369)]


def test_a_router_that_restarts(tmp_path: Path) -> None:
    spool, port = tmp_path / "s", free_port()
    where = f"tcp/127.0.0.1:{port}"
    settings = json.dumps(node_settings("router", listen=where))
    options = ("-m", "client", "-e", where, "-k", "k/*", "--cfg", "connect/timeout_ms:-1")
    with recording(spool, *options) as child:
        for turn in range(2):
            with zenoh.open(zenoh.Config.from_json5(settings)) as router:
                publisher: Any = router.declare_publisher("k/a", congestion_control=BLOCK)
                wait(lambda: bool(publisher.matching_status.matching))  # noqa: B023 # at once
                for n in range(100):
                    publisher.put((100 * turn + n).to_bytes(4, "little"))
                wait(lambda: safe(spool) >= 100 * turn + 100)  # noqa: B023 # at once
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=TIMEOUT)
        assert child.returncode == 130
    assert [number(row) for row in rows(spool)] == list(range(200))
    assert "session" in {row["kind"] for row in losses(spool)}


def mcap_written(file: Path) -> list[bytes]:
    """What has been written of "m/a" so far; its recorder may not have ended."""
    from mcap.exceptions import EndOfFile
    from mcap.records import Channel, Message
    from mcap.stream_reader import StreamReader

    found, topics = [], dict[int, str]()
    with file.open("rb") as stream, suppress(EndOfFile):
        for record in StreamReader(stream).records:
            if isinstance(record, Channel):
                topics[record.id] = record.topic
            elif isinstance(record, Message) and topics[record.channel_id] == "m/a":
                found.append(record.data)
    return found


def test_mcap(tmp_path: Path) -> None:
    reader = pytest.importorskip("mcap.reader")
    port = free_port()
    where = f"tcp/127.0.0.1:{port}"
    settings = json.dumps(node_settings("peer", connect=where))
    file = tmp_path / "out.mcap"
    options = ("-l", where, "--no-multicast-scouting", "-k", "m/**", "--format", "mcap")
    with recording(file, *options) as child, zenoh.open(zenoh.Config.from_json5(settings)) as other:
        publisher: Any = other.declare_publisher("m/a", congestion_control=BLOCK)
        wait(lambda: bool(publisher.matching_status.matching))
        for n in range(500):
            publisher.put(json.dumps({"n": n}), encoding="application/json")
        wait(lambda: len(mcap_written(file)) == 500)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=TIMEOUT)
    with file.open("rb") as stream:
        found = [
            (channel.topic, channel.message_encoding, json.loads(message.data)["n"])
            for _, channel, message in reader.make_reader(stream).iter_messages(topics=["m/a"])
        ]
    assert found == [("m/a", "json", n) for n in range(500)]
