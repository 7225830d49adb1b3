"""Matching as in PROTOCOL.md 6.2 to 6.4, and that no input makes it slow."""

from __future__ import annotations

import time

import pytest

from zenwire.keyexpr import includes, intersects, is_canonical

T, F = True, False

# a, b, intersects, a includes b, b includes a
TRUTH = [
    # The table of PROTOCOL.md 6.4.
    ("a/**", "a", T, T, F),
    ("a/*", "a", F, F, F),
    ("**", "@a", F, F, F),
    ("a/**", "a/@b", F, F, F),
    ("a/**/@b", "a/@b", T, T, F),
    ("@a/**", "@a", T, T, F),
    ("*/**", "**", T, F, T),
    ("a/**/@x/**", "a/**", F, F, F),
    ("**/@a", "x/@a/@a", F, F, F),
    ("ab$*bc", "abc", F, F, F),
    ("a$*b$*b", "ab", F, F, F),
    ("a$*", "$*b", T, F, F),
    ("a$*", "a", T, T, F),
    ("*", "a$*", T, T, F),
    ("a$*c", "ab$*c", T, T, F),
    ("a/**/c", "a/c", T, T, F),
    ("a/**/c", "a/**", T, F, T),
    ("$*b$*", "abc", T, T, F),
    ("**", "a/@b/c", F, F, F),
    ("a/*/@b/**", "a/x/@b", T, T, F),
    ("a/**/b/**", "a/b", T, T, F),
    # Plain keys.
    ("a", "a", T, T, T),
    ("a", "b", F, F, F),
    ("a/b", "a", F, F, F),
    ("a/b", "a/bc", F, F, F),
    # A text prefix is not a chunk prefix.
    ("a/**", "ab", F, F, F),
    ("a/**", "ab/c", F, F, F),
    ("a/*", "ab/c", F, F, F),
    # Single stars.
    ("*", "a", T, T, F),
    ("*", "a/b", F, F, F),
    ("a/*/c", "a/b/c", T, T, F),
    ("a/*", "*/b", T, F, F),
    ("*/b", "a/*", T, F, F),
    ("*/*", "a/b", T, T, F),
    ("*", "*/*", F, F, F),
    # Double stars.
    ("**", "a", T, T, F),
    ("**", "a/b/c", T, T, F),
    ("**", "*", T, T, F),
    ("a/**", "**/b", T, F, F),
    ("a/**/b", "a/x/y/b", T, T, F),
    ("a/**/b", "a/x/y/c", F, F, F),
    ("a/**/b", "a", F, F, F),
    ("a/**/b", "b", F, F, F),
    ("a/**/a", "a", F, F, F),
    ("a/**/a", "a/a", T, T, F),
    ("**/a/**/a/**", "a", F, F, F),
    ("**/a/**/b/**", "b/a/a/b", T, T, F),
    ("**/a/**/b/**", "b/b/a/a", F, F, F),
    ("**/a/b/**", "a/a/b", T, T, F),
    ("a/**/b/**/c", "a/**/c", T, F, T),
    ("a/**/b", "a/**/c", F, F, F),
    ("x/**/b", "y/**/b", F, F, F),
    ("*/**/x", "a/b/x", T, T, F),
    ("*/**/x", "x", F, F, F),
    ("**/x", "*/*", T, F, F),
    ("**/b", "*", T, F, F),
    # Patterns within a chunk.
    ("$*a", "a", T, T, F),
    ("$*a", "ba", T, T, F),
    ("$*a", "ab", F, F, F),
    ("a$*a", "a", F, F, F),
    ("a$*b$*c", "abbbc", T, T, F),
    ("a$*b", "a$*c", F, F, F),
    ("ab$*", "a$*", T, F, T),
    ("ab$*", "ac$*", F, F, F),
    ("a$*b$*", "a$*c$*", T, F, F),
    ("$*a$*", "$*b$*", T, F, F),
    ("$*a$*", "*", T, F, T),
    ("$*é", "é", T, T, F),
    ("é$*", "è$*", F, F, F),
    ("x/a$*/y", "x/ab/y", T, T, F),
    ("x/a$*/**", "**/ab", T, F, F),
    # The wildcards of the included side count as text.
    ("$*b$*", "a$*b", T, T, F),
    ("$*ab$*", "a$*b", T, F, F),
    # Verbatim chunks equal themselves only, wildcards in them included.
    ("@a", "@a", T, T, T),
    ("*", "@a", F, F, F),
    ("@a$*", "@ab", F, F, F),
    ("@a$*", "@a$*", T, T, T),
    ("$*@", "@", F, F, F),
    ("$*@", "a@", T, T, F),
    ("@a/*", "@a/b", T, T, F),
    ("*/@a", "b/@a", T, T, F),
    ("**/@a/**", "@a", T, T, F),
    ("**/@a/**", "x/@a/y", T, T, F),
    ("**/@a/**", "x/@b/y", F, F, F),
    ("**/@a/**/@b", "@a/x/@b", T, T, F),
    ("**/@a/**/@b", "@b/x/@a", F, F, F),
    ("a/**", "a/b/@c", F, F, F),
    ("a/**", "a@/b", F, F, F),
    ("a/**", "a/@", F, F, F),
    ("**/x@y", "a/x@y", T, T, F),
]


