"""Our key expressions give the answers of eclipse-zenoh, on many random expressions."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from zenwire.errors import KeyExprError
from zenwire.keyexpr import KeyExpr, KeyExprTree, canonize, includes, intersects, is_canonical

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

PAIRS = 60_000
"""For each of the alphabets."""
TEXTS = 60_000

# Few and similar chunks, so that many pairs intersect.
ALPHABETS = {
    "mixed": (
        *("a", "b", "ab", "é", "è", "aé", "日本", "a@b"),
        *("*", "*", "**", "**"),
        *("a$*", "$*a", "a$*b", "$*b$*", "$*é", "é$*", "$*@"),
        *("@a", "@", "@a$*", "@é"),
    ),
    "doubles": ("a", "a", "b", "*", "**", "**"),
    "verbatim": ("a", "*", "**", "**", "@a", "@b"),
    "patterns": (
        *("a", "ab", "aba", "abab", "aab", "*"),
        *("a$*", "$*a", "a$*b", "a$*a$*", "$*ab$*", "$*a$*b$*", "a$*b$*a$*b", "aba$*", "$*bab"),
    ),
}
# Pieces that texts are made of, valid or not.
PIECES = ("a", "b", "é", "日", "/", "/", "*", "**", "$*", "$*", "$", "@", "#", "?", " ", "\0")


@pytest.fixture(autouse=True)
def _no_backtrace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference panics on some texts; without this it spends milliseconds on each trace."""
    monkeypatch.setitem(os.environ, "RUST_BACKTRACE", "0")


def reference(call: Callable[..., object], *args: object) -> str | None:
    """What the reference answers, as text; None when it refuses or panics."""
    try:
        return str(call(*args))
    except (zenoh.ZError, UnicodeEncodeError):
        return None
    except BaseException as error:
        # pyo3 derives it from BaseException and gives no name to import it by.
        if type(error).__name__ != "PanicException":
            raise
        return None


def ours(call: Callable[..., object], *args: object) -> str | None:
    try:
        return str(call(*args))
    except KeyExprError:
        return None


def expressions(rng: random.Random, alphabet: Sequence[str]) -> Iterator[str]:
    while True:
        yield canonize("/".join(rng.choices(alphabet, k=rng.randint(1, 6))))


def similar(rng: random.Random, key: str, alphabet: Sequence[str]) -> str:
    """The expression with one or two of its chunks replaced, left out or added."""
    chunks = key.split("/")
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(chunks) + 1)
        chunks[at : at + rng.randint(0, 1)] = rng.choices(alphabet, k=rng.randint(0, 1))
    return canonize("/".join(chunks)) if chunks else key


def texts(rng: random.Random) -> Iterator[str]:
    while True:
        yield "".join(rng.choices(PIECES, k=rng.randint(0, 8)))


def test_the_same_texts_are_valid_and_have_the_same_canonical_form() -> None:
    stream = texts(random.Random(1))
    seen: Counter[str] = Counter()
    for _ in range(TEXTS):
        text = next(stream)
        valid = reference(zenoh.KeyExpr, text)
        assert ours(KeyExpr, text) == valid, text
        assert is_canonical(text) == (valid is not None), text
        canonical = reference(zenoh.KeyExpr.autocanonize, text)
        assert ours(KeyExpr.autocanonize, text) == canonical, text
        seen["valid"] += valid is not None
        seen["only canonizable"] += valid is None and canonical is not None
    assert seen["valid"] > 3_000
    assert seen["only canonizable"] > 1_000


def test_repeated_dollar_stars_are_reduced_where_the_reference_reduces_them() -> None:
    rng = random.Random(2)
    seen: Counter[bool] = Counter()
    for _ in range(20_000):
        text = "".join(rng.choices(("a", "é", "/", "$*", "$*$*", "$*$*$*"), k=rng.randint(1, 6)))
        canonical = reference(zenoh.KeyExpr.autocanonize, text)
        assert ours(KeyExpr.autocanonize, text) == canonical, text
        seen[canonical is not None] += 1
    assert min(seen.values()) > 2_000


def test_lone_surrogates_are_refused() -> None:
    for text in ("\ud800", "a/\udfff", "$*\ud800", "\ud800/#"):
        assert reference(zenoh.KeyExpr, text) is None
        assert ours(KeyExpr, text) is None
        assert ours(KeyExpr.autocanonize, text) is None


