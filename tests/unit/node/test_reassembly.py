from __future__ import annotations

import asyncio

from tests.unit.node.nodes import Lan, run, until
from zenwire.node.reassembly import join_budget
from zenwire.transport import Cause
from zenwire.wire.objects import encode
from zenwire.wire.transport import Fragment


def test_nodes_of_a_loop_share_a_budget_of_the_largest_limit() -> None:
    async def scenario() -> None:
        lan = Lan()
        small = lan.bare(transport={"link": {"rx": {"max_reassembly": 1_000}}})
        budget = small.adjacency.sessions.budget
        assert budget.limit == 1_000
        large = lan.bare(transport={"link": {"rx": {"max_reassembly": 5_000}}})
        assert large.adjacency.sessions.budget is budget
        assert small.stats().reassembly.limit == 5_000
        await large.close()
        assert budget.limit == 1_000
        await lan.close()
        assert budget.limit == 0

    run(scenario())


def test_the_loop_sweeps_while_something_is_unfinished() -> None:
    async def scenario() -> None:
        lan = Lan()
        rx = {"reassembly_timeout": 10_000}
        one = await lan.open(listen="memory/one", transport={"link": {"rx": rx}})
        two = await lan.open(connect=["memory/one"])
        await until(lambda: bool(one.neighbours and two.neighbours))
        (session,) = one.adjacency.sessions
        (machine,) = session.links
        sn = session.lanes.newest[11].last + 1 & session.lanes.mask
        cut = Fragment(reliable=True, more=True, first=True, sn=sn, payload=bytes(100))
        machine._batch(encode(cut), one.now, [])
        assert (one.stats().reassembly.held, one.stats().reassembly.messages) == (100, 1)
        await asyncio.sleep(9.5)
        assert one.stats().reassembly.held == 100
        await asyncio.sleep(3.0)
        stats = one.stats()
        assert (stats.reassembly.held, stats.dropped[Cause.FRAGMENT_EXPIRED]) == (0, 1)
        assert join_budget(1)._timer is None
        await lan.close()

    run(scenario())
