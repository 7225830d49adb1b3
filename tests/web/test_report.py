"""A report says what the tables say, whether it was made of captures or of tables on disk."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.spool.rows import samples
from tests.web.conftest import Made
from tests.web.pages import Page
from zenwire.cli import main, report
from zenwire.spool import Writer
from zenwire.web.report import Source, render, tables_of
from zenwire.web.report.text import bytes_of, number


def _rows(made: Made, name: str, *columns: str) -> list[tuple]:
    return [tuple(row) for row in made.tables[name].select(*columns).collect()]


def test_messages_and_their_times(made: Made) -> None:
    rows = _rows(made, "messages", "layer", "message", "body", "time")
    summary = made.summary
    assert summary.message_total == len(rows)
    assert summary.messages is not None
    counted = {(c.layer, c.message, c.body): c.messages for c in summary.messages}
    assert counted == Counter(row[:3] for row in rows)
    assert (summary.start, summary.end) == (min(r[3] for r in rows), max(r[3] for r in rows))
    line = summary.timeline
    assert line is not None
    assert line.bins <= 120
    assert sum(map(sum, line.messages)) == len(rows)
    assert sum(map(sum, line.bytes)) == sum(c.bytes for c in summary.messages)
    assert summary.captures is not None
    assert sum(c.messages for c in summary.captures.rows) == len(rows)


def test_sessions_and_bytes(made: Made) -> None:
    rows = _rows(
        made, "sessions", "connector_zid", "acceptor_zid", "connector_bytes", "acceptor_bytes"
    )
    found = made.summary.sessions
    assert found is not None
    assert found.rows.total == len(found.rows.rows) == len(rows)
    assert found.bytes == sum(r[2] + r[3] for r in rows)
    assert found.nodes == len({zid for r in rows for zid in r[:2]})
    sums: Counter[tuple] = Counter()
    for connector, acceptor, there, back in rows:
        sums[connector, acceptor] += there + back
    drawn = {(e.connector, e.acceptor): e.bytes_to_acceptor + e.bytes_to_connector
             for e in found.edges.rows}  # fmt: skip
    assert drawn == sums


def test_keys(made: Made) -> None:
    rows = [
        r
        for r in _rows(made, "messages", "message", "key", "payload_bytes", "body")
        if r[0] == "PUSH"
    ]
    found = made.summary.keys
    assert found is not None
    assert found.samples == len(rows)
    assert found.bytes == sum(r[2] or 0 for r in rows)
    samples = Counter(r[1] for r in rows)
    assert {k.key: k.samples for k in found.rows.rows} == samples
    assert all(sum(k.spark) == k.samples for k in found.rows.rows)
    assert sum(k.deletes for k in found.rows.rows) == sum(r[3] == "DEL" for r in rows)


def test_queries(made: Made) -> None:
    rows = _rows(made, "queries", "key", "outcome", "latency", "replies")
    found = made.summary.queries
    assert found is not None
    assert found.outcomes == Counter(r[1] for r in rows)
    assert found.overall.queries == len(rows) > 0
    assert found.overall.replies == sum(r[3] for r in rows)
    assert {q.key: q.queries for q in found.rows.rows} == Counter(r[0] for r in rows)
    for q in found.rows.rows:
        latencies = sorted(r[2] for r in rows if r[0] == q.key and r[2] is not None)
        assert sum(q.bins) == q.finished == len(latencies)
        assert q.longest == latencies[-1]
        told = [q.p50, q.p90, q.p99, q.longest]
        assert set(told) <= set(latencies)
        assert told == sorted(latency for latency in told if latency is not None)


def test_losses_and_malformed_input(made: Made) -> None:
    rows = _rows(made, "losses", "kind", "count", "missing", "skipped")
    found, bad = made.summary.losses, made.summary.malformed
    assert found is not None
    assert bad is not None
    assert found.rows.total == len(rows) > 0
    for kind, sums in found.by_kind.items():
        mine = [r for r in rows if r[0] == kind]
        assert sums == {"gaps": len(mine), "count": sum(r[1] or 0 for r in mine),
                        "missing": sum(r[2] for r in mine), "skipped": sum(r[3] for r in mine)}  # fmt: skip
    assert {kind for kind, *_ in rows} == set(found.by_kind) >= {"capture", "sequence"}
    assert sum(g.gaps for g in found.groups.rows) == len(rows)
    assert made.summary.verdict.level == "bad"

    kept = _rows(made, "malformed", "offset", "message_offset", "bytes")
    assert bad.rows.total == len(kept) > 0
    assert sum(g.bytes for g in bad.groups) == sum(len(r[2]) for r in kept)
    for row in bad.rows.rows:
        data = bytes.fromhex(row.bytes)
        whole = [r for r in kept if r[:2] == (row.offset, row.message_offset)]
        at = row.window - row.message_offset
        assert any(bytes(r[2])[at : at + len(data)] == data for r in whole)


def test_declarations_and_tokens(made: Made) -> None:
    rows = _rows(made, "declarations", "kind", "key", "snapshot")
    summary = made.summary
    assert summary.declared == Counter(r[0] for r in rows)
    assert summary.declarations is not None
    told = {(d.kind, d.key): d.declared for d in summary.declarations.rows}
    assert told == Counter(r[:2] for r in rows if r[0] in ("subscriber", "queryable"))
    assert summary.tokens is not None
    lives = [r for r in rows if r[0] == "token" and not r[2]]
    assert summary.tokens.rows.total == len(lives) > 0
    zids = {
        zid for pair in _rows(made, "sessions", "connector_zid", "acceptor_zid") for zid in pair
    }
    assert {t.sender for t in summary.tokens.rows.rows} <= zids


def test_the_accounts_add_up_to_the_files(made: Made) -> None:
    whole, *lines = made.summary.accounts
    assert whole.bytes == sum(Path(path).stat().st_size for path in made.source.paths)
    parts = {line.name: line.bytes for line in lines if line.part_of == whole.name}
    assert sum(parts.values()) == whole.bytes
    assert made.summary.sessions is not None
    assert parts["batches"] == made.summary.sessions.bytes
    messages = [line for line in lines if line.name.startswith("messages")]
    assert [line.count for line in messages] == [made.summary.message_total]


def test_the_page_shows_these_numbers(made: Made) -> None:
    page = Page(render(made.summary))
    summary = made.summary
    assert summary.sessions is not None
    assert summary.keys is not None
    assert f"{number(summary.message_total)} messages" in page.text
    assert " ".join(bytes_of(summary.sessions.bytes).split()) in page.text
    assert f"{number(summary.keys.samples)} samples on" in page.text
    assert json.loads(page.scripts[0])["message_total"] == summary.message_total
    assert summary.losses is not None
    assert {f"loss-{i}" for i in range(1, len(summary.losses.rows.rows) + 1)} <= set(page.ids)
    assert "Something was lost." in page.text


def test_tables_on_disk_give_the_same_report(made: Made, spark: object, tmp_path: Path) -> None:
    from zenwire.spark.write import write_tables
    from zenwire.web.report.summary import summarise

    names = [*made.tables]
    write_tables(spark, made.source.paths, tmp_path, names=names)  # type: ignore[arg-type]
    source = Source("tables", [str(tmp_path)])
    with tables_of(spark, source) as found:  # type: ignore[arg-type]
        again = summarise(source, found)
    assert replace(again, source="captures", paths=made.source.paths) == made.summary


def test_a_directory_with_some_tables_gives_a_report_of_those(
    made: Made, spark: object, tmp_path: Path
) -> None:
    from zenwire.web.report.summary import summarise

    made.tables["queries"].write.partitionBy("capture").parquet(str(tmp_path / "queries"))
    source = Source("tables", [str(tmp_path)])
    with tables_of(spark, source) as found:  # type: ignore[arg-type]
        summary = summarise(source, found)
    assert summary.queries == made.summary.queries
    assert summary.verdict.headline == "Whether something was lost is not known"
    assert "The table sessions is not in this directory." in Page(render(summary)).text


def test_the_command(
    made: Made, spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a small directory: that of captures is the same but for where tables come from."""
    tables, page = tmp_path / "tables", tmp_path / "page" / "report.html"
    made.tables["queries"].write.parquet(str(tables / "queries"))
    page.parent.mkdir()
    page.write_text("a former report")
    args = argparse.Namespace(input=[str(tables)], html=str(page), json=True)
    assert report.run(args) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["paths"] == [str(tables)]
    assert made.summary.queries is not None
    assert told["queries"]["outcomes"] == made.summary.queries.outcomes
    assert said.err.startswith(f"zenwire report: {page}: ")
    found = Page(page.read_text("utf-8"))
    assert json.loads(found.scripts[0]) == told
    assert list(page.parent.iterdir()) == [page]


