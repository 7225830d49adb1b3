"""Reading live: ``connect`` and ``keyexpr`` of ``readStream``, as the order of a recorder.

What arrives is kept in a spool of the query's own: ``spool`` says where, or ``checkpointLocation``,
the same as the query's, which Spark does not tell its sources. Then it is
``<checkpointLocation>/spools/<sourceId>``: who throws the checkpoint away throws both away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from zenwire.spark.live.order import PATIENCE, Order
from zenwire.spark.live.said import amount, flag, keys, parts, span, word
from zenwire.spark.live.session import SESSION_OPTIONS, SessionOptions

__all__ = ["LIVE_OPTIONS", "LiveOptions", "is_live"]

LIVE_OPTIONS: Final = (
    *SESSION_OPTIONS,
    "checkpointLocation",
    "history",
    "keepAge",
    "keepBytes",
    "liveliness",
    "sourceId",
    "whenFull",
)
_SOURCE: Final = "live"
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_WHEN_FULL: Final = {"WAIT": "accept", "DROP": "lose"}
_KEEP: Final = 1 << 30
"""Bytes of rows that were read that stay, where nothing is said."""


def is_live(said: Mapping[str, str]) -> bool:
    """Whether these options ask for a recorder."""
    return any(name in said for name in SESSION_OPTIONS)


@dataclass(frozen=True)
class LiveOptions:
    """What the recorder of a query is told."""

    spool: str
    source_id: str | None
    session: SessionOptions
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    liveliness: tuple[str, ...]
    history: bool
    keep_age: float | None
    keep_bytes: int | None
    overflow: Literal["lose", "accept"]

    @classmethod
    def of(cls, said: Mapping[str, str]) -> LiveOptions:
        """Raises ValueError, KeyExprError."""
        from zenwire.record import choose  # noqa: PLC0415 - slow to load, and not for spools

        source = said.get("sourceId")
        if source is not None and not _NAME.fullmatch(source):
            raise ValueError(
                f"sourceId has letters, digits, '.', '_' and '-', at most 128; not {source!r}"
            )
        session = SessionOptions.of(said)
        if not (session.connect or session.listen or session.config):
            raise ValueError('where to get it from: option("connect", "tcp/192.0.2.1:7447")')
        include, exclude = keys(said, "keyexpr"), keys(said, "exclude", "excludeKeyexpr")
        if not include:
            raise ValueError('what to record: option("keyexpr", "robot/**"), several with commas')
        if not choose(include, exclude):
            raise ValueError("exclude leaves nothing of keyexpr to record")
        return cls(
            _spool(said, source),
            source,
            session,
            include,
            exclude,
            keys(said, "liveliness"),
            flag(said, "history", default=True),
            span(said, "keepAge"),
            amount(said, "keepBytes") or (None if "keepAge" in said else _KEEP),
            word(said, "whenFull", _WHEN_FULL, "accept"),
        )

    def order(self, *, patient: bool) -> Order:
        """For the recorder. ``patient``: it may begin before anybody is there to connect to."""
        return Order(
            self.spool,
            self.source_id,
            self.session.text(patient=patient),
            self.include,
            self.exclude,
            self.liveliness,
            self.history,
            self.keep_age,
            self.keep_bytes,
            PATIENCE,
            self.overflow,
        )


def _spool(said: Mapping[str, str], source: str | None) -> str:
    places = parts(said.get("spool", ""))
    if len(places) > 1:
        raise ValueError("a query that records does so into one spool")
    if said.get("path") or said.get("paths"):
        raise ValueError("load() has no path here: option spool says where to record to")
    if places:
        return places[0]
    checkpoint = said.get("checkpointLocation", "").rstrip("/")
    if not checkpoint:
        raise ValueError(
            "where to keep what arrives until it is read: give readStream the option "
            "checkpointLocation too, the same as the query's, or spool"
        )
    return f"{checkpoint}/spools/{source or _SOURCE}"
