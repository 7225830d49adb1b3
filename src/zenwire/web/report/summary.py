"""From tables to what the page says. Spark counts; only bounded aggregates come here."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from zenwire.web.report import connections, traffic
from zenwire.web.report.model import RECORDED, Summary
from zenwire.web.report.source import Source
from zenwire.web.report.verdict import books, verdict

__all__ = ["summarise"]


def summarise(source: Source, tables: Mapping[str, DataFrame]) -> Summary:
    """Runs some twenty Spark jobs. A table that is not there leaves its part empty."""
    messages, sessions = tables.get("messages"), tables.get("sessions")
    counts, start, end = (
        (None, None, None) if messages is None else traffic.message_counts(messages)
    )
    line = keys = None
    if messages is not None and start is not None and end is not None:
        line = traffic.timeline(messages, start, end)
        keys = traffic.keys(messages, start, end)
    found_sessions = None if sessions is None else connections.sessions(sessions)
    found = tables.get("losses")
    lost = None if found is None else connections.losses(found, sessions)
    found = tables.get("malformed")
    bad = None if found is None else connections.malformed(found, sessions)
    found = tables.get("accounts")
    categories = None if found is None else traffic.accounts(found)
    lake = source.kind in RECORDED
    declared = tables.get("declarations")
    asked = tables.get("queries")
    return Summary(
        source=source.kind,
        paths=source.paths,
        start=start,
        end=end,
        message_total=sum(c.messages for c in counts or ()),
        verdict=verdict(counts, found_sessions, lost, bad, decoded=not lake),
        captures=None if messages is None else traffic.captures(messages),
        messages=counts,
        timeline=line,
        sessions=found_sessions,
        keys=keys,
        queries=None if asked is None else traffic.queries(asked),
        losses=lost,
        malformed=bad,
        tokens=None if declared is None else connections.tokens(declared, sessions),
        declarations=None
        if declared is None or lake
        else connections.declarations(declared, sessions),
        declared=None if declared is None or lake else connections.declared(declared),
        accounts=books(categories, counts, bad),
    )
