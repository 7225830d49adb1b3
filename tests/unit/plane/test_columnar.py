"""Columnar subscribers: how batches are cut, what waits and what is lost, in both APIs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from tests.ports import free_port

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

import pyarrow as pa

import zenwire
from tests.unit.api.nodes import config, run, until, within
from zenwire import aio
from zenwire.api.columnar import MAX_BYTES, ROWS_MAX
from zenwire.columns.collect import BYTES_MAX, Collector
from zenwire.columns.samples import SAMPLES
from zenwire.wire.data import Put
from zenwire.wire.values import QoS


def test_rows_of_puts_and_deletions() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            subscriber = await session.declare_subscriber("demo/**", aio.columnar(interval=0.01))
            before = time.time_ns()
            await session.put("demo/a", b"one", encoding="application/json;v1", attachment=b"x")
            await session.put("demo/b", b"", priority=aio.Priority.REAL_TIME)
            await session.delete("demo/a", timestamp=session.new_timestamp())
            rows: list[Any] = []
            while len(rows) < 3:
                batch = await within(subscriber.recv())
                assert batch.schema == SAMPLES
                batch.validate(full=True)
                rows += batch.to_pylist()
            assert [row["key"] for row in rows] == ["demo/a", "demo/b", "demo/a"]
            assert [row["kind"] for row in rows] == [0, 0, 1]
            assert [row["payload"] for row in rows] == [b"one", b"", b""]
            assert [row["attachment"] for row in rows] == [b"x", None, None]
            assert [row["encoding_schema"] for row in rows] == [b"v1", None, None]
            assert rows[0]["encoding"] is not None
            assert rows[1]["encoding"] is None
            assert rows[1]["qos"] is not None
            assert rows[2]["timestamp"] is not None
            assert rows[2]["timestamp_id"] == session.core.node.zid.raw
            assert all(row["reliable"] for row in rows)
            assert all(before <= row["time"] <= time.time_ns() for row in rows)

    run(main())


def test_a_batch_is_cut_by_its_rows() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            handler = aio.columnar(rows=10, interval=60.0, columns=["key"])
            subscriber = await session.declare_subscriber("k/*", handler)
            for i in range(25):
                await session.put(f"k/{i}", b"")
            sizes = [(await subscriber.recv()).num_rows for _ in range(2)]
            assert sizes == [10, 10]
            assert subscriber.try_recv() is None
            await subscriber.undeclare()
            # What there is, is given at the end.
            last: list[Any] = [batch async for batch in subscriber]
            assert [batch.num_rows for batch in last] == [5]
            assert last[0].schema.names == ["key"]
            assert last[0]["key"].to_pylist() == [f"k/{i}" for i in range(20, 25)]

    run(main())


def test_a_batch_is_cut_by_its_bytes() -> None:
    collected = Collector(1000, ["payload"])
    put = Put(payload=bytes(BYTES_MAX // 4))
    for _ in range(4):
        assert not collected.full
        collected.put("k", put, QoS(), True, 0)
    assert collected.full
    batch = collected.cut()
    assert batch is not None
    assert batch.num_rows == 4
    assert not collected.full
    assert collected.cut() is None


def test_what_does_not_fit_is_dropped_and_counted_by_rows(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            newest = aio.columnar(rows=4, interval=60.0, capacity=2)
            oldest = aio.columnar(rows=4, interval=60.0, capacity=2, overflow="drop_oldest")
            first = await session.declare_subscriber("k", newest)
            last = await session.declare_subscriber("k", oldest)
            for i in range(16):
                await session.put("k", str(i))
            assert first.dropped == last.dropped == 8
            for subscriber, start in ((first, 0), (last, 8)):
                got = [(await subscriber.recv())["payload"].to_pylist() for _ in range(2)]
                assert [*got[0], *got[1]] == [str(i).encode() for i in range(start, start + 8)]

    run(main())
    assert "does not keep up" in caplog.text


def test_bytes_that_wait_are_bounded() -> None:
    channel = aio.columnar(capacity=1000).open()
    size = MAX_BYTES // 4
    batch = pa.record_batch([pa.array([bytes(size)])], ["payload"])
    for _ in range(6):
        channel.put(batch)
    assert len(channel) == 3
    assert channel.dropped == 3


@pytest.mark.parametrize("indirect", [True, False])
def test_a_callback_gets_batches(indirect: bool) -> None:
    async def main() -> None:
        got: list[Any] = []
        over: list[bool] = []
        callback = aio.Callback(got.append, lambda: over.append(True), indirect=indirect)
        async with aio.open(config()) as session:
            subscriber = await session.declare_subscriber("k", aio.columnar(callback, rows=2))
            assert subscriber.handler is None
            for i in range(5):
                await session.put("k", str(i))
            await until(lambda: len(got) == 3)
            await subscriber.undeclare()
            await until(lambda: over)
        assert [batch.num_rows for batch in got] == [2, 2, 1]

    run(main())


def test_a_coroutine_function_gets_batches() -> None:
    async def main() -> None:
        got: list[int] = []

        async def take(batch: Any) -> None:
            await asyncio.sleep(0)
            got.append(batch.num_rows)

        async with aio.open(config()) as session:
            await session.declare_subscriber("k", aio.columnar(take, rows=1))
            for _ in range(3):
                await session.put("k", b"")
            await until(lambda: len(got) == 3)

    run(main())


def test_tokens_as_rows() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            handler = aio.columnar(interval=0.01, columns=["key", "kind"])
            subscriber = await session.liveliness().declare_subscriber("t/*", handler)
            token = await session.liveliness().declare_token("t/1")
            await token.undeclare()
            rows: list[Any] = []
            while len(rows) < 2:
                rows += (await within(subscriber.recv())).to_pylist()
            assert rows == [{"key": "t/1", "kind": 0}, {"key": "t/1", "kind": 1}]

    run(main())


def test_threads() -> None:
    port = free_port()
    with zenwire.open(config(listen=port)) as session, zenwire.open(config(connect=port)) as other:
        subscriber = session.declare_subscriber("k/*", zenwire.columnar(interval=0.01))
        called: list[tuple[int, str]] = []
        done = threading.Event()

        def got(batch: Any) -> None:
            called.append((batch.num_rows, threading.current_thread().name))
            if sum(n for n, _ in called) == 1000:
                done.set()

        kept = session.declare_subscriber("k/*", zenwire.columnar(got, interval=0.01))
        publisher = other.declare_publisher(
            "k/a", congestion_control=zenwire.CongestionControl.BLOCK
        )
        while not publisher.matching_status.matching:
            time.sleep(0.01)
        for i in range(1000):
            publisher.put(str(i))
        rows: list[bytes] = []
        batches: Any = subscriber
        for batch in batches:
            rows += batch["payload"].to_pylist()
            if len(rows) == 1000:
                break
        assert rows == [str(i).encode() for i in range(1000)]
        assert done.wait(30)
        assert {name for _, name in called} == {"zenwire-callback"}
        assert subscriber.dropped == kept.dropped == 0
        kept.undeclare()
        subscriber.undeclare()


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"rows": 0}, "rows"),
        ({"rows": ROWS_MAX + 1}, "rows"),
        ({"interval": 0}, "interval"),
        ({"columns": ["nothing"]}, "no column"),
        ({"columns": []}, "columns"),
        ({"columns": ["key", "key"]}, "differ"),
        ({"capacity": 0}, "at least one"),
        ({"overflow": "drop"}, "policy"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        zenwire.columnar(**wrong)


def test_it_says_what_it_needs() -> None:
    """Without the extra, everything else works."""
    program = (
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *more: None if name == 'numba' else find(name, *more)\n"
        "import zenwire\n"
        "config = {'mode': 'peer', 'listen': {'endpoints': []},"
        " 'scouting': {'multicast': {'enabled': False}}}\n"
        "with zenwire.open(config) as session:\n"
        "    subscriber = session.declare_subscriber('k')\n"
        "    session.put('k', 'v')\n"
        "    print(subscriber.recv().payload.to_string())\n"
        "try:\n"
        "    zenwire.columnar()\n"
        "except ImportError as e:\n"
        "    print(e.name, e)\n"
    )
    done = subprocess.run(  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[0] == "v", done.stderr
    assert "numba" in done.stdout
    assert "zenwire[fast]" in done.stdout


def test_it_can_be_shown() -> None:
    assert "rows=5" in repr(zenwire.columnar(rows=5))
