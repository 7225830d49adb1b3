"""Downsampling, sizes and QoS on the way: what passes, and how, is what it is in the reference."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.interop.acl_tries import TRIES
from tests.interop.filtering import Heard, Pair, client, router

pytestmark = pytest.mark.interop

TIMEOUT = 30


def both(config: dict[str, Any], where: Path, attempt: Callable[[Pair], Any]) -> tuple[Any, Any]:
    """What comes of it through a router of ours, and through one of the reference.

    The actor has the id a1, the observer b2.
    """
    found = []
    for kind in "ZE":
        with (
            router(kind, config, where) as port,
            client(port, "alice", id="a1") as actor,
            client(port, "root", id="b2") as observer,
        ):
            found.append(attempt(Pair(actor, observer)))
    return found[0], found[1]


# Where an item applies: by what goes which way, and how the other side came.
PLACES: dict[str, dict[str, Any]] = {
    "all": {},
    "in": {"flows": ["ingress"]},
    "out": {"flows": ["egress"]},
    "lo": {"interfaces": ["eth99", "lo"], "link_protocols": ["tls", "tcp"]},
    "nic": {"interfaces": ["eth99"]},
    "tls": {"link_protocols": ["tls", "ws"]},
}
Places = dict[str, dict[str, Any]]
FEW = {name: PLACES[name] for name in ("all", "nic")}
DATA = ("put", "delete", "query", "reply")


Try = tuple[dict[str, Any], Callable[[Pair], Any], Callable[[Any], None]]
"""A configuration, what is tried, and what comes of it in any case."""


def rates(places: Places) -> Try:
    # Seldom enough for the second one not to pass, often enough for none to be held back.
    freqs = {"never": 0, "once": 0.0001, "free": 1e9, "below": -2.5}
    items = [
        {
            "id": f"{place}-{message}",
            "messages": [message],
            "rules": [
                {"key_expr": f"m/r/{place}/{message}/{name}/**", "freq": freq}
                for name, freq in freqs.items()
            ],
        }
        | where
        for (place, where), message in product(places.items(), DATA)
    ]
    items.append(
        {"messages": ["put", "delete"], "rules": [{"key_expr": "m/r/two/*", "freq": 0.001}]}
    )
    keys = [
        f"m/r/{place}/{message}/{name}/{key}"
        for place, message, name in product(places, DATA, freqs)
        for key in ("a", "b/*", "*")
    ]
    keys += ["m/r/two/a", "m/r/two/b", "m/r/two/a/c"]

    def attempt(pair: Pair) -> Any:
        names = ("put", "delete", "declare_subscriber", "query", "declare_queryable")
        return {name: TRIES[name](pair, keys) for name in names}

    def check(found: Any) -> None:
        seen = found["put"]["seen"]
        for place in places:
            concerned = place not in {"nic", "tls"}
            assert (f"m/r/{place}/put/never/a" in seen) is not concerned
            assert (f"m/r/{place}/put/once/b/*" in seen) is not concerned
            assert f"m/r/{place}/put/free/b/*" in seen

    return {"downsampling": items}, attempt, check


def limits(places: Places) -> Try:
    items = [
        {
            "id": f"{place}-{message}",
            "messages": [message],
            "key_exprs": [f"m/s/{place}/{message}/**"],
            "size_limit": 5,
        }
        | where
        for (place, where), message in product(places.items(), DATA)
    ]
    common = {"messages": ["put", "query"], "flows": ["ingress"]}
    items += [
        # The smaller one holds, but a later one on the same expression is in its place.
        common | {"key_exprs": ["m/s/several/**"], "size_limit": 7},
        common | {"key_exprs": ["m/s/several/a"], "size_limit": 3},
        common | {"key_exprs": ["m/s/again/a", "m/s/again/b"], "size_limit": 3},
        common | {"key_exprs": ["m/s/again/a"], "size_limit": 7},
        common | {"key_exprs": ["m/s/apart/a"], "size_limit": 3, "interfaces": ["lo"]},
        common | {"key_exprs": ["m/s/apart/a"], "size_limit": 7},
        common | {"key_exprs": ["m/s/zero/*"], "size_limit": 0},
    ]
    keys = [f"m/s/{place}/{message}/a" for place, message in product(places, DATA)]
    keys += [
        "m/s/several/a",
        "m/s/several/b",
        "m/s/again/a",
        "m/s/again/b",
        "m/s/apart/a",
        "m/s/zero/a",
    ]
    sizes = [(0, 0), (5, 0), (6, 0), (3, 2), (3, 3), (0, 6), (7, 1)]

    def attempt(pair: Pair) -> Any:
        heard = pair.heard()
        subscriber = pair.observer.declare_subscriber("m/**", heard.handler)
        asked: list[tuple[str, int]] = []

        def answer(query: zenoh.Query) -> None:
            with query:
                size, attached = map(int, str(query.parameters["sizes"]).split("x"))
                asked.append((str(query.key_expr), len(query.payload or b"")))
                query.reply(query.key_expr, bytes(size), attachment=bytes(attached))
                query.reply_del(query.key_expr, attachment=bytes(attached))
                query.reply_err(bytes(size))

        queryable = pair.observer.declare_queryable("m/**", answer)
        pair.told("observer")
        for key, (size, attached) in product(keys, sizes):
            pair.actor.put(key, bytes(size), attachment=bytes(attached))
            pair.actor.delete(key, attachment=bytes(attached))
        pair.said("actor")
        seen = [_sizes(sample) for sample in heard.all()]
        replied = {
            (key, sizes): sorted(
                _sizes(reply.ok) if reply.err is None else ("!", len(reply.err.payload))
                for reply in pair.actor.get(
                    f"{key}?sizes={sizes[0]}x{sizes[1]}",
                    payload=bytes(sizes[0]),
                    attachment=bytes(sizes[1]),
                    consolidation=zenoh.ConsolidationMode.NONE,
                    timeout=TIMEOUT,
                )
            )
            for key, sizes in product(keys, sizes)
        }
        subscriber.undeclare()
        queryable.undeclare()
        return seen, sorted(asked), replied

    def check(found: Any) -> None:
        passed = {(key, size + attached) for key, size, attached, put in found[0] if put}
        assert ("m/s/all/put/a", 5) in passed
        assert ("m/s/all/put/a", 6) not in passed
        assert ("m/s/nic/put/a", 8) in passed

    return {"low_pass_filter": items}, attempt, check


def _sizes(sample: Any) -> tuple[str, int, int, bool]:
    attached = 0 if sample.attachment is None else len(sample.attachment)
    put = sample.kind == zenoh.SampleKind.PUT
    return str(sample.key_expr), len(sample.payload), attached, put


def qualities(places: Places) -> Try:
    overwrites: dict[str, dict[str, Any]] = {
        "priority": {"priority": "real_time"},
        "down": {"priority": 1},
        "far": {"priority": 7},
        "up": {"priority": -2},
        "block": {"congestion_control": "block", "express": True},
        "first": {"congestion_control": "block_first"},
        "drop": {"congestion_control": "drop", "express": False},
    }
    filters: dict[str, dict[str, Any]] = {
        "any": {},
        "high": {"qos": {"priority": "data_high"}},
        "blocks": {"qos": {"congestion_control": "block"}},
        "express": {"qos": {"express": True, "priority": "data_high"}},
        "effort": {"qos": {"reliability": "best_effort"}},
        "small": {"payload_size": "..4"},
        "middle": {"payload_size": "3..5"},
    }
    items = [
        {
            "id": f"{name}-{chosen}",
            "messages": ["put", "query"],
            "flows": ["ingress"],
            "key_exprs": [f"m/q/{name}/{chosen}/**"],
            "overwrite": overwrite,
        }
        | some
        for (name, overwrite), (chosen, some) in product(overwrites.items(), filters.items())
    ]
    items += [
        {
            "messages": ["put", "delete", "query"],
            "key_exprs": [f"m/q/places/{place}/*"],
            "overwrite": {"priority": 1},
        }
        | where
        for place, where in places.items()
    ]
    common = {"messages": ["put"], "overwrite": {"priority": "background"}}
    items += [
        common | {"zids": ["a1"], "key_exprs": ["m/q/zids/mine"]},
        common | {"zids": ["b2"], "key_exprs": ["m/q/zids/yours"]},
        common | {"key_exprs": ["m/q/exact/a"]},
    ]
    if places is FEW:
        overwrites = {name: overwrites[name] for name in ("up", "far", "block")}
        filters = {name: filters[name] for name in ("any", "express", "middle")}
    keys = [f"m/q/{name}/{chosen}/a" for name, chosen in product(overwrites, filters)]
    keys += [f"m/q/places/{place}/a" for place in places]
    keys += ["m/q/zids/mine", "m/q/zids/yours", "m/q/exact/a", "m/q/exact/b"]
    ways: list[dict[str, Any]] = [
        {},
        {"priority": zenoh.Priority.DATA_HIGH},
        {"congestion_control": zenoh.CongestionControl.BLOCK},
        {"priority": zenoh.Priority.DATA_HIGH, "express": True},
        {"priority": zenoh.Priority.BACKGROUND, "express": True},
    ]

    def attempt(pair: Pair) -> Any:
        heard = Heard()
        subscriber = pair.observer.declare_subscriber("m/**", heard.handler)

        def answer(query: zenoh.Query) -> None:
            with query:
                query.reply(query.key_expr, "x")

        queryable = pair.observer.declare_queryable("m/**", answer)
        pair.told("observer")
        seen = []
        for at, way in enumerate(ways):
            effort = zenoh.Reliability.BEST_EFFORT if at == 1 else zenoh.Reliability.RELIABLE
            for key, size in product(keys, (2, 4, 6)):
                with pair.actor.declare_publisher(key, reliability=effort, **way) as publisher:
                    publisher.put(bytes(size), attachment=str(at))
                    publisher.delete(attachment=str(at))
            count = len(keys) * 6
            seen += sorted(_quality(heard.next()) for _ in range(count))
        replies = {
            (at, key): [
                _quality(reply.ok)
                for reply in pair.actor.get(key, payload=bytes(4), timeout=TIMEOUT, **way)
            ]
            for (at, way), key in product(enumerate(ways), keys)
        }
        subscriber.undeclare()
        queryable.undeclare()
        return seen, replies

    def check(found: Any) -> None:
        assert len({quality[3:] for quality in found[0]}) > 8

    return {"qos": {"network": items}}, attempt, check


def _quality(sample: Any) -> tuple[str, ...]:
    attached = "" if sample.attachment is None else sample.attachment.to_string()
    what = (sample.kind, sample.priority, sample.congestion_control, sample.express)
    return (str(sample.key_expr), attached, str(len(sample.payload)), *map(str, what))


@pytest.mark.long
@pytest.mark.parametrize("made", [rates, limits, qualities])
def test_everything_passes_as_in_the_reference(
    made: Callable[[Places], Try], tmp_path: Path
) -> None:
    config, attempt, check = made(PLACES)
    ours, theirs = both(config, tmp_path, attempt)
    check(theirs)
    assert ours == theirs


def test_it_passes_as_in_the_reference(tmp_path: Path) -> None:
    """The same with less of it, and all of it in one router."""
    made = [rates(FEW), limits(FEW), qualities(FEW)]
    config = {name: value for part, _, _ in made for name, value in part.items()}
    ours, theirs = both(config, tmp_path, lambda pair: [attempt(pair) for _, attempt, _ in made])
    for (_, _, check), found in zip(made, theirs, strict=True):
        check(found)
    assert ours == theirs
