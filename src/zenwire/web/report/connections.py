"""Sessions, what was declared on them, and what was lost or did not decode."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.capture.conversation.subscriptions import NOT_SENT
from zenwire.web.report.frames import LINK, Row, cut, cut_key, ends, named, rows_of
from zenwire.web.report.model import (
    Declaration,
    Edge,
    Loss,
    Losses,
    LossGroup,
    Malformed,
    MalformedGroup,
    Malformeds,
    Session,
    Sessions,
    Token,
    Tokens,
    Top,
)
from zenwire.wire.values import Priority

__all__ = ["declarations", "declared", "losses", "malformed", "sessions", "tokens"]

SESSIONS: Final = 200
EDGES: Final = 300
ROWS: Final = 100
TOKENS: Final = 80
DECLARATIONS: Final = 100
NODES: Final = 6
"""Nodes that are named for one key."""
WINDOW: Final = 96
"""Bytes that are shown of what did not decode."""
_BEFORE: Final = 48
"""Of those, at most so many before the one that is wrong."""

_AGREED: Final = ("qos", "compression", "lowlatency", "shm", "auth", "multilink")
_WORDS: Final = {"lowlatency": "low latency", "shm": "shared memory", "qos": "QoS"}


def _total(shown: int, limit: int, frame: DataFrame) -> int:
    return shown if shown < limit else frame.count()


def sessions(found: DataFrame) -> Sessions:
    """The sessions with most bytes, and the same between pairs of nodes."""
    sizes = {
        "bytes_to_acceptor": F.col("connector_bytes"),
        "bytes_to_connector": F.col("acceptor_bytes"),
    }
    told = named(found).withColumns(sizes)
    both = F.col("bytes_to_acceptor") + F.col("bytes_to_connector")
    top = told.orderBy(F.desc(both), "first_seen", *LINK).limit(SESSIONS)
    rows = [_session(row) for row in rows_of(top)]
    pairs = told.groupBy("connector", "acceptor", "link").agg(
        F.max("connector_mode").alias("connector_mode"),
        F.max("acceptor_mode").alias("acceptor_mode"),
        F.count("*").alias("sessions"),
        F.sum("bytes_to_acceptor").alias("bytes_to_acceptor"),
        F.sum("bytes_to_connector").alias("bytes_to_connector"),
        F.count("closed").alias("closed"),
        *[F.bool_or(name).alias(name) for name in _AGREED],
        F.min(_address("connector")).alias("from"),
        F.min(_address("acceptor")).alias("to"),
    )
    edges = rows_of(pairs.orderBy(F.desc(both), "connector", "acceptor", "link").limit(EDGES))
    names = told.select(F.col("connector").alias("node")).union(told.select("acceptor"))
    (sums,) = rows_of(told.agg(F.sum(both).alias("bytes")))
    return Sessions(
        sums["bytes"] or 0,
        names.distinct().count(),
        Top([_edge(row) for row in edges], _total(len(edges), EDGES, pairs)),
        Top(rows, _total(len(rows), SESSIONS, told)),
    )


def _address(side: str) -> Column:
    return F.concat_ws(":", f"{side}_address", F.col(f"{side}_port").cast("string"))


def _agreed(row: Row) -> list[str]:
    return [_WORDS.get(name, name) for name in _AGREED if row[name]]


def _session(row: Row) -> Session:
    def address(side: str) -> str:
        return f"{row[f'{side}_address']}:{row[f'{side}_port']}"

    return Session(
        capture=row["capture"],
        flow=str(row["flow"]),
        connection=row["connection"],
        link=row["link"],
        connector=row["connector"],
        connector_address=address("connector"),
        connector_mode=row["connector_mode"],
        acceptor=row["acceptor"],
        acceptor_address=address("acceptor"),
        acceptor_mode=row["acceptor_mode"],
        bytes_to_acceptor=row["bytes_to_acceptor"],
        bytes_to_connector=row["bytes_to_connector"],
        agreed=_agreed(row),
        batch_size=row["batch_size"],
        lease=row["acceptor_lease"],
        first_seen=row["first_seen"],
        opened=row["opened"],
        closed=row["closed"],
        closed_by=row["closed_by"],
        close_reason=row["close_reason"],
        last_seen=row["last_seen"],
    )


def _edge(row: Row) -> Edge:
    return Edge(
        connector=row["connector"],
        connector_mode=row["connector_mode"],
        acceptor=row["acceptor"],
        acceptor_mode=row["acceptor_mode"],
        link=row["link"],
        sessions=row["sessions"],
        bytes_to_acceptor=row["bytes_to_acceptor"],
        bytes_to_connector=row["bytes_to_connector"],
        agreed=_agreed(row),
        closed=row["closed"],
        addresses=[row["from"], row["to"]],
    )


def losses(found: DataFrame, known: DataFrame | None) -> Losses:
    """Sums by kind and by direction of a session; the rows in the order of time."""
    sums = [
        F.count("*").alias("gaps"),
        F.sum("count").alias("count"),
        F.sum("missing").alias("missing"),
        F.sum("skipped").alias("skipped"),
    ]
    names = ("gaps", "count", "missing", "skipped")
    by_kind = {row["kind"]: row for row in rows_of(found.groupBy("kind").agg(*sums))}
    not_sent = by_kind.pop(_NOT_SENT, None)
    found = found.where(F.col("kind") != _NOT_SENT)
    grouped = found.groupBy("kind", "reason", *LINK, "direction", "side").agg(*sums)
    worst = grouped.orderBy(F.desc("missing"), F.desc("count"), F.desc("gaps"), *LINK, "kind")
    groups = rows_of(ends(worst.limit(ROWS), known))
    groups.sort(key=lambda r: (-(r["missing"] or 0), -(r["count"] or 0), -r["gaps"], r["kind"]))
    order = ("time", *LINK, "side", "sequence", "kind")
    rows = rows_of(ends(found.orderBy(*order).limit(ROWS), known))
    rows.sort(
        key=lambda r: [(r[name] is not None, r[name] or 0) for name in order if name in _SORTED]
    )
    total = sum(row["gaps"] for row in by_kind.values())
    return Losses(
        {kind: {name: row[name] or 0 for name in names} for kind, row in sorted(by_kind.items())},
        Top([_group(row) for row in groups], _total(len(groups), ROWS, grouped)),
        Top([_loss(row) for row in rows], total),
        not_sent["gaps"] if not_sent else 0,
        (not_sent["count"] or 0) if not_sent else 0,
    )


_NOT_SENT: Final = NOT_SENT[0]
_SORTED: Final = ("time", "flow", "connection", "side", "sequence")


def _group(row: Row) -> LossGroup:
    return LossGroup(
        row["kind"],
        row["reason"] or "",
        row["sender"],
        row["receiver"],
        row["gaps"],
        row["count"] or 0,
        row["missing"] or 0,
        row["skipped"] or 0,
    )


def _loss(row: Row) -> Loss:
    lane = []
    if row["priority"] is not None:
        lane.append(Priority(row["priority"]).name)
    if row["reliable"] is not None:
        lane.append("reliable" if row["reliable"] else "best effort")
    if row["source_zid"] is not None:
        lane.append(f"publisher {row['source_zid']}/{row['source_eid']}")
    return Loss(
        capture=row["capture"],
        flow=None if row["flow"] is None else str(row["flow"]),
        connection=row["connection"],
        direction=row["direction"],
        sequence=row["sequence"],
        offset=row["offset"],
        time=row["time"],
        sender=row["sender"],
        receiver=row["receiver"],
        kind=row["kind"],
        reason=row["reason"] or "",
        lane=", ".join(lane),
        from_sn=row["from_sn"],
        to_sn=row["to_sn"],
        count=row["count"],
        missing=row["missing"] or 0,
        skipped=row["skipped"] or 0,
    )


def malformed(found: DataFrame, known: DataFrame | None) -> Malformeds:
    """Sums by fault, and the first rows with the bytes around the one that is wrong."""
    grouped = found.groupBy("layer", "fault").agg(
        F.count("*").alias("rows"), F.sum(F.octet_length("bytes")).alias("bytes")
    )
    groups = sorted(rows_of(grouped), key=lambda r: (-r["rows"], r["layer"], r["fault"]))
    wrong = F.greatest(F.col("offset") - F.col("message_offset"), F.lit(0))
    begin = F.greatest(wrong - _BEFORE, F.lit(0))
    begin = (begin - begin % 16).cast("int")
    order = ("time", *LINK, "side", "sequence", "offset")
    first = (
        found.orderBy(*order)
        .limit(ROWS)
        .withColumns({"begin": begin, "whole": F.octet_length("bytes")})
        .withColumn("bytes", F.substring("bytes", F.col("begin") + 1, F.lit(WINDOW)))
    )
    rows = rows_of(ends(first, known))
    rows.sort(key=lambda r: (r["time"], r["flow"], r["connection"], r["sequence"], r["offset"]))
    return Malformeds(
        [MalformedGroup(g["layer"], g["fault"], g["rows"], g["bytes"] or 0) for g in groups],
        Top([_malformed(row) for row in rows], sum(g["rows"] for g in groups)),
    )


def _malformed(row: Row) -> Malformed:
    return Malformed(
        capture=row["capture"],
        flow=str(row["flow"]),
        connection=row["connection"],
        direction=row["direction"],
        sequence=row["sequence"],
        time=row["time"],
        sender=row["sender"],
        receiver=row["receiver"],
        layer=row["layer"],
        fault=row["fault"],
        offset=row["offset"],
        message_offset=row["message_offset"],
        length=row["whole"] or 0,
        window=row["message_offset"] + row["begin"],
        bytes=(row["bytes"] or b"").hex(),
    )


def tokens(found: DataFrame, known: DataFrame | None) -> Tokens:
    """Lives of liveliness tokens, by key and begin."""
    every = found.where(F.col("kind") == "token")
    (counts,) = rows_of(
        every.agg(
            F.count_if("snapshot").alias("snapshots"), F.count_if(~F.col("snapshot")).alias("lives")
        )
    )
    order = ("key", "declared", *LINK, "side", "sequence")
    lives = every.where(~F.col("snapshot")).orderBy(*order).limit(TOKENS)
    told = ends(lives, known)
    rows = rows_of(told.select(*cut(), "sender", "receiver", "declared", "undeclared", "ended_by"))
    found_rows = [
        Token(
            *cut_key(row),
            row["sender"],
            row["receiver"],
            row["declared"],
            row["undeclared"],
            row["ended_by"],
        )
        for row in rows
    ]
    found_rows.sort(key=lambda t: (t.key or "", t.declared or 0, t.sender, t.receiver))
    return Tokens(counts["snapshots"], Top(found_rows, counts["lives"]))


def declared(found: DataFrame) -> dict[str, int]:
    """How many lives there are of each kind."""
    rows = rows_of(found.groupBy("kind").agg(F.count("*").alias("n")))
    return {row["kind"]: row["n"] for row in sorted(rows, key=lambda r: r["kind"])}


def declarations(found: DataFrame, known: DataFrame | None) -> Top[Declaration]:
    """Who subscribes to and serves what: keys by how many declared them."""
    wanted = found.where(F.col("kind").isin("subscriber", "queryable"))
    grouped = (
        ends(wanted, known)
        .groupBy("kind", "key")
        .agg(
            F.count("*").alias("declared"),
            F.count_if(F.col("undeclared").isNull() & ~F.col("snapshot")).alias("alive"),
            F.sort_array(F.collect_set("sender")).alias("nodes"),
        )
    )
    top = grouped.orderBy(F.desc(F.size("nodes")), F.desc("declared"), "kind", "key")
    rows = rows_of(
        top.limit(DECLARATIONS).select(
            "kind",
            *cut(),
            "declared",
            "alive",
            F.slice("nodes", 1, NODES).alias("nodes"),
            F.size("nodes").alias("node_count"),
        )
    )
    told = [
        Declaration(
            row["kind"],
            *cut_key(row),
            row["declared"],
            row["alive"],
            row["nodes"],
            row["node_count"],
        )
        for row in rows
    ]
    return Top(told, _total(len(told), DECLARATIONS, grouped))
