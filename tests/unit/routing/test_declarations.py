"""Who declared what: sources of keys after every change, against a plain list."""

from __future__ import annotations

from random import Random

import pytest

from zenwire.routing import Face
from zenwire.routing.declarations import Change, Declarations, Kind, merge
from zenwire.routing.peer import PEER
from zenwire.wire.values import QueryableInfo, WhatAmI, ZenohId

KEYS = ("a", "a/b", "a/*", "**")
INFOS = (QueryableInfo(), QueryableInfo(complete=True), QueryableInfo(distance=3))


def face_of(id: int) -> Face:
    return Face(id, ZenohId(bytes([id])), WhatAmI.CLIENT, PEER.relations[WhatAmI.CLIENT])


@pytest.mark.parametrize("seed", range(6))
def test_sources_are_those_that_were_declared(seed: int) -> None:
    random = Random(seed)
    declarations, faces = Declarations(), [face_of(id) for id in range(1, 5)]
    there: dict[tuple[Face, Kind, int], tuple[str, QueryableInfo]] = {}

    def sources(change: Change) -> dict[Face, QueryableInfo]:
        said: dict[Face, list[QueryableInfo]] = {}
        for (face, kind, _), (key, info) in there.items():
            if (kind, key) == change:
                said.setdefault(face, []).append(info)
        merged = {face: merge(infos) for face, infos in said.items()}
        return {face: info for face, info in merged.items() if info is not None}

    before: dict[Change, dict[Face, QueryableInfo]] = {}
    for _ in range(400):
        face, kind = random.choice(faces), random.choice(list(Kind))
        id, key = random.randrange(3), random.choice(KEYS)
        if random.random() < 0.6:
            info = random.choice(INFOS)
            there[face, kind, id] = key, info
            changes = declarations.declare(face, kind, id, key, info)
        elif random.random() < 0.9:
            there.pop((face, kind, id), None)
            changes = declarations.undeclare(face, kind, id)
        else:
            for name in [name for name in there if name[0] is face]:
                del there[name]
            changes = declarations.drop(face, 1)
            while declarations.left(face):
                changes += declarations.drop(face, 1)
        # Whoever hears of a change asks with it; others with one that is equal.
        for change in changes:
            assert declarations.sources(change) == sources(change)
        for every in (Change(kind, key) for kind in Kind for key in KEYS):
            now = sources(every)
            assert declarations.sources(every) == now
            assert (before.get(every, {}) != now) <= (every in changes)
            before[every] = now
