"""Sessions of the synchronous API for tests, and waiting for what will be."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import zenwire
from tests.ports import free_port
from tests.unit.api.nodes import TIMEOUT, config

__all__ = ["TIMEOUT", "config", "joined", "said", "until"]


def until(true: Callable[[], Any]) -> None:
    """Wait for something that will be."""
    ends = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.005)


def said(reply: zenwire.Reply) -> str:
    """The text of a reply, or of an error."""
    answer = reply.err if reply.ok is None else reply.ok
    assert answer is not None
    return answer.payload.to_string()


def joined() -> tuple[zenwire.Session, zenwire.Session]:
    """Two peers that are connected."""
    port = free_port()
    one = zenwire.open(config(listen=port))
    other = zenwire.open(config(connect=port))
    until(other.info.transports)
    return one, other