@pytest.mark.parametrize(("a", "b", "share", "a_holds", "b_holds"), TRUTH)
def test_truth_table(a: str, b: str, share: bool, a_holds: bool, b_holds: bool) -> None:
    assert intersects(a, b) is share
    assert intersects(b, a) is share
    assert includes(a, b) is a_holds
    assert includes(b, a) is b_holds


def _hostile(size: int) -> dict[str, tuple[str, str, bool, bool]]:
    """Pairs of about so many characters: a, b, intersects, a includes b.

    A matcher that tries all ways takes longer for them than anyone will wait.
    """
    n = size // 12
    doubles = "**/a/" * n
    stars = "$*a" * n
    numbers = "".join(f"{i}/" for i in range(n))
    patterns = "".join(f"$*{i}/" for i in range(n))
    return {
        "doubles, no match": (f"{doubles}**/b/**", "a/" * 3 * n + "c", False, False),
        "doubles, match": (f"{doubles}**/b/**", "a/" * 3 * n + "b", True, True),
        "doubles on both sides": (f"{doubles}b", "a/**/" * n + "b", True, False),
        "doubles, ends disagree": (f"{doubles}b", "a/**/" * n + "c", False, False),
        "doubles, single stars": (f"{doubles}**/@b/**", "*/" * 3 * n + "c", False, False),
        "doubles, patterns": ("**/$*a/" * n + "**/b/**", "$*ba/" * 2 * n + "c", False, False),
        "doubles, verbatim": (f"{doubles}**/@b/**", "a/" * 3 * n + "@b/c/@b", False, False),
        "long block": ("**/" + "a/" * n + "b/**", "a/" * 4 * n + "a", False, False),
        "long block, stars": ("**/" + "a/*/" * n + "b/**", "a/" * 4 * n + "a", False, False),
        "long block, numbers": (f"**/a$*/{patterns}b/**", f"{numbers}c", False, False),
        "many kinds": ("**/" + "a/*/a$*/$*a/" * n + "b/**", "aa/" * 5 * n + "c", False, False),
        "patterns, no match": (f"{stars}$*b$*", "a" * 5 * n + "c", False, False),
        "patterns, match": (f"{stars}$*b", "a" * 5 * n + "b", True, True),
        "patterns on both sides": (f"{stars}$*b", "a$*" * n + "c", False, False),
        "patterns in chunks": ("**/$*a$*a$*c/" * n + "**/b", "aab/" * 2 * n + "b", False, False),
    }


# The second is what a key may have on the wire (PROTOCOL.md 12.2), and a reason to be quick.
@pytest.mark.parametrize("size", [8_000, 65_000])
@pytest.mark.parametrize("name", _hostile(0))
def test_hostile_expressions_are_answered_at_once(name: str, size: int) -> None:
    a, b, share, holds = _hostile(size)[name]
    assert len(a) + len(b) > size // 3
    assert is_canonical(a)
    assert is_canonical(b)
    start = time.perf_counter()
    assert intersects(a, b) is share
    assert intersects(b, a) is share
    assert includes(a, b) is holds
    assert includes(b, a) is False
    # All four take milliseconds for the first size; the limits leave room for a busy machine.
    assert time.perf_counter() - start < (0.5 if size < 10_000 else 5.0)


def test_deep_keys_do_not_recurse() -> None:
    deep = "/".join(["a"] * 100_000)
    assert intersects(f"**/{deep}", f"{deep}/**")
    assert intersects(f"{deep}/*/b", f"{deep}/a/**")
    assert includes(f"{deep}/**", f"{deep}/b")
    assert not includes(f"*/{deep}", deep)
