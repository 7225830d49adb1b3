"""Networks of routers, peers and clients that live at random: `tests.simulation.network`."""

from __future__ import annotations

import pytest

from tests.simulation.network import World, live, main
from zenwire.routing import Tables
from zenwire.wire.values import WhatAmI


@pytest.mark.parametrize("seed", range(16))
def test_deliveries_are_those_of_the_oracle(seed: int) -> None:
    live(seed)


def test_the_oracle_can_fail() -> None:
    world = World(0)
    world.settle()
    node = next(node for node in world.nodes if len(world.hears(node)) > 1)
    other = next(iter(world.hears(node) - {node}))
    other.declared["subscriber"][99] = "a"
    with pytest.raises(AssertionError):
        world.put(node, "a")


def test_a_seed_that_fails_is_told_and_fails_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    receive, heard = Tables.receive, []

    def lose(self: Tables, *args: object, **how: object) -> None:
        # Every thousandth message is lost.
        heard.append(args)
        if len(heard) % 1000:
            receive(self, *args, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Tables, "receive", lose)
    with pytest.raises(AssertionError) as first:
        main(["--seeds", "20"])
    told = capsys.readouterr().out
    seed = int(told.split()[1])
    assert f"--seed {seed}\n" in told
    assert first.traceback

    # The same world comes of the same seed.
    def links(world: World) -> list[tuple[str, str]]:
        return [(a.name, b.name) for a, b in (link.ends for link in world.links)]

    assert links(World(seed)) == links(World(seed))


def test_there_are_all_kinds_of_nodes_and_links() -> None:
    kinds: set[tuple[WhatAmI, WhatAmI]] = set()
    most = 0
    for seed in range(16):
        world = World(seed)
        most = max(most, len(world.nodes))
        kinds |= {(a.whatami, b.whatami) for a, b in (link.ends for link in world.links)}
    router, peer, client = WhatAmI.ROUTER, WhatAmI.PEER, WhatAmI.CLIENT
    assert kinds == {
        (router, router),
        (peer, peer),
        (peer, router),
        (client, router),
        (client, peer),
    }
    assert 20 < most <= 30
