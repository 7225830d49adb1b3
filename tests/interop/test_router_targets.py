"""Whom a router asks: the same as one of the reference would, wherever queryables are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
import zenoh

from tests.interop.exchange import ask_them
from tests.interop.routers import Net
from tests.unit.api.nodes import run

pytestmark = [pytest.mark.interop, pytest.mark.long]

TARGETS = {
    "best": zenoh.QueryTarget.BEST_MATCHING,
    "all": zenoh.QueryTarget.ALL,
    "complete": zenoh.QueryTarget.ALL_COMPLETE,
}

PLACES = [("client", 0), ("client", 1), ("client", 2), ("peer", 0), ("peer", 1)]
"""Where there are queryables: the mode of who has them, and at which router of a chain."""

CASES = [
    # By place: a key, and whether it is complete.
    ["q/** +", "q/** +", "q/** +", "", ""],
    ["q/** -", "q/** +", "q/** +", "", "q/** +"],
    ["q/1 +", "q/** -", "", "q/** -", "q/* +"],
    ["", "", "q/** +", "q/** +", "q/** +"],
    ["q/1 -", "q/2 +", "q/* -", "", "q/** -"],
    ["", "q/1 +", "q/2 +", "q/1 +", ""],
]


def answering(name: str) -> Callable[[zenoh.Query], None]:
    def answer(query: zenoh.Query) -> None:
        with query:
            query.reply("q/1", name)

    return answer


async def asked(kinds: str) -> list[list[str]]:
    """Who answers in each case, for each target, asked by a client and by a peer at each end."""
    found: list[list[str]] = []
    async with AsyncExitStack() as stack:
        net = Net(stack, kinds)
        for at in range(len(kinds)):
            await net.router(range(max(at - 1, 0), at))
        nodes = [await net.theirs(mode, at) for mode, at in PLACES]
        askers = [await net.theirs(mode, at) for mode in ("client", "peer") for at in (0, 2)]
        await asyncio.sleep(0.5)
        for case in CASES:
            queryables = []
            for node, place, what in zip(nodes, PLACES, case, strict=True):
                if what:
                    key, sign = what.split()
                    name = answering(f"{place[0]} {place[1]}")
                    queryables.append(node.declare_queryable(key, name, complete=sign == "+"))
            # All routers know all of them.
            await asyncio.sleep(0.4)
            for asker in askers:
                for target in TARGETS.values():
                    replies = await ask_them(
                        asker, "q/1", target=target, consolidation=zenoh.ConsolidationMode.NONE
                    )
                    found.append(sorted(r.ok.payload.to_string() for r in replies if r.ok))
            for one in queryables:
                one.undeclare()  # type: ignore[no-untyped-call]
            await asyncio.sleep(0.4)
    return found


def test_the_same_are_asked_as_by_routers_of_the_reference() -> None:
    theirs = run(asked("EEE"))
    assert any(theirs)
    for kinds in ("ZZZ", "ZEZ"):
        ours = run(asked(kinds))
        for at, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            case, rest = divmod(at, 4 * len(TARGETS))
            asker, target = divmod(rest, len(TARGETS))
            assert mine == other, (kinds, CASES[case], asker, list(TARGETS)[target])
