"""What clients of the reference were told of stays true when they lose interest and find it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.filtering import Heard, Pair, client, router

pytestmark = pytest.mark.interop


def _matching(one: Any) -> bool:
    return bool(one.matching_status.matching)


@pytest.mark.parametrize("kind", ["Z", pytest.param("E", marks=pytest.mark.long)])
def test_who_asks_again_hears_of_the_end(kind: str, tmp_path: Path) -> None:
    with (
        router(kind, {}, tmp_path) as port,
        client(port, "alice") as asking,
        client(port, "root") as other,
    ):
        pair = Pair(asking, other)

        def ask() -> tuple[Heard, Any, Any]:
            heard = Heard()
            live = asking.liveliness()
            watching = live.declare_subscriber("m/*", heard.handler, history=True)
            publisher = asking.declare_publisher("m/a")
            pair.told("actor")
            pair.told("observer")
            return heard, watching, publisher

        for _ in range(2):
            token: Any = other.liveliness().declare_token("m/a")
            subscriber: Any = other.declare_subscriber("m/a", Heard().handler)
            pair.told("observer")
            for _ in range(2):
                _, watching, publisher = ask()
                assert _matching(publisher)
                watching.undeclare()
                publisher.undeclare()
            heard, watching, publisher = ask()
            assert _matching(publisher)
            token.undeclare()
            subscriber.undeclare()
            pair.told("observer")
            kinds = [str(sample.kind) for sample in heard.all()]
            assert kinds == ["SampleKind.PUT", "SampleKind.DELETE"]
            assert not _matching(publisher)
            watching.undeclare()
            publisher.undeclare()
