"""The recorder beside a query: options, its process, and that it never stays behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.spark.test_live_sink import Router
from tests.unit.spool.rows import samples
from zenwire.columns.samples import SAMPLES
from zenwire.errors import ZError
from zenwire.spark.live import recorder as ordered
from zenwire.spark.live.options import Options
from zenwire.spark.live.selector import QueryOptions
from zenwire.spark.live.source import ZenohSource
from zenwire.spark.live.spill import Spill
from zenwire.spark.live.stream import SpoolStream
from zenwire.spool import Settings, Spool, Writer

zenoh = pytest.importorskip("zenoh")

PLACE = {"connect": "tcp/127.0.0.1:7", "checkpointLocation": "/c"}
LIVE = PLACE | {"keyexpr": "a/**"}


@pytest.fixture(scope="module")
def router() -> Iterator[Router]:
    found = Router()
    yield found
    found.session.close()


def eventually(true: Callable[[], Any]) -> Any:
    """What is true in the end."""
    until = time.monotonic() + 180
    while not (found := true()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


# Options.


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (PLACE, "what to record"),
        ({"connect": "tcp/1.2.3.4:5", "keyexpr": "a"}, "checkpointLocation too"),
        ({"mode": "peer", "keyexpr": "a", "spool": "x"}, "where to get it from"),
        (LIVE | {"keyexpr": "a//b"}, "key expression"),
        (LIVE | {"exclude": "**"}, "leaves nothing"),
        (LIVE | {"spool": "x,y"}, "one spool"),
        (LIVE | {"path": "x"}, "load"),
        (LIVE | {"sourceId": "a/b"}, "sourceId has letters"),
        (LIVE | {"mode": "server"}, "CLIENT, PEER, ROUTER"),
        (LIVE | {"connect": "nowhere"}, "nowhere"),
        (LIVE | {"keepBytes": "much"}, "500M"),
        (LIVE | {"keepAge": "long"}, "7d"),
        (LIVE | {"whenFull": "burst"}, "WAIT, DROP"),
        (LIVE | {"zenoh.scouting/multicst/enabled": "false"}, "did you mean 'multicast'"),
        (LIVE | {"zenoh.mode": "servant"}, "mode"),
        (LIVE | {"keyexp": "a"}, "did you mean keyexpr"),
    ],
)
def test_options_that_are_refused(said: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Options.of(CaseInsensitiveDict(said))


def test_a_table_is_not_live_and_losses_are_not_recorded() -> None:
    source = ZenohSource(CaseInsensitiveDict(LIVE))
    with pytest.raises(ValueError, match="selector"):
        source.reader(source.schema())
    losses = ZenohSource(CaseInsensitiveDict(LIVE | {"table": "losses"}))
    with pytest.raises(ValueError, match="without connect"):
        losses.streamReader(losses.schema())


def test_options_that_are_taken() -> None:
    said = LIVE | {
        "KeyExpr": "a/**,b/*",
        "exclude": "a/x",
        "sourceId": "fleet",
        "listen": "tcp/127.0.0.1:0",
        "keepBytes": "5G",
        "keepAge": "2h",
        "liveliness": "alive/*",
        "zenoh.transport/link/tx/lease": "5000",
        "zenoh.metadata": "plain text",
    }
    found = Options.of(CaseInsensitiveDict(said)).for_stream()
    # What is recorded is read, samples and tokens, and stays until then.
    assert (found.keyexpr, found.exclude) == (("a/**", "b/*", "alive/*"), ("a/x",))
    assert (found.spools, found.reader) == (("/c/spools/fleet",), "query")
    live = found.live
    assert live is not None
    order = live.order(patient=False)
    assert order == type(order).of_line(order.line())
    assert (order.spool, order.name) == ("/c/spools/fleet", "fleet")
    assert (order.include, order.exclude) == (("a/**", "b/*"), ("a/x",))
    assert order.liveliness == ("alive/*",)
    assert (order.keep_bytes, order.keep_age) == (5 * 10**9, 7200)
    assert order.overflow == "accept"
    drop = Options.of(CaseInsensitiveDict(said | {"whenFull": "drop"})).live
    assert drop is not None
    assert drop.order(patient=False).overflow == "lose"
    config = json.loads(order.config)
    assert config["mode"] == "client"
    assert config["transport"]["link"]["tx"]["lease"] == 5000
    assert config["metadata"] == "plain text"
    assert config["listen"]["endpoints"] == ["tcp/127.0.0.1:0"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"selector": "a"}, "whom to ask"),
        ({"connect": "tcp/1.2.3.4:5", "selector": "a//b"}, "key expression"),
        ({"connect": "tcp/1.2.3.4:5", "selector": "a/**,b/*"}, "JSON list"),
        ({"connect": "tcp/1.2.3.4:5", "selector": "[]"}, "empty"),
        ({"connect": "tcp/1.2.3.4:5", "selector": "a", "timeout": "-1"}, "seconds"),
        ({"connect": "tcp/1.2.3.4:5", "selector": "a", "target": "some"}, "BEST_MATCHING"),
        ({"connect": "tcp/1.2.3.4:5", "selector": "a", "consolidation": "x"}, "MONOTONIC"),
        ({"connect": "tcp/1.2.3.4:5", "selector": "a", "keyexpr": "a"}, "no option keyexpr"),
        ({"connect": "tcp/1.2.3.4:5", "selector": "a", "startingOffsets": "latest"}, "no option"),
    ],
)
def test_selectors_that_are_refused(said: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        QueryOptions.of(CaseInsensitiveDict(said))


def test_selectors_that_are_taken() -> None:
    said = {"connect": "tcp/1.2.3.4:5", "selector": '["a/**?_time=[now(-1h)..]", "b?x=1,2"]'}
    found = QueryOptions.of(CaseInsensitiveDict(said | {"target": "all", "timeout": "2.5"}))
    assert found.selectors == ("a/**?_time=[now(-1h)..]", "b?x=1,2")
    assert (found.target.name, found.consolidation.name, found.timeout) == ("ALL", "NONE", 2.5)
    source = ZenohSource(CaseInsensitiveDict(said))
    with pytest.raises(ValueError, match="keyexpr"):
        source.streamReader(source.schema())


def test_what_waits_is_kept_in_order_beyond_memory() -> None:
    chance = random.Random(3)
    spill = Spill(SAMPLES, memory=5000)
    put, taken = 0, 0
    reading = iter(spill)
    for _ in range(200):
        if chance.random() < 0.6 or put == taken:
            spill.put(samples(range(put, put + 10)))
            put += 10
        else:
            assert next(reading).column("time")[0].as_py() == taken
            taken += 10
    spill.close()
    rest = pa.Table.from_batches(list(reading), SAMPLES)
    assert rest.column("time").to_pylist() == list(range(taken, put))
    assert spill.spilled


def test_a_disk_that_takes_nothing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "nothing"))
    spill = Spill(SAMPLES, memory=1)
    for first in (0, 10):
        spill.put(samples(range(first, first + 10)))
    spill.close()
    with pytest.raises(OSError, match="nothing"):
        list(spill)


@pytest.mark.interop
def test_a_session_that_is_lost_among_replies_is_told() -> None:
    own = Router()

    def answer(query: Any) -> None:
        for number in range(10):
            query.reply("store/a", str(number))
        # It is not over as long as somebody has it.
        held.append(query)
        begun.set()

    begun, held = threading.Event(), list[Any]()
    own.session.declare_queryable("store/*", answer)
    said = {"connect": own.endpoint, "selector": "store/*", "columns": "offset,payload"}
    reader = QueryOptions.of(CaseInsensitiveDict(said)).reader()
    (part,) = reader.partitions()

    def close() -> None:
        begun.wait(60)
        own.session.close()

    closing = threading.Thread(target=close)
    closing.start()
    with pytest.raises(ZError, match="the session was lost while replies came"):
        list(reader.read(part))
    closing.join()


# The process.


def live(router: Router, folder: Path, **more: str) -> SpoolStream:
    said = {"connect": router.endpoint, "keyexpr": "a/**", "checkpointLocation": str(folder)}
    return SpoolStream(Options.of(CaseInsensitiveDict(said | more)).for_stream())


def offset_of(stream: SpoolStream) -> int:
    start = stream.initialOffset()
    return int(stream.latestOffset(start, ReadAllAvailable())["live"]["0"])


def publish(router: Router, numbers: range) -> None:
    block = zenoh.CongestionControl.BLOCK
    with router.session.declare_publisher("a/b", congestion_control=block) as publisher:
        eventually(lambda: publisher.matching_status.matching)
        for number in numbers:
            publisher.put(str(number))


def payloads(folder: Path) -> list[int]:
    log = Spool.open(folder / "spools" / "live").samples
    batches = [part.batch for part in log.read(log.earliest(), log.latest())]
    return [int(p) for p in pa.Table.from_batches(batches, SAMPLES)["payload"].to_pylist()]


@pytest.mark.long
@pytest.mark.interop
def test_a_recorder_that_is_killed_is_started_again(router: Router, tmp_path: Path) -> None:
    stream = live(router, tmp_path)
    try:
        assert offset_of(stream) == 0
        publish(router, range(300))
        eventually(lambda: offset_of(stream) == 300)
        assert stream._recorder is not None
        before = stream._recorder.pid
        assert before is not None
        os.kill(before, signal.SIGKILL)
        eventually(lambda: stream._recorder._process.poll() is not None)  # type: ignore[union-attr]
        assert offset_of(stream) == 300
        assert stream._recorder.pid != before
        publish(router, range(300, 400))
        eventually(lambda: offset_of(stream) == 400)
    finally:
        stream.stop()
    assert payloads(tmp_path) == list(range(400))
    # Everything is written, and nobody has it any more.
    assert Spool.open(tmp_path / "spools" / "live").manifest().closed is not None
    Writer.open(tmp_path / "spools" / "live").close()


@pytest.mark.long
def test_a_spool_that_somebody_writes_and_one_of_another_name(
    router: Router, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered, "PATIENCE", 0.1)
    with (
        Writer.open(tmp_path / "s", program="somebody"),
        pytest.raises(
            ZError, match=r"written by somebody .*; each query has a recorder of its own"
        ),
    ):
        live(router, tmp_path, spool=str(tmp_path / "s")).initialOffset()
    with pytest.raises(ZError, match="is named s, and sourceId is t"):
        live(router, tmp_path, spool=str(tmp_path / "s"), sourceId="t").initialOffset()


@pytest.mark.long
def test_a_network_that_is_not_there_is_told_at_first(tmp_path: Path) -> None:
    said = LIVE | {"spool": str(tmp_path / "s")}
    stream = SpoolStream(Options.of(CaseInsensitiveDict(said)))
    with pytest.raises(ZError, match=r"recorder of the query has stopped: (?s:.*)127.0.0.1:7"):
        stream.initialOffset()
    assert stream._recorder is None


PLANNER = """
import sys
from pyspark.sql.datasource import CaseInsensitiveDict
from zenwire.spark.live.options import Options
from zenwire.spark.live.stream import SpoolStream
stream = SpoolStream(Options.of(CaseInsensitiveDict(
    {"connect": sys.argv[1], "keyexpr": "a/**", "checkpointLocation": sys.argv[2]})))
stream.initialOffset()
print(stream._recorder.pid, flush=True)
sys.stdin.read()
"""


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # One that nobody has waited for is over all the same.
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.interop
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_a_recorder_ends_with_who_started_it(
    router: Router, tmp_path: Path, how: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PLANNER, router.endpoint, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as planner:
        assert planner.stdout is not None
        pid = int(planner.stdout.readline())
        publish(router, range(50))
        # What is on its way to it when it ends is not recorded.
        eventually(lambda: payloads(tmp_path) == list(range(50)))
        planner.send_signal(how)
    eventually(lambda: not is_there(pid))
    assert payloads(tmp_path) == list(range(50))
    assert Spool.open(tmp_path / "spools" / "live").manifest().closed is not None


@pytest.mark.long
def test_a_spool_that_was_there_is_read_from_its_end(router: Router, tmp_path: Path) -> None:
    with Writer.open(tmp_path / "spools" / "live", Settings()) as writer:
        writer.append(samples(range(7)))
    stream = live(router, tmp_path)
    try:
        assert stream.initialOffset()["live"]["0"] == 7
        assert live(router, tmp_path, startingOffsets="earliest")._options.starting is not None
    finally:
        stream.stop()
