"""Key expressions against definitions so simple that they are plainly right."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from zenwire.errors import KeyExprError
from zenwire.keyexpr import KeyExprTree, canonize, includes, intersects, is_canonical, validate
from zenwire.keyexpr.walk import Relation, related

deterministic = settings(derandomize=True, database=None, deadline=None, max_examples=400)

CHUNKS = ["a", "b", "ab", "é", "*", "**", "a$*", "$*b", "a$*b", "$*a$*", "@a", "@b", "@a$*", "a@"]
expressions = st.lists(st.sampled_from(CHUNKS), min_size=1, max_size=7).map(
    lambda chunks: canonize("/".join(chunks))
)
pieces = st.sampled_from(["a", "é", "/", "*", "**", "$*", "$", "@", "#", "?", "\ud800"])
texts = st.lists(pieces, max_size=12).map("".join) | st.text(max_size=12)


# The rules of PROTOCOL.md 6.2 and 6.3 as they stand there: try everything, chunk by chunk and
# character by character. Exponential, and nothing like the algorithm under test.


def naive_intersects(a: list[str], b: list[str]) -> bool:
    if not a or not b:
        return all(chunk == "**" for chunk in a + b)
    if a[0] == "**":
        skip = naive_intersects(a[1:], b)
        return skip or (not b[0].startswith("@") and naive_intersects(a, b[1:]))
    if b[0] == "**":
        return naive_intersects(b, a)
    return naive_chunk(a[0], b[0], literal=False) and naive_intersects(a[1:], b[1:])


def naive_includes(a: list[str], b: list[str]) -> bool:
    if not a:
        return not b
    if a[0] == "**":
        eat = bool(b) and not b[0].startswith("@") and naive_includes(a, b[1:])
        return eat or naive_includes(a[1:], b)
    if not b or b[0] == "**":
        return False
    return naive_chunk(a[0], b[0], literal=True) and naive_includes(a[1:], b[1:])


def naive_chunk(x: str, y: str, *, literal: bool) -> bool:
    """Whether chunks match; with `literal`, the wildcards of `y` are plain characters."""
    if x == y:
        return True
    if x.startswith("@") or y.startswith("@"):
        return False
    if x == "*" or (y == "*" and not literal):
        return True
    return naive_characters(tokens(x), list(y) if literal else tokens(y))


def tokens(chunk: str) -> list[str]:
    return re.findall(r"\$\*|.", chunk, re.DOTALL)


def naive_characters(x: list[str], y: list[str]) -> bool:
    if not x or not y:
        return all(token == "$*" for token in x + y)
    if x[0] == "$*":
        return naive_characters(x[1:], y) or naive_characters(x, y[1:])
    if y[0] == "$*":
        return naive_characters(y, x)
    return x[0] == y[0] and naive_characters(x[1:], y[1:])


@deterministic
@given(expressions, expressions)
def test_matching_agrees_with_trying_everything(a: str, b: str) -> None:
    assert intersects(a, b) == naive_intersects(a.split("/"), b.split("/"))
    assert includes(a, b) == naive_includes(a.split("/"), b.split("/"))


@deterministic
@given(st.data())
def test_patterns_agree_with_trying_everything(data: st.DataObject) -> None:
    pattern = (
        st.lists(st.sampled_from(["a", "b", "aa", "ab", "$*"]), min_size=1, max_size=7)
        .map(lambda parts: re.sub(r"(\$\*)+", "$*", "".join(parts)))
        .filter(lambda chunk: chunk != "$*")
    )
    a, b = data.draw(pattern), data.draw(pattern)
    assert intersects(a, b) == naive_chunk(a, b, literal=False)
    assert includes(a, b) == naive_chunk(a, b, literal=True)


@deterministic
@given(expressions, expressions)
def test_the_relations_have_the_laws_of_sets(a: str, b: str) -> None:
    assert intersects(a, a)
    assert includes(a, a)
    assert intersects(a, b) == intersects(b, a)
    if includes(a, b):
        assert intersects(a, b)
    if includes(a, b) and includes(b, a):
        assert a == b


def test_all_small_expressions_agree_with_the_sets_of_their_keys() -> None:
    # Six chunks are enough for a key of any two of these expressions that intersect.
    alphabet = ("a", "b", "ab", "@a")
    keys = ["/" + "/".join(k) for n in range(1, 7) for k in itertools.product(alphabet, repeat=n)]
    words = ("a", "b", "*", "**", "a$*", "$*b", "@a")
    candidates = ("/".join(k) for n in range(1, 4) for k in itertools.product(words, repeat=n))
    sets = {text: key_set(text, keys) for text in candidates if is_canonical(text)}
    assert len(sets) > 300
    for a, b in itertools.product(sets, repeat=2):
        assert intersects(a, b) == bool(sets[a] & sets[b]), (a, b)
        if includes(a, b):
            assert not sets[b] & ~sets[a], (a, b)


def key_set(text: str, keys: list[str]) -> int:
    """The keys that the expression holds, as bits, by way of a regular expression."""
    ordinary = r"/(?!@)[^/]+"
    translated = {"*": ordinary, "**": f"(?:{ordinary})*", "a$*": "/a[^/]*", "$*b": r"/(?!@)[^/]*b"}
    holds = re.compile("".join(translated.get(chunk, f"/{chunk}") for chunk in text.split("/")))
    return sum(1 << index for index, key in enumerate(keys) if holds.fullmatch(key))


def error_of(check: Callable[[str], object], text: str) -> KeyExprError | None:
    try:
        check(text)
    except KeyExprError as error:
        return error
    return None


@deterministic
@given(texts)
def test_a_text_is_canonical_or_canonizable_or_wrong(text: str) -> None:
    invalid, wrong = error_of(validate, text), error_of(canonize, text)
    assert is_canonical(text) == (invalid is None)
    for error in (invalid, wrong):
        assert error is None or 0 <= error.position < max(len(text), 1)
    if wrong is not None:
        assert invalid is not None
        assert (invalid.position, invalid.reason) == (wrong.position, wrong.reason)
        return
    canonical = canonize(text)
    assert is_canonical(canonical)
    assert canonize(canonical) == canonical
    assert is_canonical(text) == (canonical == text)
    assert invalid is None or f"write {canonical!r} or use autocanonize" in invalid.reason


@deterministic
@given(expressions, expressions)
def test_canonize_keeps_the_meaning(a: str, b: str) -> None:
    # What the untidy form means, by the naive rules, is what the canonical form means.
    untidy = f"**/{a}/**/**"
    tidy = canonize(untidy)
    assert intersects(tidy, b) == naive_intersects(untidy.split("/"), b.split("/"))


@deterministic
@given(st.sets(expressions, max_size=40), expressions)
def test_the_tree_answers_as_a_scan_does(stored: set[str], key: str) -> None:
    tree: KeyExprTree[str] = KeyExprTree()
    for text in stored:
        tree.insert(text, f"value of {text}")
    for found, scan in (
        (tree.intersecting(key), [k for k in stored if intersects(k, key)]),
        (tree.including(key), [k for k in stored if includes(k, key)]),
        (tree.included_by(key), [k for k in stored if includes(key, k)]),
    ):
        assert sorted(found) == sorted((k, f"value of {k}") for k in scan)
    # The walk for long keys, which these are not.
    nodes = related(tree._root, key.split("/"), Relation.INCLUDING)
    assert sorted(n.key for n in nodes if n.key) == sorted(k for k in stored if includes(k, key))


@settings(deterministic, max_examples=100)
@given(st.data())
def test_the_tree_finds_patterns_as_a_scan_does(data: st.DataObject) -> None:
    # Enough patterns below one node that they are indexed by their literals.
    parts = st.lists(st.sampled_from(["a", "b", "ab", "$*"]), min_size=2, max_size=9)
    chunk = parts.map(lambda some: re.sub(r"(\$\*)+", "$*", "".join(some))).map(
        lambda text: "*" if text == "$*" else text
    )
    stored = data.draw(st.sets(chunk, min_size=10, max_size=80))
    removed = data.draw(st.sets(st.sampled_from(sorted(stored))))
    tree: KeyExprTree[str] = KeyExprTree()
    for text in stored:
        tree.insert(f"k/{text}/x", text)
    for text in removed:
        tree.remove(f"k/{text}/x")
    query = data.draw(chunk)
    for key in (f"k/{query}/x", f"k/{query}/*", f"**/{query}/x", f"k/{query}/y"):
        chunks, left = key.split("/"), [f"k/{text}/x" for text in stored - removed]
        by_trying = sorted(k for k in left if naive_intersects(k.split("/"), chunks))
        assert sorted(k for k, _ in tree.intersecting(key)) == by_trying
        by_trying = sorted(k for k in left if naive_includes(k.split("/"), chunks))
        assert sorted(k for k, _ in tree.including(key)) == by_trying
        nodes = related(tree._root, chunks, Relation.INCLUDING)
        assert sorted(n.key for n in nodes if n.key) == by_trying
        by_trying = sorted(k for k in left if naive_includes(chunks, k.split("/")))
        assert sorted(k for k, _ in tree.included_by(key)) == by_trying


@deterministic
@given(st.lists(st.tuples(st.booleans(), expressions), max_size=40))
def test_the_tree_is_a_mapping(changes: list[tuple[bool, str]]) -> None:
    tree: KeyExprTree[int] = KeyExprTree()
    model: dict[str, int] = {}
    for value, (insert, key) in enumerate(changes):
        if insert:
            tree.insert(key, value)
            model[key] = value
        elif key in model:
            assert tree.remove(key) == model.pop(key)
        assert (key in tree) == (key in model)
        assert len(tree) == len(model)
    assert dict(tree.items()) == model
    for key in list(model):
        tree.remove(key)
    assert tree._root.is_bare()


@deterministic
@given(st.sets(expressions, max_size=20), expressions)
def test_remove_undoes_insert(stored: set[str], key: str) -> None:
    tree: KeyExprTree[int] = KeyExprTree()
    for text in stored - {key}:
        tree.insert(text, 0)
    before = shape(tree)
    tree.insert(key, 1)
    assert tree.remove(key) == 1
    assert shape(tree) == before


def shape(tree: KeyExprTree[int]) -> tuple[int, list[str], int]:
    nodes = [tree._root]
    for node in nodes:
        nodes.extend(node.children())
    return len(tree), sorted(tree), len(nodes)
