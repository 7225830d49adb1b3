"""The same bytes to a node with the columnar data plane and to one without: the same for programs."""

from __future__ import annotations

import copy
from dataclasses import asdict
from typing import Any

import pytest

from tests.ports import free_port

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

import pyarrow as pa

from tests.unit.api.nodes import config, run, until, within
from tests.unit.plane.raw import Raw
from tests.unit.plane.talk import Talk, stream_of
from zenwire import aio
from zenwire.columns.collect import schema_of
from zenwire.columns.samples import SAMPLES
from zenwire.node import plane

KEYS = ("**", "demo/**", "demo/one/*", "other/**", "nothing/**")
_SOME = ("payload", "encoding", "qos")


def shown(sample: aio.Sample) -> tuple[Any, ...]:
    """All that a program can see of a sample."""
    info = sample.source_info
    return (
        str(sample.key_expr),
        bytes(sample.payload),
        sample.kind,
        str(sample.encoding),
        str(sample.timestamp),
        None if sample.attachment is None else bytes(sample.attachment),
        None if info is None else (str(info.source_id), info.source_sn),
        sample.priority,
        sample.congestion_control,
        sample.express,
        sample.reliability,
        None if sample.timestamp_stack is None else 1,
        sample.body,
    )


async def heard(seed: int, fast: str, most: int, **settings: Any) -> dict[str, Any]:
    """What a session makes of a talk."""
    port = free_port()
    async with aio.open(config(listen=port, **settings)) as session:
        assert session.core.node.plane.always is (fast == "all")
        batches = {key: await session.declare_subscriber(key, aio.columnar()) for key in KEYS}
        some = await session.declare_subscriber(
            "demo/**",
            aio.columnar(rows=7, interval=60.0, columns=_SOME, capacity=10_000),
        )
        channel = await session.declare_subscriber("**", aio.FifoChannel(100_000))
        ring = await session.declare_subscriber("demo/**", aio.RingChannel(5))
        called: list[aio.Sample] = []
        later: list[aio.Sample] = []

        async def wait(sample: aio.Sample) -> None:
            later.append(sample)

        await session.declare_subscriber("demo/one/*", called.append)
        await session.declare_subscriber("other/**", aio.Callback(wait, capacity=100_000))
        raw = await Raw.connect(port)
        talk = Talk(seed, raw.first_sn, raw.mask)
        stream = stream_of(talk.batches(150))
        node = session.core.node
        (carrier,) = node.adjacency._carriers
        transport = carrier.machine.stats
        whole = transport.rx_bytes + len(stream)
        await raw.say(*talk.split(stream, most))
        await until(lambda: transport.rx_bytes == whole and not carrier._behind)
        stats = node.stats()
        received = asdict(stats.neighbours[0].transport)
        # Waited for above; a first number that is drawn at random is longer or shorter.
        assert received.pop("rx_bytes") == whole
        tables = {}
        for key, subscriber in batches.items():
            await subscriber.undeclare()
            tables[key] = pa.Table.from_batches([batch async for batch in subscriber], SAMPLES)
            tables[key].validate(full=True)
        await some.undeclare()
        cut = [batch async for batch in some]
        found = {
            "tables": {
                key: table.drop_columns(["time"]).to_pylist() for key, table in tables.items()
            },
            "cut": [batch.num_rows for batch in cut],
            "some": pa.Table.from_batches(cut, schema_of(_SOME)).to_pylist(),
            "channel": [shown(one) for one in channel.handler._items],
            "ring": [shown(one) for one in ring.handler._items],
            "called": [shown(one) for one in called],
            "later": [shown(one) for one in later],
            "routing": copy.deepcopy(asdict(stats.routing)),
            "received": {name: n for name, n in received.items() if not name.startswith("tx")},
            "dropped": [one.dropped for one in (channel, ring, some)],
            "foreign": session.core.foreign,
        }
        await raw.close()
        return found


@pytest.mark.parametrize("seed", range(6))
def test_programs_see_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for fast in ("0", "all"):
        monkeypatch.setenv(plane.VARIABLE, fast)
        found[fast] = run(heard(seed, fast, [500, 5_000, 100_000][seed % 3]))
    objects, rows = found["0"], found["all"]
    for what in objects:
        assert rows[what] == objects[what], what
    assert len(objects["tables"]["**"]) == len(objects["channel"]) > 1000
    assert objects["called"]
    assert objects["later"]
    assert objects["routing"]["unknown_scope"]
    assert objects["routing"]["bad_key"]
    assert objects["routing"]["shared_memory"]
    assert max(objects["cut"]) == 7


def test_with_a_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for fast in ("0", "all"):
        monkeypatch.setenv(plane.VARIABLE, fast)
        found[fast] = run(heard(0, fast, 5_000, namespace="demo"))
    assert found["all"] == found["0"]
    assert {row["key"] for row in found["0"]["tables"]["**"]} >= {"one", "two", "three"}


def test_times_that_must_be_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """With timestamping, each sample moves the clock, and those of the future are dropped."""
    found = {}
    timestamping = {"enabled": True, "drop_future_timestamp": True}
    for fast in ("0", "all"):
        monkeypatch.setenv(plane.VARIABLE, fast)
        found[fast] = run(heard(1, fast, 5_000, timestamping=timestamping))
    for what in ("some", "received", "routing", "dropped"):
        assert found["all"][what] == found["0"][what], what
    assert 0 < len(found["all"]["channel"]) < found["all"]["received"]["rx_messages"] - 200


def test_a_fault_ends_one_link_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> tuple[Any, int]:
        port = free_port()
        async with aio.open(config(listen=port)) as session:
            subscriber = await session.declare_subscriber("**", aio.columnar(columns=["key"]))
            raw = await Raw.connect(port)
            talk = Talk("fault", raw.first_sn, raw.mask)
            good = [talk.aliases(), *(talk.plain() for _ in range(20))]
            read = stream_of([*good, talk.plain()[:-2]])
            after = stream_of([talk.plain()])
            (carrier,) = session.core.node.adjacency._carriers
            opening = carrier.machine.stats.rx_bytes
            await raw.say(read + after)
            stats = session.core.node.stats
            await until(lambda: stats().endings)
            await within(raw._reading)
            await raw.close()
            await subscriber.undeclare()
            rows = [batch.num_rows async for batch in subscriber]
            ended = {n: v for n, v in asdict(stats().ended).items() if n[:2] == "rx"}
            # Ids and first numbers are drawn at random, some of them shorter; what comes after a
            # fault may come with it.
            said = ended.pop("rx_bytes") - opening
            assert len(read) <= said <= len(read + after)
            return (stats().endings, ended), sum(rows)

    found = []
    for fast in ("0", "all"):
        monkeypatch.setenv(plane.VARIABLE, fast)
        found.append(run(main()))
    assert found[0] == found[1]
    assert found[0][0][0] == {"malformed": 1}
