"""``aggregation``: a router hears of our declarations what it hears of the reference's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import zenwire
from tests.ports import free_port

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

TIMEOUT = 30.0
OFF = {"multicast": {"enabled": False}, "gossip": {"enabled": False}}
AGGREGATES = ["agg/**", "wide/*"]


@contextmanager
def opened(module: Any, **config: Any) -> Iterator[Any]:
    session = module.open(module.Config.from_json5(json.dumps({"scouting": OFF} | config)))
    try:
        yield session
    finally:
        session.close()


class Router:
    """A router, and somebody who asks its admin space which declarations it has."""

    def __init__(self, router: Any, asker: Any) -> None:
        self._asker = asker
        self._root = f"@/{router.zid()}/router"

    def declared(self, kind: str) -> set[str]:
        # Now and then a query of the reference has no end; the next one is answered.
        found = self._asker.get(f"{self._root}/{kind}/**", timeout=1)
        keys = {str(reply.ok.key_expr) for reply in found if reply.ok is not None}
        prefix = f"{self._root}/{kind}/"
        return {key.removeprefix(prefix) for key in keys if not key.startswith(f"{prefix}@")}

    def wait(self, kind: str, expected: set[str]) -> None:
        ends = time.monotonic() + TIMEOUT
        while (found := self.declared(kind)) != expected:
            assert time.monotonic() < ends, (found, expected)
            time.sleep(0.02)


@contextmanager
def network(module: Any, mode: str, **config: Any) -> Iterator[tuple[Router, Any, Any]]:
    """A router of the reference with its asker, a node with aggregates, and another client."""
    port = free_port()
    there = {"endpoints": [f"tcp/127.0.0.1:{port}"]}
    aggregation = {"subscribers": AGGREGATES, "publishers": AGGREGATES}
    nowhere: dict[str, list[str]] = {"endpoints": []}
    with (
        opened(zenoh, mode="router", listen=there, adminspace={"enabled": True}) as router,
        opened(zenoh, mode="client", connect=there) as asker,
        opened(
            module, mode=mode, connect=there, listen=nowhere, aggregation=aggregation, **config
        ) as node,
    ):
        yield Router(router, asker), node, asker


def _steps(declare: Callable[[str], Any], router: Router, kind: str, prefix: str) -> list[set[str]]:
    """What a router knows after each of some declarations, and after each is taken back."""

    def known(*keys: str) -> set[str]:
        return {prefix + key for key in keys}

    expected = [
        ("agg/a", known("agg/**")),
        ("agg/b/c", known("agg/**")),
        ("agg/**", known("agg/**")),
        ("other/a", known("agg/**", "other/a")),
        ("wide/**", known("agg/**", "other/a", "wide/**")),
        ("wide/a", known("agg/**", "other/a", "wide/**", "wide/*")),
    ]
    held = []
    for key, keys in expected:
        held.append(declare(key))
        router.wait(kind, keys)
    left = [
        known("agg/**", "other/a", "wide/**", "wide/*"),
        known("agg/**", "other/a", "wide/**", "wide/*"),
        known("other/a", "wide/**", "wide/*"),
        known("wide/**", "wide/*"),
        known("wide/*"),
        set(),
    ]
    for one, keys in zip(held, left, strict=True):
        one.undeclare()
        router.wait(kind, keys)
    return left


@pytest.mark.parametrize("module", [zenwire, zenoh], ids=["ours", "theirs"])
@pytest.mark.parametrize("mode", ["client", "peer"])
@pytest.mark.parametrize("config", [{}, {"namespace": "n"}], ids=["", "namespace"])
def test_a_router_hears_of_aggregates(module: Any, mode: str, config: dict[str, Any]) -> None:
    prefix = "n/" if config else ""
    with network(module, mode, **config) as (router, node, _):
        _steps(node.declare_subscriber, router, "subscriber", prefix)
        _steps(node.declare_publisher, router, "publisher", prefix)


def test_samples_go_to_the_subscribers_of_their_key() -> None:
    with network(zenwire, "client") as (router, node, other):
        heard: list[tuple[str, str]] = []

        def taker(name: str) -> Callable[[Any], None]:
            return lambda sample: heard.append((name, str(sample.key_expr)))

        held = [node.declare_subscriber(key, taker(key)) for key in ("agg/a", "agg/*", "agg/b/**")]
        router.wait("subscriber", {"agg/**"})
        for key in ("agg/none/x", "agg/a", "agg/b", "agg/b/c"):
            other.put(key, "x")
        expected = {("agg/a", "agg/a"), ("agg/*", "agg/a"), ("agg/*", "agg/b")}
        expected |= {("agg/b/**", "agg/b"), ("agg/b/**", "agg/b/c")}
        ends = time.monotonic() + TIMEOUT
        while len(heard) < len(expected) and time.monotonic() < ends:
            time.sleep(0.01)
        assert sorted(heard) == sorted(expected)
        # A publisher below an aggregate knows whether there is somebody for its own key.
        publisher, idle = (node.declare_publisher(key) for key in ("agg/p/x", "agg/q/x"))
        found: list[str] = []
        held.append(other.declare_subscriber("agg/p/x", lambda s: found.append(str(s.key_expr))))
        ends = time.monotonic() + TIMEOUT
        while not publisher.matching_status.matching and time.monotonic() < ends:
            time.sleep(0.01)
        assert publisher.matching_status.matching
        publisher.put("x")
        while not found and time.monotonic() < ends:
            time.sleep(0.01)
        assert found == ["agg/p/x"]
        assert not idle.matching_status.matching
