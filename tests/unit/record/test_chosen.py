"""Which keys are recorded, each once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from zenwire.errors import KeyExprError
from zenwire.record import Chosen, choose


def rows(*keys: str) -> pa.RecordBatch:
    return pa.record_batch({"key": pa.array(keys), "n": list(range(len(keys)))})


def shown(chosen: list[Chosen]) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.key, one.unwanted) for one in chosen]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["a/**"], [], [("a/**", ())]),
        (["a/**", "a/b", "a/**"], [], [("a/**", ())]),
        (["a/b", "a/**"], [], [("a/**", ())]),
        (["a/*", "*/b"], [], [("a/*", ()), ("*/b", ("a/*",))]),
        (["a/**"], ["b/**", "a/c"], [("a/**", ("a/c",))]),
        (["a/b", "c"], ["a/**"], [("c", ())]),
        (["a/**/**"], [], [("a/**", ())]),
    ],
)
def test_what_to_subscribe_to(
    include: list[str], exclude: list[str], expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert shown(choose(include, exclude)) == expected


def test_every_key_is_kept_once() -> None:
    chosen = choose(["a/*", "*/b"], ["a/x"])
    batch = rows("a/b", "a/c", "a/x", "a/b")
    assert chosen[0].keep(batch).column("n").to_pylist() == [0, 1, 3]
    assert chosen[1].keep(rows("a/b", "c/b")).column("n").to_pylist() == [1]
    whole = rows("c/b", "d/b")
    assert chosen[1].keep(whole) is whole, "nothing is copied where all of it is wanted"


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(KeyExprError):
        choose(["a//b"])
    with pytest.raises(KeyExprError):
        choose(["a"], ["/b"])
