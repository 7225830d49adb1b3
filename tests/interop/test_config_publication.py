"""``qos/publication``: what others see of our publications is what they see of the reference's."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import zenwire
from tests.ports import free_port

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

TIMEOUT = 30.0
OFF = {"multicast": {"enabled": False}, "gossip": {"enabled": False}}
RULES = [
    {
        "key_exprs": ["q/all/**"],
        "config": {
            "priority": "real_time",
            "congestion_control": "block",
            "express": True,
            "reliability": "best_effort",
        },
    },
    {"key_exprs": ["q/one", "q/two"], "config": {"priority": "background"}},
    {"key_exprs": ["q/here"], "config": {"allowed_destination": "session_local"}},
    {"key_exprs": ["q/there"], "config": {"allowed_destination": "remote"}},
]

KEYS = ("q/all/a/b", "q/one", "q/here", "q/there", "q/none")


def opened(module: Any, **config: Any) -> Any:
    return module.open(module.Config.from_json5(json.dumps({"scouting": OFF} | config)))


class Ear:
    """A subscriber to everything, and what it is told."""

    def __init__(self, session: Any, reliability: bool) -> None:
        self.heard: list[tuple[str, ...]] = []
        self._reliability = reliability
        self.subscriber = session.declare_subscriber("**", self._hear)

    def _hear(self, sample: Any) -> None:
        key = str(sample.key_expr)
        told = (sample.kind, sample.priority, sample.congestion_control, sample.express)
        reliable = str(sample.reliability) if self._reliability else ""
        self.heard.append((key, sample.payload.to_string(), *map(str, told), reliable))

    def wait(self) -> list[tuple[str, ...]]:
        """Everything, but for the key that is not for it."""
        ends = time.monotonic() + TIMEOUT
        while len(self.heard) < (len(KEYS) - 1) * 11 and time.monotonic() < ends:
            time.sleep(0.01)
        return sorted(self.heard)


def publish(module: Any, port: int, **config: Any) -> tuple[list[str], list[tuple[str, ...]]]:
    """Publish in every way, as a client. Gives what publishers say, and what is heard here."""
    session = opened(
        module,
        mode="client",
        connect={"endpoints": [f"tcp/127.0.0.1:{port}"]},
        qos={"publication": RULES},
        **config,
    )
    own = Ear(session, reliability=False)
    said = []
    try:
        for key in KEYS:
            for number in range(4):
                session.put(key, f"put {number}")
            session.put(key, "asked", priority=module.Priority.DATA_LOW, express=True)
            session.delete(key, congestion_control=module.CongestionControl.BLOCK)
            publisher = session.declare_publisher(key, priority=module.Priority.DATA_HIGH)
            said += [f"{publisher.priority} {publisher.congestion_control}"]
            for number in range(4):
                publisher.put(f"published {number}")
            publisher.delete()
        return said, own.wait()
    finally:
        session.close()


@pytest.mark.parametrize("receiver", [zenoh, zenwire], ids=["to_theirs", "to_ours"])
@pytest.mark.parametrize("config", [{}, {"namespace": "n"}], ids=["", "namespace"])
def test_publications_are_overwritten_alike(receiver: Any, config: dict[str, Any]) -> None:
    found = []
    for module in (zenwire, zenoh):
        port = free_port()
        listener = opened(receiver, mode="peer", listen={"endpoints": [f"tcp/127.0.0.1:{port}"]})
        ear = Ear(listener, reliability=receiver is zenwire)
        try:
            told = publish(module, port, **config)
            found.append((told, ear.wait()))
        finally:
            listener.close()
    ours, theirs = found
    assert ours == theirs
    heard = {told[0].removeprefix("n/"): told for told in theirs[1]}
    assert "REAL_TIME" in str(heard["q/all/a/b"])
    assert "BACKGROUND" in str(heard["q/one"])
    assert "q/here" not in heard
    assert not {told[0] for told in theirs[0][1]} & {"q/there"}
