"""What the numbers mean, in plain words, and where the bytes went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zenwire.web.report.model import (
    KINDS,
    Account,
    Category,
    Losses,
    Malformeds,
    MessageCount,
    Sessions,
    Verdict,
)
from zenwire.web.report.text import bytes_of, count, short

__all__ = ["books", "verdict"]


def books(
    categories: Sequence[Category] | None,
    counts: Sequence[MessageCount] | None,
    bad: Malformeds | None,
) -> list[Account]:
    """Where the bytes went: those of the files, and those of batches."""
    lines = []
    if categories is not None:
        whole = "the files, expanded if they were compressed"
        lines.append(Account(whole, sum(c.bytes for c in categories)))
        lines += [
            Account(c.name.replace("_", " "), c.bytes, c.rows, part_of=whole) for c in categories
        ]
        lines.append(Account("sent, but not in the files", sum(c.missing for c in categories)))
    if counts is not None:
        whole = "messages, expanded if batches were compressed"
        lines.append(Account(whole, sum(c.bytes for c in counts), sum(c.messages for c in counts)))
        for kind in KINDS:
            some = [c for c in counts if c.kind == kind]
            size, many = sum(c.bytes for c in some), sum(c.messages for c in some)
            if many:
                lines.append(Account(kind, size, many, part_of=whole))
    if bad is not None:
        size = sum(g.bytes for g in bad.groups)
        lines.append(Account("in batches, but not decoded", size, bad.rows.total))
    return lines


def verdict(
    counts: Sequence[MessageCount] | None,
    sessions: Sessions | None,
    lost: Losses | None,
    bad: Malformeds | None,
    *,
    decoded: bool = True,
) -> Verdict:
    """Whether all is well and, if not, what is not. None is what no table says.

    Without ``decoded``, nobody looks for what did not decode: a recorder has no such thing.
    """
    points: list[tuple[str, str]] = []
    for kind, sums in (lost.by_kind if lost else {}).items():
        points.append((_lost_words(kind, sums, lost), "losses"))
    if bad is not None and bad.rows.total:
        faults = ", ".join(dict.fromkeys(g.fault.replace("_", " ") for g in bad.groups[:3]))
        did = "place did" if bad.rows.total == 1 else "places did"
        points.append((f"{bad.rows.total:,} {did} not decode ({faults})", "malformed"))
    missing = [n for n, t in (("losses", lost), ("malformed", bad)) if t is None]
    missing = missing if decoded else [name for name in missing if name == "losses"]
    if missing:
        which = "table {} is" if len(missing) == 1 else "tables {} are"
        points.append((f"the {which.format(' and '.join(missing))} not there", "files"))
    if counts is not None and not counts and not (sessions and sessions.rows.total):
        return Verdict("note", "No Zenoh traffic was found", points)
    if missing:
        return Verdict("note", "Whether something was lost is not known", points)
    if not points and not decoded:
        return Verdict("good", "Nothing was lost that the recorder knows of", points)
    if not points:
        return Verdict("good", "Nothing was lost, and everything decoded", points)
    if not lost or not lost.by_kind:
        return Verdict("bad", "Nothing was lost, but not everything decoded", points)
    return Verdict("bad", "Something was lost", points)


def _lost_words(kind: str, sums: Mapping[str, int], lost: Losses | None) -> str:
    on = {(g.sender, g.receiver) for g in lost.groups.rows if g.kind == kind} if lost else set()
    where = f" on {count(len(on), 'direction')} of sessions"
    if len(on) == 1:
        ((sender, receiver),) = on
        where = f" from {short(sender)} to {short(receiver)}" if sender else ""
    gaps = sums["gaps"]
    match kind:
        case "sequence":
            what = (
                f"{count(gaps, 'gap')} in sequence numbers: {count(sums['count'], 'frame')} missing"
            )
        case "source":
            what = f"{count(gaps, 'gap')} in publishers' numbers: {count(sums['count'], 'sample')} missing"
        case "fragments":
            what = (
                f"{count(gaps, 'message')} in pieces {'was' if gaps == 1 else 'were'} not complete"
            )
        case "capture":
            parts = []
            if sums["missing"]:
                parts.append(f"{bytes_of(sums['missing'])} were not captured")
            if sums["skipped"]:
                parts.append(f"{bytes_of(sums['skipped'])} had to be skipped")
            told = " and ".join(parts) or "the stream was interrupted"
            what = f"{told} ({count(gaps, 'place')})"
        case _:
            what = f"{count(gaps, 'loss', 'losses')} of kind {kind}"
    return what + where
