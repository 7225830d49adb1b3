"""Much at once through a router of ours, by its columnar data plane, for sessions of the reference."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

import zenoh

from tests.interop.routers import chain
from tests.unit.api.nodes import run, until
from zenwire import aio
from zenwire.node import plane

pytestmark = pytest.mark.interop

COUNT = 4_000
SIZES = (8, 100, 1024, 20_000)


@pytest.mark.parametrize("kinds", ["Z", "ZE", "ZZ"])
def test_nothing_is_lost_and_order_is_kept(kinds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plane.VARIABLE, "all")

    async def main() -> None:
        async with chain(kinds) as net:
            source = await net.theirs("client", 0)
            sinks = [await net.theirs("client", len(kinds) - 1) for _ in range(2)]
            heard: list[list[Any]] = [[] for _ in sinks]
            kept = [
                sink.declare_subscriber("load/**", into.append)
                for sink, into in zip(sinks, heard, strict=True)
            ]
            block = zenoh.CongestionControl.BLOCK
            publishers = [
                source.declare_publisher(f"load/{at}", congestion_control=block)
                for at in range(len(SIZES))
            ]
            await until(lambda: all(one.matching_status.matching for one in publishers))  # type: ignore[attr-defined] # its stub says otherwise

            def publish() -> None:
                # Several keys, sizes and encodings in one lane, and a deletion now and then.
                for at in range(COUNT):
                    which = at % len(SIZES) if at % 64 < 8 else 0
                    if at % 100 == 99:
                        publishers[which].delete(attachment=str(at))
                    else:
                        value = str(at).encode().ljust(SIZES[which])
                        publishers[which].put(value, attachment=str(at))

            first = net.routers[0]
            assert isinstance(first, aio.Session)
            node = first.core.node
            await asyncio.to_thread(publish)
            await until(lambda: all(len(one) == COUNT for one in heard))
            for samples in heard:
                assert [int(bytes(one.attachment)) for one in samples] == [*range(COUNT)]
                for one in samples:
                    at = int(bytes(one.attachment))
                    which = at % len(SIZES) if at % 64 < 8 else 0
                    assert str(one.key_expr) == f"load/{which}"
                    deleted = at % 100 == 99
                    assert (one.kind == zenoh.SampleKind.DELETE) is deleted
                    wanted = b"" if deleted else str(at).encode().ljust(SIZES[which])
                    assert bytes(one.payload) == wanted
                    assert (one.timestamp is None) is deleted
                times = [one.timestamp for one in samples if one.timestamp is not None]
                assert {str(one.get_id()) for one in times} == {str(node.zid)}
                stamps = [one.get_time() for one in times]
                assert stamps == sorted(stamps)
            assert node.plane._forwarding is not None
            assert not sum(node.stats().dropped.values())
            for subscriber in kept:
                subscriber.undeclare()  # type: ignore[no-untyped-call] # of the reference

    run(main())
