"""The parts of the page about what is wrong: losses, malformed input, and the books."""

from __future__ import annotations

from typing import Final

from zenwire.web.report.markup import Html, h, join, raw
from zenwire.web.report.model import Loss, Losses, LossGroup, Malformed, Summary
from zenwire.web.report.parts import absent, cut_note, empty, route, section, table, td, where
from zenwire.web.report.text import bytes_of, clock, count, number, seconds

__all__ = ["books", "hexdump", "losses", "malformed"]

_WHAT: Final = {
    "sequence": "Numbers of a lane that did not come: frames.",
    "source": "Numbers that a publisher gave its samples and that did not come.",
    "fragments": "Messages of which pieces did not come.",
    "capture": "Bytes of a stream that were not captured, or that could not be told apart.",
    "overflow": "The recorder had no room to wait for its disk.",
    "session": "The recorder lost a session: what was published meanwhile is not known.",
    "link": "Frames are missing in the numbers of a link of the recorder.",
    "recorder": "The recorder ended without closing its spool.",
    "damage": "Rows of the spool are broken.",
    "retention": "Rows were removed before they were read.",
}


_RECORDED: Final = ("overflow", "session", "link", "recorder", "damage", "retention")
"""Kinds of losses that recorders know, and wires do not."""


def losses(summary: Summary) -> Html:
    """By session, then row by row."""
    title = "Losses"
    found = summary.losses
    if found is None:
        return absent("losses", title, "losses")
    if not found.rows.total:
        text = "Nothing was lost: no gap in any sequence, no byte missing in any stream."
        return section("losses", title, None, empty(text), _not_sent(found))
    lake = summary.is_recorded
    first: dict[tuple[str, str, str], int] = {}
    for i, row in enumerate(found.rows.rows, 1):
        first.setdefault((row.kind, row.sender, row.receiver), i)
    groups = [_group(g, first.get((g.kind, g.sender, g.receiver))) for g in found.groups.rows]
    heads = [("kind", ""), ("on", ""), ("reason", ""), ("gaps", "num"), ("lost", "num")]
    told = h("dl", [h("div", h("dt", kind), h("dd", _WHAT.get(kind, "")))
                    for kind in found.by_kind], class_="terms")  # fmt: skip
    rows = [_loss(i, row, summary.start or 0) for i, row in enumerate(found.rows.rows, 1)]
    detail = [("", "num"), ("time", "num"), ("what", ""), ("on", ""), ("where", "")]
    return section(
        "losses",
        title,
        f"{count(found.rows.total, 'gap')}{'' if lake else f' on {_directions(found)}'}.",
        told,
        table("Losses by session", heads, groups, class_="stack"),
        cut_note(found.groups.cut, "more sessions have losses."),
        h("h3", "Row by row"),
        table("Losses", detail, rows, class_="stack rows"),
        cut_note(found.rows.cut, "later ones are not shown; they are in the table losses."),
        _not_sent(found),
    )


def _not_sent(found: Losses) -> Html | None:
    """A note on numbers of publishers that are absent, and no losses."""
    if not found.not_sent:
        return None
    return h(
        "p",
        f"No losses: {count(found.not_sent, 'gap')} in publishers' numbers "
        f"({count(found.not_sent_samples, 'sample')}) fell into times without a matching "
        "subscription on that link, so the samples were not sent there. They are in the table "
        "losses, as kind not_sent.",
        class_="hint",
    )


def _directions(found: Losses) -> str:
    on = {(g.sender, g.receiver) for g in found.groups.rows}
    many = "or more directions" if found.groups.cut else "directions"
    return f"{number(len(on))} {'direction' if len(on) == 1 else many} of sessions"


def _amount(kind: str, numbers: int, missing: int, skipped: int) -> str:
    if kind == "capture":
        parts = [f"{bytes_of(missing)} missing"] if missing else []
        parts += [f"{bytes_of(skipped)} skipped"] if skipped else []
        return ", ".join(parts) or "nothing more"
    if kind in _RECORDED:
        return count(numbers, "sample") if numbers else "how many is not known"
    return count(numbers, {"sequence": "frame", "source": "sample"}.get(kind, "piece"))


def _group(group: LossGroup, first: int | None) -> Html:
    gaps = number(group.gaps)
    return h(
        "tr",
        td(group.kind, label="kind"),
        td(route(group.sender, group.receiver), label="on"),
        td(_words(group.reason), label="reason"),
        td(h("a", gaps, href=f"#loss-{first}") if first else gaps, label="gaps", class_="num"),
        td(_amount(group.kind, group.count, group.missing, group.skipped), label="lost",
           class_="num"),
    )  # fmt: skip


def _words(name: str) -> str:
    return name.replace("_", " ")


