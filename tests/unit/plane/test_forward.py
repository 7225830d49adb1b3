"""The same bytes to a router with the columnar data plane and to one without: the same for clients."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from tests.ports import free_port

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from tests.unit.api.nodes import config, run, until
from tests.unit.plane.raw import Raw
from tests.unit.plane.talk import Talk, stream_of
from tests.unit.plane.test_same import shown
from zenwire import aio
from zenwire.node import plane
from zenwire.wire.values import WhatAmI

CLIENTS = ("**", "**", "demo/**", "demo/one/*", "other/é")
PATIENT = {"link": {"tx": {"queue": {"congestion_control": {"drop": {"wait_before_drop": 10**7}}}}}}
END = "demo/one/end"


def by_priority(samples: list[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    """Those of another priority may overtake."""
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for one in samples:
        found.setdefault(one[7], []).append(one)
    return found


def anonymous(sample: aio.Sample, zid: str) -> tuple[Any, ...]:
    """Without the time that a router with this id gave it."""
    seen = shown(sample)
    stamp = sample.timestamp
    if stamp is not None and str(stamp.get_id()) == zid:
        return (*seen[:4], "of the router", *seen[5:-1])
    return seen[:-1]


async def passed(seed: int, fast: str, most: int, *, local: bool, **more: Any) -> dict[str, Any]:
    """What clients of a router get of a talk."""
    port = free_port()
    settings = config("router", listen=port, transport=PATIENT, **more)
    async with aio.open(settings) as router:
        node = router.core.node
        assert node.plane.always is (fast == "all")
        clients = [await aio.open(config("client", connect=port)) for _ in CLIENTS]
        heard: list[list[aio.Sample]] = [[] for _ in CLIENTS]
        for client, key, list_ in zip(clients, CLIENTS, heard, strict=True):
            await client.declare_subscriber(key, aio.Callback(list_.append))
        here: list[aio.Sample] = []
        if local:
            await router.declare_subscriber("demo/one/*", here.append)
        await until(lambda: _subscribed(router) == len(CLIENTS))
        raw = await Raw.connect(port, whatami=WhatAmI.CLIENT)
        talk = Talk(seed, raw.first_sn, raw.mask)
        stream = stream_of(talk.batches(50))
        carrier = list(node.adjacency._carriers)[-1]
        received = carrier.machine.stats
        whole = received.rx_bytes + len(stream)
        await raw.say(*talk.split(stream, most))
        await until(lambda: received.rx_bytes == whole and not carrier._behind)
        await router.put(
            END,
            b"",
            priority=aio.Priority.BACKGROUND,
            congestion_control=aio.CongestionControl.BLOCK,
        )
        for list_, key in zip(heard, CLIENTS, strict=True):
            if key != "other/é":
                await until(lambda list_=list_: list_ and str(list_[-1].key_expr) == END)  # type: ignore[misc]
        stats = node.stats()
        zid = str(router.zid())
        counted = [
            (one.transport.tx_messages, dict(one.dropped), one.waiting) for one in stats.neighbours
        ]
        found = {
            "heard": [by_priority([anonymous(one, zid) for one in some]) for some in heard],
            "here": [anonymous(one, zid) for one in here],
            "routing": asdict(stats.routing),
            "counted": counted,
            "late": node.late,
            "times": [[one.timestamp for one in some] for some in heard],
            "zid": zid,
            "received": received.rx_messages,
        }
        await raw.close()
        for client in clients:
            await client.close()
        return found


def _subscribed(router: aio.Session) -> int:
    tables, source = router.core.node.tables, router.core.face.face
    routes = [tables._core.pubsub.route(source, key) for key in ("other/é", "demo/one/x")]
    return len({face for route in routes for _, to in route.remote for face in to})


@pytest.mark.parametrize(
    ("seed", "local", "stamped"),
    [
        pytest.param(0, False, False, marks=pytest.mark.long),
        (1, True, False),
        pytest.param(2, False, True, marks=pytest.mark.long),
        (3, True, True),
        *(pytest.param(seed, seed % 3 == 0, True, marks=pytest.mark.long) for seed in range(4, 9)),
    ],
)
def test_clients_see_the_same(
    seed: int, local: bool, stamped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    timestamping = {"enabled": stamped, "drop_future_timestamp": seed == 3}
    for fast in ("0", "all"):
        monkeypatch.setenv(plane.VARIABLE, fast)
        most = [3_000, 100_000][seed % 2]
        found[fast] = run(passed(seed, fast, most, local=local, timestamping=timestamping))
    objects, rows = found["0"], found["all"]
    for what in ("here", "routing", "counted", "late", "received"):
        assert rows[what] == objects[what], what
    for mine, theirs in zip(rows["heard"], objects["heard"], strict=True):
        assert mine == theirs
    assert sum(map(len, objects["heard"][0].values())) > 500
    if stamped:
        for times in rows["times"]:
            given = [one for one in times if one is not None and str(one.get_id()) == rows["zid"]]
            assert len({str(one) for one in given}) == len(given)
        assert objects["late"]
