"""Canonical form: check it, reach it, or say what is wrong and where.

A key expression is accepted exactly when eclipse-zenoh 1.10 accepts it; one that
makes the reference panic is an error here (PROTOCOL.md 6.1).
"""

from __future__ import annotations

import re

from zenwire.errors import KeyExprError

__all__ = ["canonize", "is_canonical", "validate"]

_CHAR = r"[^/#?$*\ud800-\udfff]"
# Possessive throughout: a hostile text is refused in one pass, without backtracking.
_CHUNK = rf"(?:(?:\$\*(?={_CHAR}))?{_CHAR}++(?:\$\*(?!\$){_CHAR}*+)*+|\*(?:\*(?!/\*))?+)"
_canonical = re.compile(rf"{_CHUNK}(?:/{_CHUNK})*+").fullmatch

_FORBIDDEN = re.compile(r"[#?\ud800-\udfff]")
_REPEAT = re.compile(r"(?:\$\*){2,}")


def is_canonical(text: str) -> bool:
    """Whether the text is a key expression in canonical form."""
    return _canonical(text) is not None


def validate(text: str) -> None:
    """Return when the text is canonical; raise `KeyExprError` otherwise.

    The error has the index of the first wrong character, and names the canonical
    form when there is one.
    """
    if _canonical(text) is None:
        flaw = _flaw(text)
        if flaw is None:
            position, reason = _untidiness(text)
            flaw = position, f"{reason}; write {_tidy(text)!r} or use autocanonize"
        raise KeyExprError(text, *flaw)


def canonize(text: str) -> str:
    """The canonical form of the text; `KeyExprError` when there is none."""
    if _canonical(text) is not None:
        return text
    flaw = _flaw(text)
    if flaw is not None:
        raise KeyExprError(text, *flaw)
    return _tidy(text)


def _tidy(text: str) -> str:
    """The canonical form of a text that has no flaw."""
    chunks: list[str] = []
    double = False
    for chunk in _REPEAT.sub("$*", text).split("/"):
        if chunk == "**":
            double = True
        elif chunk in {"*", "$*"}:
            # Single stars move before a pending double star: '**/*' is '*/**'.
            chunks.append("*")
        else:
            if double:
                chunks.append("**")
                double = False
            chunks.append(chunk)
    if double:
        chunks.append("**")
    return "/".join(chunks)


def _untidiness(text: str) -> tuple[int, str]:
    """What keeps a text without flaws from being canonical: index and reason."""
    start = 0
    after_double = False
    for chunk in text.split("/"):
        repeat = chunk.find("$*$*")
        if repeat >= 0:
            return start + repeat + 2, "'$*$*' repeats a wildcard"
        if chunk == "$*":
            return start, "a chunk that is only '$*' is written '*'"
        if after_double and chunk == "**":
            return start, "'**/**' repeats a wildcard"
        if after_double and chunk == "*":
            return start, "'*' goes before '**'"
        after_double = chunk == "**"
        start += len(chunk) + 1
    raise AssertionError(f"{text!r} is canonical")


def _flaw(text: str) -> tuple[int, str] | None:
    """The first thing wrong that autocanonize does not repair: index and reason."""
    if not text:
        return 0, "it is empty"
    start = 0
    for chunk in text.split("/"):
        if not chunk:
            return _empty_chunk(text, start)
        flaw = _chunk_flaw(chunk)
        if flaw is not None:
            return start + flaw[0], flaw[1]
        start += len(chunk) + 1
    return _stuck_repeat(text)


def _empty_chunk(text: str, start: int) -> tuple[int, str]:
    if start == 0:
        return 0, "it starts with '/'"
    if start == len(text):
        return start - 1, "it ends with '/'"
    return start, "a chunk is empty: two slashes in a row"


def _chunk_flaw(chunk: str) -> tuple[int, str] | None:
    # Forbidden characters first: of 'a/*?x=1' the star is not the problem.
    forbidden = _FORBIDDEN.search(chunk)
    if forbidden is not None:
        return forbidden.start(), _forbidden_reason(forbidden[0])
    if chunk in {"*", "**"}:
        return None
    for at, char in enumerate(chunk):
        if char == "$" and not chunk.startswith("*", at + 1):
            return at, "'$' is allowed only in '$*'"
        if char == "*" and not chunk.endswith("$", 0, at):
            return at, "'*' is allowed only as a whole chunk '*' or '**', or in '$*'"
    return None


def _forbidden_reason(char: str) -> str:
    if char == "#":
        return "'#' is not allowed"
    if char == "?":
        return "'?' is not allowed; parameters belong to a selector"
    return "a lone surrogate cannot be encoded as UTF-8"


def _stuck_repeat(text: str) -> tuple[int, str] | None:
    """A repeated '$*' that the reference does not reduce, or panics on.

    It reduces any run at the start of a chunk. Elsewhere it reduces two, and only when two
    more bytes follow that are not themselves followed by '$*' (canon.rs of zenoh 1.10.2
    looks two bytes too far). A text that one node accepts and another refuses is worse
    than one that both refuse, so these rules are kept.
    """
    for run in _REPEAT.finditer(text):
        if run.start() == 0 or text[run.start() - 1] == "/":
            continue
        tail = text[run.end() : run.end() + 4].encode()
        if len(run[0]) > 4 or len(tail) < 2 or tail[2:4] == b"$*":
            return run.start() + 2, f"'$*$*' repeats a wildcard; write {_tidy(text)!r}"
    return None
