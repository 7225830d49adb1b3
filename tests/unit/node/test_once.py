from __future__ import annotations

import asyncio

import pytest

from tests.unit.api.nodes import run
from zenwire.node.once import Once


def test_work_starts_once_and_outlives_cancelled_callers() -> None:
    async def main() -> None:
        once, gate, runs = Once(), asyncio.Event(), list[str]()

        async def work() -> None:
            runs.append("started")
            await gate.wait()
            runs.append("done")

        assert not once.begun
        callers = [asyncio.create_task(once.run(work)) for _ in range(3)]
        await asyncio.sleep(0)
        assert once.begun
        callers[0].cancel()
        await asyncio.wait(callers[:1])
        assert callers[0].cancelled()
        gate.set()
        await asyncio.gather(*callers[1:])
        await once.run(work)
        assert runs == ["started", "done"]

    run(main())


def test_every_caller_gets_the_error() -> None:
    async def main() -> None:
        once = Once()

        async def work() -> None:
            raise OSError("broken")

        for _ in range(2):
            with pytest.raises(OSError, match="broken"):
                await once.run(work)

    run(main())
