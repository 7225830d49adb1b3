"""Key-expression ids to key expressions: a join with the declarations that were valid there."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.spark.schema import struct_of
from zenwire.spark.tables.fragments import Broken, stitched
from zenwire.spark.tables.input import CONTEXT, place_of, scans, side_ids
from zenwire.spark.tables.place import LINK, SIDE, lanes, place, scan
from zenwire.spark.tables.scan import Selection, key_ids
from zenwire.spark.tables.tasks import EDGES, Task
from zenwire.wire.limits import KEY_SUFFIX_MAX

__all__ = ["ALIAS_COLUMNS", "aliases", "with_keys"]

ALIAS_COLUMNS: Final = (
    *CONTEXT.names,
    "offset",
    "message",
    "body",
    "expr_id",
    "key_scope",
    "key_suffix",
)

_ALIASES: Final = pa.schema(
    [
        pa.field("capture", pa.string()),
        pa.field("flow", pa.int64()),
        pa.field("connection", pa.int32()),
        # Of the messages that mean this alias, and whether they say that the id is the sender's.
        pa.field("side", pa.int8()),
        pa.field("by_sender", pa.bool_()),
        pa.field("expr_id", pa.int32()),
        pa.field("alias", pa.string()),
        # From the first to before the last: places in the stream, or times, if not by_sender.
        pa.field("first", pa.int64()),
        pa.field("until", pa.int64()),
        # All of that but the times as one number, which messages have too.
        pa.field("means", pa.int64()),
    ]
)
_BODIES: Final = ("D_KEYEXPR", "U_KEYEXPR")
_DECLARES: Final = Selection(ALIAS_COLUMNS, network=frozenset({"DECLARE"}))
_NEVER: Final = 2**63 - 1
_ROWS: Final = 4096
"""Of a record batch, at least."""


def aliases(batches: DataFrame) -> DataFrame:
    """When each id of each direction stood for what: ``_ALIASES``.

    A connection declares few ids, so one task reads them in their order. Many connections share a
    call: a call for each would cost more than all that they say. A declaration may have come in
    pieces, to several tasks.
    """
    found = scan(batches, Task(_DECLARES, edges=True))
    said = found.where(F.col(EDGES) | F.col("body").isin(*_BODIES))
    return lanes(said).mapInArrow(_spans, struct_of(_ALIASES))


@dataclass(eq=False)
class _Life:
    """An id from its declaration on. ``alias`` is known when ``found`` is."""

    side: int
    expr_id: int
    scope: int
    suffix: str
    place: int
    time: int
    until_place: int = _NEVER
    found: bool = False
    alias: str | None = None


def _spans(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows come sorted by connection; runs of pieces by lane and place."""
    told: list[dict[str, Any]] = []
    for key, rows in groupby(_rows(batches), key=itemgetter(*LINK)):
        lives = _lives(_said(rows))
        _resolve(lives)
        link = dict(zip(LINK, key, strict=True))
        told += [link | span for each in lives.values() for span in _told(each)]
        if len(told) >= _ROWS:
            yield _record_batch(told)
            told.clear()
    yield _record_batch(told)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        # Runs are rare, and have many columns.
        plain = not pc.any(batch.column(EDGES)).as_py()
        yield from (batch.select([*ALIAS_COLUMNS, EDGES]) if plain else batch).to_pylist()