@pytest.mark.parametrize("name", ALPHABETS)
def test_pairs_relate_as_in_the_reference(name: str) -> None:
    rng = random.Random(3)
    alphabet = ALPHABETS[name]
    stream = expressions(rng, alphabet)
    seen: Counter[str] = Counter()
    for count in range(PAIRS):
        a = next(stream)
        b = similar(rng, a, alphabet) if count % 4 else next(stream)
        theirs_a, theirs_b = zenoh.KeyExpr(a), zenoh.KeyExpr(b)
        pair = f"{a} | {b}"
        assert intersects(a, b) == theirs_a.intersects(theirs_b), pair
        assert intersects(b, a) == theirs_b.intersects(theirs_a), pair
        assert includes(a, b) == theirs_a.includes(theirs_b), pair
        assert includes(b, a) == theirs_b.includes(theirs_a), pair
        level = KeyExpr(a).relation_to(b)
        theirs = theirs_a.relation_to(theirs_b)
        assert int(level) == int(theirs), pair
        assert str(level) == str(theirs)
        assert repr(level) == repr(theirs)
        seen[level.name] += 1
    # Enough pairs in each relation: the test is about matches, not only about misses.
    assert len(seen) == 4
    assert min(seen.values()) > PAIRS // 50, seen


def test_join_and_concat_give_what_the_reference_gives() -> None:
    rng = random.Random(4)
    stream = expressions(rng, ALPHABETS["mixed"])
    tails = texts(rng)
    seen: Counter[str] = Counter()
    for _ in range(PAIRS):
        key, tail = next(stream), next(tails)
        mine, theirs = KeyExpr(key), zenoh.KeyExpr(key)
        pair = f"{key} | {tail}"
        joined = reference(theirs.join, tail)
        assert ours(mine.join, tail) == joined, pair
        concatenated = reference(theirs.concat, tail)
        assert ours(mine.concat, tail) == concatenated, pair
        if is_canonical(tail):
            assert str(mine / tail) == str(theirs / tail), pair
            seen["divided"] += 1
        seen["joined"] += joined is not None
        seen["concatenated"] += concatenated is not None
    assert min(seen.values()) > 1_000
    assert len(seen) == 3


def test_values_behave_alike() -> None:
    mine, theirs = KeyExpr("a/b$*"), zenoh.KeyExpr("a/b$*")
    assert repr(mine) == repr(theirs)
    assert str(mine) == str(theirs)
    assert f"{mine}" == f"{theirs}"
    assert (mine == "a/b$*") == (theirs == "a/b$*")
    assert (mine == "#") == (theirs == "#")
    assert hash(mine) == hash("a/b$*") == hash(theirs)
    values: list[Any] = [mine, theirs]
    for value in values:
        with pytest.raises(TypeError):
            sorted([value, value])
        with pytest.raises(TypeError):
            value / 3
        with pytest.raises(TypeError):
            value.join(3)
        with pytest.raises(TypeError):
            value.intersects(3)
        with pytest.raises(TypeError):
            type(value)(value)


def many_patterns(rng: random.Random) -> Iterator[str]:
    """Expressions of one node with many children that have `$*`."""
    while True:
        parts = rng.choices(("a", "b", "ab", "é", "$*a", "$*b", "b$*"), k=rng.randint(1, 5))
        chunk = "".join(parts).replace("$*$*", "$*")
        yield f"k/{chunk}/{rng.choice(('x', '*', '$*y'))}"


@pytest.mark.parametrize("shape", ["mixed", "many patterns"])
def test_the_tree_finds_what_the_reference_finds_one_by_one(shape: str) -> None:
    rng = random.Random(5)
    stream = expressions(rng, ALPHABETS[shape]) if shape in ALPHABETS else many_patterns(rng)
    stored = {next(stream) for _ in range(500)}
    tree: KeyExprTree[str] = KeyExprTree()
    for key in stored:
        tree.insert(key, key)
    theirs = {key: zenoh.KeyExpr(key) for key in stored}
    for _ in range(500):
        key = next(stream)
        query = zenoh.KeyExpr(key)
        found = [text for text, _ in tree.intersecting(key)]
        assert sorted(found) == sorted(k for k in stored if theirs[k].intersects(query)), key
        found = [text for text, _ in tree.including(key)]
        assert sorted(found) == sorted(k for k in stored if theirs[k].includes(query)), key
        found = [text for text, _ in tree.included_by(key)]
        assert sorted(found) == sorted(k for k in stored if query.includes(theirs[k])), key
