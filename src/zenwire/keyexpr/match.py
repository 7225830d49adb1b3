"""Whether two key expressions share a key, and whether one holds all keys of the other.

Two facts make both questions cheap, without search trees or recursion:

- A verbatim chunk is matched by an identical chunk only. So both sides must have the same
  verbatim chunks in the same order, and what lies between them is matched piece by piece.
- Without verbatim chunks, what follows a `**` may be placed at the first place where it fits:
  a later one leaves less for the rest. The same holds for `$*` within a chunk.

What stands between two `**` is searched for with bit sets, so that texts of the greatest length
the wire allows, made to be slow, are answered in a fraction of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["chunk_includes", "chunk_intersects", "includes", "intersects"]


def intersects(a: str, b: str) -> bool:
    """Whether some key belongs to both. Both texts must be canonical; this is not checked."""
    if a == b:
        return True
    # To share the only key of a plain text is to include it, and `includes` is faster.
    if "*" not in a:
        return "*" in b and includes(b, a)
    if "*" not in b:
        return includes(a, b)
    if "@" in a or "@" in b:
        return _piecewise(a, b, _pieces_intersect)
    return _pieces_intersect(a.split("/"), b.split("/"))


def includes(a: str, b: str) -> bool:
    """Whether every key of `b` belongs to `a`. Both must be canonical; this is not checked."""
    if a == b:
        return True
    star = a.find("*")
    if star < 0:
        return False
    cut = a.rfind("/", 0, star) + 1
    if cut:
        # What comes before the first wild chunk is compared as text, and then done with.
        if not b.startswith(a[:cut]):
            return a == f"{b}/**"
        a, b = a[cut:], b[cut:]
    if "@" in a or "@" in b:
        return _piecewise(a, b, _piece_includes)
    return a == "**" or _piece_includes(a.split("/"), b.split("/"))


def chunk_intersects(x: str, y: str) -> bool:
    """Whether two chunks, neither of them `**`, have a chunk in common."""
    if x == y:
        return True
    if x[0] == "@" or y[0] == "@":
        return False
    if x == "*" or y == "*":
        return True
    if "$" not in x:
        return "$" in y and _spans(y, x)
    if "$" not in y:
        return _spans(x, y)
    # Two patterns agree when their fixed ends do: between the ends each can hold
    # the inner pieces of both.
    x_head, y_head = x[: x.index("$")], y[: y.index("$")]
    if not (x_head.startswith(y_head) or y_head.startswith(x_head)):
        return False
    x_tail, y_tail = x[x.rindex("*") + 1 :], y[y.rindex("*") + 1 :]
    return x_tail.endswith(y_tail) or y_tail.endswith(x_tail)


def chunk_includes(x: str, y: str) -> bool:
    """Whether chunk `x`, which is not `**`, holds all that `y` does. No `x` holds a `**`."""
    if x == y:
        return True
    if x[0] == "@" or y[0] == "@" or y == "**":
        return False
    # The wildcards of `y` count as plain text, as in the reference. No piece of `x` has
    # such characters, so a piece is found in the fixed parts of `y` or not at all.
    return x == "*" or ("$" in x and _spans(x, y))


def _spans(pattern: str, text: str) -> bool:
    """Whether a chunk with `$*` matches a text: fixed ends, and the pieces between in order."""
    pieces = pattern.split("$*")
    tail = pieces.pop()
    at = len(pieces[0])
    end = len(text) - len(tail)
    if at > end or not text.startswith(pieces[0]) or not text.endswith(tail):
        return False
    for piece in pieces[1:]:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _pieces_intersect(a: Sequence[str], b: Sequence[str]) -> bool:
    """`intersects` for chunks none of which is verbatim."""
    if "**" in a:
        if "**" in b:
            # Only the fixed ends can disagree; between them there is room for everything.
            return _ends_agree(a, b) and _ends_agree(a[::-1], b[::-1])
        return _fits(a, b, chunk_intersects)
    if "**" in b:
        return _fits(b, a, chunk_intersects)
    return len(a) == len(b) and all(map(chunk_intersects, a, b))


def _piece_includes(a: Sequence[str], b: Sequence[str]) -> bool:
    """`includes` for chunks none of which is verbatim."""
    if "**" in a:
        return _fits(a, b, chunk_includes)
    return len(a) == len(b) and all(map(chunk_includes, a, b))


def _piecewise(a: str, b: str, relate: Callable[[Sequence[str], Sequence[str]], bool]) -> bool:
    """Relate what lies between the verbatim chunks, which must be the same on both sides."""
    a_verbatim, a_pieces = _split_at_verbatim(a)
    b_verbatim, b_pieces = _split_at_verbatim(b)
    return a_verbatim == b_verbatim and all(map(relate, a_pieces, b_pieces))


def _split_at_verbatim(text: str) -> tuple[list[str], list[list[str]]]:
    """The verbatim chunks, and the lists of chunks before, between and after them."""
    verbatim: list[str] = []
    pieces: list[list[str]] = [[]]
    for chunk in text.split("/"):
        if chunk[0] == "@":
            verbatim.append(chunk)
            pieces.append([])
        else:
            pieces[-1].append(chunk)
    return verbatim, pieces


def _ends_agree(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether the chunks before the first `**` of either side intersect."""
    for x, y in zip(a, b, strict=False):
        if x == "**" or y == "**":
            return True
        if x != y and not chunk_intersects(x, y):
            return False
    return True


def _fits(pattern: Sequence[str], chunks: Sequence[str], match: Callable[[str, str], bool]) -> bool:
    """Whether a pattern with `**` matches a row of chunks."""
    first = pattern.index("**")
    last = len(pattern) - 1
    while pattern[last] != "**":
        last -= 1
    end = len(chunks) - (len(pattern) - 1 - last)
    if first > end:
        return False
    # `map` stops with the shorter side: the chunks before the first `**`, and after the last.
    if not all(map(match, pattern[:first], chunks)):
        return False
    if not all(map(match, pattern[last + 1 :], chunks[end:])):
        return False
    at = first
    block: list[str] = []
    for chunk in pattern[first + 1 : last + 1]:
        if chunk != "**":
            block.append(chunk)
            continue
        at = _find_end(block, chunks, at, end, match)
        if at < 0:
            return False
        block.clear()
    return True


def _find_end(
    block: Sequence[str],
    chunks: Sequence[str],
    start: int,
    end: int,
    match: Callable[[str, str], bool],
) -> int:
    """Where the first match of the block in `chunks[start:end]` ends, or -1.

    Bit i says that the chunks read last match the block up to its chunk i. All places of one
    chunk in the block are tested at once, so repetition makes this faster, not slower.
    """
    if len(block) > end - start:
        return -1
    where: dict[str, int] = {}
    for index, x in enumerate(block):
        where[x] = where.get(x, 0) | 1 << index
    whole = 1 << len(block) - 1
    matched = 0
    for at in range(start, end):
        y = chunks[at]
        hoped = matched << 1 | 1
        matched = 0
        while hoped:
            x = block[(hoped & -hoped).bit_length() - 1]
            places = hoped & where[x]
            if match(x, y):
                matched |= places
            hoped ^= places
        if matched & whole:
            return at + 1
    return -1