def test_the_command_line_knows_it() -> None:
    assert main.COMMANDS["report"].SUMMARY == report.SUMMARY


def test_a_spool(spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys, rates, sizes, times and losses; a recorder knows no sessions and no queries."""
    spool, page = tmp_path / "robots", tmp_path / "report.html"
    with Writer.open(spool) as writer:
        writer.append(samples(range(30)))
        writer.lose("session", "the session is gone", count=7)
    args = argparse.Namespace(input=[str(spool)], html=str(page), json=True)
    assert report.run(args) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["source"], told["keys"]["samples"]) == ("spools", 30)
    assert told["losses"]["by_kind"]["session"]["count"] == 7
    assert told["verdict"]["level"] == "bad"
    assert told["start"] is not None
    assert told["sessions"] is None
    text = Page(page.read_text("utf-8")).text
    for word in ("robots", "30 samples", "as recorded", "the session is gone"):
        assert word in text, word
    assert "is not in this directory" not in text


def test_a_spool_without_rows(spark: object, tmp_path: Path) -> None:
    Writer.open(tmp_path / "empty").close()
    page = tmp_path / "report.html"
    args = argparse.Namespace(input=[str(tmp_path / "empty")], html=str(page), json=False)
    assert report.run(args) == 0
    assert "No Zenoh traffic was found" in Page(page.read_text("utf-8")).text
