"""A router of ours where one of the reference would be, for sessions of both."""

from __future__ import annotations

import pytest

from tests.interop.exchange import exchange
from tests.interop.routers import chain
from tests.unit.api.nodes import run

pytestmark = pytest.mark.interop

LARGE = bytes(range(256)) * 1024


@pytest.mark.parametrize("ours", ["client", "peer"])
@pytest.mark.parametrize("theirs", ["client", "peer"])
@pytest.mark.parametrize("kinds", ["Z", "ZZ", "ZE", "EZ", "ZEZ", "EZE"])
def test_everything_is_said_across_routers(kinds: str, ours: str, theirs: str) -> None:
    if kinds == "Z" and ours == theirs == "peer":
        pytest.skip("peers of one router do not hear each other through it")

    async def main() -> None:
        async with chain(kinds) as net:
            mine = await net.ours(ours, 0)
            other = await net.theirs(theirs, len(kinds) - 1)
            await exchange(mine, other, LARGE)

    run(main())