def _loss(i: int, row: Loss, start: int) -> Html:
    what = [_amount(row.kind, row.count or 0, row.missing, row.skipped)]
    if row.from_sn is not None and row.to_sn is not None:
        span = number(row.from_sn)
        if row.to_sn != row.from_sn:
            span += f" to {number(row.to_sn)}"
        what.append(f"numbers {span}" if row.to_sn != row.from_sn else f"number {span}")
    what += [row.lane] if row.lane else []
    return h(
        "tr",
        td(h("a", number(i), href=f"#loss-{i}"), class_="num"),
        td(h("span", seconds((row.time - start) / 1e9), title=clock(row.time, digits=6)),
           label="time", class_="num"),
        td(h("b", row.kind), f": {_words(row.reason)}", h("br"), ", ".join(what), label="what"),
        td(route(row.sender, row.receiver), label="on"),
        td(where(row.capture, row.flow, row.connection, ("direction", row.direction),
                 ("sequence", row.sequence), ("offset", row.offset)), label="where"),
        id=f"loss-{i}",
    )  # fmt: skip


def malformed(summary: Summary) -> Html:
    """By fault, then row by row with the bytes."""
    title = "Malformed input"
    found = summary.malformed
    if found is None:
        return absent("malformed", title, "malformed")
    if not found.rows.total:
        return section("malformed", title, None, empty("Everything decoded."))
    first: dict[tuple[str, str], int] = {}
    for i, row in enumerate(found.rows.rows, 1):
        first.setdefault((row.layer, row.fault), i)
    groups = []
    for g in found.groups:
        at, n = first.get((g.layer, g.fault)), number(g.rows)
        groups.append(
            h(
                "tr",
                td(_words(g.fault), label="fault"),
                td(g.layer, label="layer"),
                td(h("a", n, href=f"#malformed-{at}") if at else n, label="places", class_="num"),
                td(bytes_of(g.bytes), label="not decoded", class_="num"),
            )
        )
    heads = [("fault", ""), ("layer", ""), ("places", "num"), ("not decoded", "num")]
    rows = [_malformed(i, row, summary.start or 0) for i, row in enumerate(found.rows.rows, 1)]
    return section(
        "malformed",
        title,
        f"{count(found.rows.total, 'place')} where bytes did not decode. What came before in the "
        "same batch is in the tables; the rest of the batch is kept, and shown here.",
        table("Malformed input by fault", heads, groups, class_="stack"),
        h("h3", "Place by place"),
        h("ol", rows, class_="dumps"),
        cut_note(found.rows.cut, "later ones are not shown; they are in the table malformed."),
    )


def _malformed(i: int, row: Malformed, start: int) -> Html:
    head = h(
        "p",
        h("a", f"{number(i)}.", href=f"#malformed-{i}"),
        " ",
        h("b", _words(row.fault)),
        f" at byte {number(row.offset)} of the batch, {row.layer} layer, after ",
        h("span", seconds((row.time - start) / 1e9), title=clock(row.time, digits=6)),
        ", ",
        route(row.sender, row.receiver),
    )
    place = where(row.capture, row.flow, row.connection, ("direction", row.direction),
                  ("sequence", row.sequence), ("offset", row.offset))  # fmt: skip
    return h("li", head, hexdump(row), place, id=f"malformed-{i}")


def hexdump(row: Malformed) -> Html:
    """Sixteen bytes a line, with their offset in the batch; the wrong one is marked."""
    data = bytes.fromhex(row.bytes)
    wrong = row.offset - row.window
    lines = []
    for at in range(0, len(data), 16):
        line = data[at : at + 16]
        cells = []
        for i, byte in enumerate(line, at):
            told = f"{byte:02x}"
            cells += [h("mark", told) if i == wrong else told, " "]
        text = "".join(chr(b) if 32 <= b < 127 else "\N{MIDDLE DOT}" for b in line)
        pad = "   " * (16 - len(line))
        lines.append(
            join(h("span", f"{row.window + at:6d}  ", class_="offset"), cells, f"{pad} ",
                 h("span", text, class_="text"), raw("\n"))
        )  # fmt: skip
    notes = []
    before = row.window - row.message_offset
    if before:
        notes.append(f"{count(before, 'byte')} before these are of the same message")
    after = row.length - before - len(data)
    if after > 0:
        notes.append(f"{count(after, 'more byte')} not shown")
    if wrong >= len(data):
        notes.append("the fault is after the last byte: they end too early")
    note = h("p", "; ".join(notes) + ".", class_="hint") if notes else None
    label = f"bytes from offset {row.window} on, the fault is at {row.offset}"
    dump = h(
        "pre", lines or "no bytes", class_="hex", tabindex="0", role="region", aria_label=label
    )
    return join(dump, note)


def books(summary: Summary) -> Html:
    """Where the bytes went."""
    rows = [
        h(
            "tr",
            h("th", line.name, scope="row"),
            td("" if line.count is None else number(line.count), label="number",
               class_="num"),
            td(bytes_of(line.bytes), label="bytes", class_="num"),
            class_="indent" if line.part_of else None,
        )
        for line in summary.accounts
    ]  # fmt: skip
    heads = [("", ""), ("number", "num"), ("bytes", "num")]
    return section(
        "bytes",
        "Byte accounts",
        "Every byte of the files is in one line below them. Batches are what messages come from; "
        "they are counted with their headers.",
        h("div", table("Byte accounts", heads, rows), class_="books"),
    )