def _said(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Declarations of one connection in order of side and place."""
    said: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    for row in rows:
        (runs if row[EDGES] else said).append(row)
    for whole in stitched(runs):
        if not isinstance(whole, Broken):
            found = [batch for rows, scan in scans(whole) for batch in _DECLARES.of(rows, scan)]
            said += [row for each in found for row in each.to_pylist() if row["body"] in _BODIES]
    return sorted(said, key=itemgetter("side", "sequence", "offset"))


def _record_batch(told: list[dict[str, Any]]) -> pa.RecordBatch:
    found = pa.RecordBatch.from_pylist(told, _ALIASES)
    ids = side_ids(*(found.column(name) for name in SIDE))
    by_sender = found.column("by_sender").to_numpy(zero_copy_only=False)
    means = key_ids(ids.to_numpy(), found.column("expr_id").to_numpy(), by_sender)
    at = _ALIASES.get_field_index("means")
    return found.set_column(at, _ALIASES.field(at), pa.array(means))


def _lives(rows: Iterable[dict[str, Any]]) -> dict[tuple[int, int], list[_Life]]:
    """The lives of each id of each side, in order."""
    lives: dict[tuple[int, int], list[_Life]] = defaultdict(list)
    alive: set[tuple[int, int]] = set()
    for row in rows:
        at = place_of(row["sequence"], row["offset"])
        id_ = row["side"], row["expr_id"]
        if row["body"] == "U_KEYEXPR":
            if id_ in alive:
                alive.remove(id_)
                lives[id_][-1].until_place = at
        elif id_ not in alive:
            # A declaration of an id that is alive is ignored, as nodes do.
            alive.add(id_)
            scope, suffix = row["key_scope"] or 0, row["key_suffix"] or ""
            lives[id_].append(_Life(*id_, scope, suffix, at, row["time"]))
    return lives


def _resolve(lives: dict[tuple[int, int], list[_Life]]) -> None:
    """A declaration may itself begin with an id: nodes look it up among their own.

    Such chains may be long, or circles where times are equal, so this does not call itself.
    """
    for life in [life for each in lives.values() for life in each]:
        chain: list[_Life] = []
        at: _Life | None = life
        while at is not None and not at.found:
            at.found = True
            chain.append(at)
            at = _then(lives.get((1 - at.side, at.scope), []), at.time) if at.scope else None
        base = at.alias if at is not None else None
        for link in reversed(chain):
            base = "" if not link.scope else base
            if base is not None and len(base) + len(link.suffix) <= KEY_SUFFIX_MAX:
                link.alias = base + link.suffix
            base = link.alias


def _begin(lives: list[_Life], i: int) -> int:
    """When the other side may mean this life by the id.

    At the time of the very declaration too, unless there was one before: then it is more likely
    that the new one had not arrived.
    """
    return min(lives[i].time + (1 if i else 0), _NEVER)


def _then(lives: list[_Life], time: int) -> _Life | None:
    i = bisect_right(range(len(lives)), time, key=lambda i: _begin(lives, i))
    return lives[i - 1] if i else None


def _told(lives: list[_Life]) -> Iterator[dict[str, Any]]:
    for i, life in enumerate(lives):
        same = {"expr_id": life.expr_id, "alias": life.alias}
        yield same | {
            "side": life.side,
            "by_sender": True,
            "first": life.place,
            "until": life.until_place,
        }
        # What was under way when an id was taken back still means what that was.
        yield same | {
            "side": 1 - life.side,
            "by_sender": False,
            "first": _begin(lives, i),
            "until": _begin(lives, i + 1) if i + 1 < len(lives) else _NEVER,
        }


def with_keys(messages: DataFrame, known: DataFrame) -> DataFrame:
    """``key`` instead of ``key_id``; ``key_fault`` for a scope that nothing is known about.

    The sender's ids are compared by place in the stream, which is exact. For the receiver's, which
    were declared in the other direction, the time of capture is the only order there is: such an
    id means what was declared last before. That can be wrong only for an id that was declared
    again while a message with the old meaning was under way.
    """
    m = messages.alias("m")
    # D_KEYEXPR has no M flag.
    by_sender = F.coalesce("m.key_mapping", F.lit(False))
    a = F.broadcast(known.select("means", "alias", "first", "until")).alias("a")
    at = F.when(by_sender, place(F.col("m.sequence"), F.col("m.offset"))).otherwise(F.col("m.time"))
    valid = (F.col("a.first") <= at) & (at < F.col("a.until"))
    joined = m.join(a, [F.col("m.key_id") == F.col("a.means"), valid], "left")
    suffix = F.coalesce("m.key_suffix", F.lit(""))
    key = (
        F.when(F.col("m.key_scope") == 0, suffix)
        .when(F.col("a.alias").isNotNull(), F.concat("a.alias", suffix))
        .alias("key")
    )
    whose = F.when(by_sender, F.lit("sender")).otherwise(F.lit("receiver"))
    unknown = F.concat(
        F.lit("scope "),
        F.col("m.key_scope").cast("string"),
        F.lit(" was not declared by the "),
        whose,
        F.lit(" in this capture"),
    )
    fault = F.when((F.col("m.key_scope") > 0) & F.col("a.alias").isNull(), unknown)
    own = [F.col(f"m.{name}") for name in messages.columns if name != "key_id"]
    return joined.select(*own, key, fault.alias("key_fault"))
