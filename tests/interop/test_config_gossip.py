"""``scouting/gossip/multihop`` and ``target``: who hears of whom, among our nodes and the reference's.

A and C listen. B dials both and listens nowhere; D dials C and connects to whom it hears of. What D
hears of A has gone two hops, from B to C.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import Any

import pytest

import zenwire
from tests.ports import free_port

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

TIMEOUT = 30.0
KINDS = {"Z": zenwire, "E": zenoh}


def _open(stack: ExitStack, kind: str, ports: dict[str, list[int]], **more: Any) -> Any:
    gossip = {"autoconnect": []} | more.pop("gossip")
    config = {
        "mode": "peer",
        "scouting": {"multicast": {"enabled": False}, "gossip": gossip},
        **{
            name: {"endpoints": [f"tcp/127.0.0.1:{port}" for port in ports.get(name, [])]}
            for name in ("listen", "connect")
        },
    } | more
    module = KINDS[kind]
    session = module.open(module.Config.from_json5(json.dumps(config)))
    stack.callback(session.close)
    return session


def _linked(session: Any, other: Any) -> bool:
    return str(other.zid()) in {str(zid) for zid in session.info.peers_zid()}


def _until(session: Any, other: Any, seconds: float = TIMEOUT) -> bool:
    ends = time.monotonic() + seconds
    while not _linked(session, other) and time.monotonic() < ends:
        time.sleep(0.02)
    return _linked(session, other)


def _chain(stack: ExitStack, kinds: str, **gossip: Any) -> tuple[Any, Any]:
    """The first and the last of A, B, C and D, each of its kind."""
    here, there = free_port(), free_port()
    a = _open(stack, kinds[0], {"listen": [here]}, gossip=gossip)
    c = _open(stack, kinds[2], {"listen": [there]}, gossip=gossip)
    b = _open(stack, kinds[1], {"connect": [here, there]}, gossip=gossip)
    assert _until(b, a)
    assert _until(b, c)
    d = _open(stack, kinds[3], {"connect": [there]}, gossip=gossip | {"autoconnect": ["peer"]})
    assert _until(d, c)
    return a, d


@pytest.mark.parametrize("kinds", ["ZZZZ", "EZZE", "EZEE", "EEZE", "ZEEZ", "EEEE"])
def test_multihop_gossip_goes_beyond_neighbours(kinds: str) -> None:
    with ExitStack() as stack:
        a, d = _chain(stack, kinds, multihop=True)
        assert _until(d, a)


@pytest.mark.parametrize("kinds", ["ZZZZ", "EEEE"])
def test_without_it_neighbours_alone_are_told_of(kinds: str) -> None:
    with ExitStack() as stack:
        a, d = _chain(stack, kinds, multihop=False)
        assert not _until(d, a, 1.0)


@pytest.mark.parametrize("kind", ["Z", "E"])
@pytest.mark.parametrize("target", [["router"], ["router", "peer"]])
def test_locators_are_told_to_the_targets(kind: str, target: list[str]) -> None:
    """One in the middle tells a newcomer where another peer is, or does not."""
    middle, other = free_port(), free_port()
    with ExitStack() as stack:
        hub = _open(stack, kind, {"listen": [middle]}, gossip={"target": target})
        far = _open(stack, "E", {"listen": [other], "connect": [middle]}, gossip={})
        assert _until(far, hub)
        wanted = {"autoconnect": ["peer"]}
        new = _open(stack, "E", {"connect": [middle]}, gossip=wanted)
        assert _until(new, hub)
        told = "peer" in target
        assert _until(new, far, TIMEOUT if told else 1.0) is told
