"""Fifty nodes in virtual time: partitions, crashes and losses, then everything is as it should be.

A seed that fails is printed; ``ZENWIRE_SEED=… make test ARGS=tests/simulation`` runs it again.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.simulation.virtual import run
from tests.simulation.world import EXPRESSIONS, KEYS, World

pytestmark = pytest.mark.slow

SEEDS = [seed] if (seed := os.environ.get("ZENWIRE_SEED")) else ["1", "2", "3"]

KINDS = ["subscriber", "subscriber", "queryable", "token", "publisher", "watcher"]
QUIET = 45.0
"""Seconds after which all is well: a lease, the longest back-off, a few SCOUTs."""


async def chaos(world: World, steps: int) -> None:
    """Things happen, some of them at once."""
    random = world.random
    for _ in range(steps):
        await asyncio.sleep(random.uniform(0.0, 0.4))
        actors = world.running()
        actor = random.choice(actors)
        what = random.random()
        if what < 0.35:
            kind = random.choice(KINDS)
            keys = KEYS if kind in {"token", "publisher"} else EXPRESSIONS
            world.declare(actor, kind, random.choice(keys))
        elif what < 0.5:
            if actor.entities:
                world.undeclare(actor, random.choice(list(actor.entities)))
        elif what < 0.8:
            world.put(actor, random.choice(KEYS))
        elif what < 0.9:
            world.ask_and_forget(actor, random.choice(EXPRESSIONS))
        elif what < 0.95:
            await world.stop(actor, random.choice(["leave", "crash", "dark"]))
            world.start(actor)
        elif what < 0.98:
            sides = {one.name: random.randrange(2) for one in world.actors}
            world.hub.split(sides, cut=random.random() < 0.5)
        else:
            world.hub.heal()


async def scenario(
    seed: str, peers: int = 16, clients: int = 34, rounds: int = 1, steps: int = 200
) -> tuple[int, int]:
    """What was sent, as a number, and how often."""
    world = World(seed, peers, clients, lossy=3)
    for actor in world.actors:
        world.start(actor)
    await asyncio.sleep(QUIET)
    for _ in range(rounds):
        world.hub.loss = 0.2
        await chaos(world, steps)
        world.hub.loss = 0.0
        world.hub.heal()
        await asyncio.sleep(QUIET)
        assert len(world.running()) == len(world.actors)
        world.check_mesh()
        await world.check(40)
    for actor in world.actors:
        await world.stop(actor, "leave")
    return world.hub.digest, world.hub.sent


@pytest.mark.parametrize("seed", SEEDS)
def test_after_chaos_everyone_hears_everything_once(seed: str) -> None:
    try:
        run(scenario(seed))
    except BaseException:
        print(f"this fails again with ZENWIRE_SEED={seed}")  # noqa: T201 # what pytest shows
        raise


def test_a_seed_says_all_that_happens() -> None:
    seed = SEEDS[0]
    assert run(scenario(seed, 6, 9, 2, 60)) == run(scenario(seed, 6, 9, 2, 60))
