"""The benchmarks run, and what they compare is the same. Nothing here looks at times."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from benchmarks import bench_live, bench_put, bench_scan, bench_session, live_child, report, traffic
from benchmarks.__main__ import main, names
from benchmarks.c_scan import CScanner, Other, header
from benchmarks.receive_child import RING
from benchmarks.report import Result, Skipped, best_of
from zenwire.columns import Scanner, as_buffer
from zenwire.columns.scan import Bytes
from zenwire.wire.batch import decode_batch, encode_batch, frame_stream
from zenwire.wire.transport import KeepAlive


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return Scanner()


def c_scanner(scanner: Scanner, buffer: Bytes) -> CScanner:
    try:
        return CScanner(next(scanner.scan_stream(buffer)))
    except Skipped as e:
        pytest.skip(str(e))


@pytest.mark.parametrize("name", traffic.DATA)
def test_the_scan_in_c_fills_the_same_columns(name: str, scanner: Scanner) -> None:
    sent = traffic.build(name, quick=True)
    if name == "recorded":
        sent = sent.data()
    buffer = as_buffer(sent.stream)
    c = c_scanner(scanner, buffer)
    assert bench_scan.agree(scanner, c, buffer) == sent.messages
    assert bench_scan.scan_all(scanner, buffer) == bench_scan.c_scan_all(c, buffer) == sent.messages


def test_the_comparison_of_columns_sees_a_difference(scanner: Scanner) -> None:
    buffer = as_buffer(traffic.build("mix", quick=True).stream)
    rows = next(scanner.scan_stream(buffer)).network
    before = bench_scan.columns(rows)
    payload = rows.layout.columns["payload"]
    rows.int32[payload.slot + 1, rows.count - 1] += 1
    with pytest.raises(AssertionError, match="payload"):
        bench_scan.same(before, bench_scan.columns(rows))


@pytest.mark.parametrize("cut", range(1, 60))
def test_the_scan_in_c_reads_no_further_than_a_cut_batch(cut: int, scanner: Scanner) -> None:
    batch = traffic.build("mix", quick=True).batches[0]
    buffer = as_buffer(frame_stream(batch[:-cut]))
    scan = next(scanner.scan_stream(buffer))
    c = c_scanner(scanner, buffer)
    if len(scan.bad.batch):
        with pytest.raises(Other):
            c.scan(buffer, c.split(buffer))
    else:
        bench_scan.agree(scanner, c, buffer)


def test_the_scan_in_c_gives_up_at_other_messages(scanner: Scanner) -> None:
    batch = traffic.build("8 B", quick=True).batches[0] + encode_batch([KeepAlive()])
    buffer = as_buffer(frame_stream(batch))
    c = c_scanner(scanner, buffer)
    with pytest.raises(Other):
        c.scan(buffer, c.split(buffer))


def test_a_missing_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import c_scan

    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(Skipped, match="no-such-compiler"):
        c_scan._library.__wrapped__()


def test_the_header_for_c_names_every_column() -> None:
    defined = header().split()
    for name in ("N_FRAME", "N_PAYLOAD", "HAS_N_KEY_MAPPING", "T_SN", "EXT_DEL_ATTACHMENT"):
        assert name in defined


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("8 B", "dd 01 21 0d 01 08"),
        ("8 B default qos", "5d 01 01 08"),
        ("1 KiB", "dd 01 21 0d 01 80 08"),
        ("8 B routed", "9d 01 21 0d 21"),
    ],
)
def test_uniform_traffic_is_what_the_reference_sends(name: str, start: str) -> None:
    batch = traffic.build(name, quick=True).batches[0]
    frame = bytes.fromhex("25 80 80 80 01")
    assert batch.startswith(frame + bytes.fromhex(start))


@pytest.mark.parametrize("name", traffic.NAMES)
def test_traffic_holds_what_it_says(name: str) -> None:
    sent = traffic.build(name, quick=True)
    assert max(map(len, sent.batches)) <= traffic.BATCH_SIZE
    few = sent.head(100)
    assert few.batches == sent.batches[: len(few.batches)]
    assert 100 <= few.messages <= sent.messages
    found = [m for batch in few.batches for m in decode_batch(batch)]
    assert len(found) > few.messages


def test_contenders_run_equally_often() -> None:
    calls: list[str] = []
    contenders = {name: lambda name=name: calls.append(name) for name in "ab"}
    best = best_of(contenders, seconds=0, least=2)
    assert list(best) == ["a", "b"]
    assert calls.count("a") == calls.count("b") > 2
    assert all(np.isfinite(t) for t in best.values())


def test_a_ratio_says_how_many_times_as_fast_ours_is() -> None:
    result = Result("x", "y", "z", 1e-9, other="w", other_seconds=2e-9, goal=3)
    assert result.ratio == 2
    assert result.met is False
    assert "2.00x  3 missed" in report.lines([result])[-1]
    assert Result("x", "y", "z", 1e-9).ratio is None


@pytest.mark.parametrize("name", ["scan", "arrow", "write"])
def test_a_quick_run_gives_results(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--quick", "--json"]) == 0
    out, progress = capsys.readouterr()
    report = json.loads(out)
    assert {r["benchmark"] for r in report["results"]} == {name}
    assert {r["case"] for r in report["results"]} >= set(traffic.DATA)
    assert all(r["seconds"] > 0 for r in report["results"])
    assert report["machine"]["python"]
    assert name in report["meaning"]
    assert f"{name}: mix" in progress


@pytest.mark.interop
@pytest.mark.long
def test_a_quick_run_of_sessions_compares_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "--quick", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    ways = [f"{where} {how}" for where in ("peers", "router") for how in bench_session.PINGS]
    ways += [f"{where} {how}" for where in ("peers", "router") for how in bench_session.QUERIES]
    cases = {f"{way} {share}" for way in ways for share in ("p50", "p99")}
    assert {r["case"] for r in results} == cases | {"open a client", "open a peer"}
    assert all(r["seconds"] > 0 and r["other_seconds"] > 0 for r in results)
    assert all("best turn" in r["note"] for r in results)
    assert sum("KiB against" in r["note"] for r in results) == 2


def test_a_session_that_fails_is_told() -> None:
    with (
        pytest.raises(RuntimeError, match="has failed"),
        # Nobody listens there.
        bench_session.child("ours", "ask", "client", connect=bench_session.free_port()),
    ):
        pass


def test_what_is_not_installed_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "zenoh", None)
    for name in ("benchmarks.of_keyexpr", "benchmarks.bench_keyexpr"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert main(["keyexpr", "--quick"]) == 0
    assert "keyexpr: skipped: zenoh is not installed" in capsys.readouterr().out


def test_every_benchmark_is_known_and_others_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert {"scan", "arrow", "write", "keyexpr", "startup"} <= set(names())
    with pytest.raises(SystemExit):
        main(["no-such-benchmark"])
    assert "no-such-benchmark" in capsys.readouterr().err


@pytest.mark.interop
@pytest.mark.long
def test_a_quick_run_of_puts_compares_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["put", "--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["skipped"]
    cases = [f"{size} B {what}" for size in bench_put.SIZES for what in bench_put.KINDS]
    assert [r["case"] for r in found["results"]] == [case for case in cases for _ in range(2)]
    assert all(r["seconds"] > 0 and r["ratio"] > 0 for r in found["results"])


@pytest.mark.parametrize("size", bench_live.SIZES.values())
def test_what_the_live_sender_encoded_is_what_is_compared(size: int) -> None:
    rows = live_child._rows_of_batch(size)
    ring = live_child._ring(5, size)
    wanted = live_child.sent(size, rows * RING + 1)
    for at in (0, 1, RING - 1):
        batch: list[Any] = decode_batch(ring[at][2:])
        frame, *pushes = batch
        assert frame.sn == (5 + at) % RING
        found = [(live_child.KEYS[push.key.scope - 1], push.body.payload) for push in pushes]
        assert found == wanted[at * rows : (at + 1) * rows]
    assert wanted[-1] == wanted[0]


def test_a_rate_is_kept_and_all_is_sent() -> None:
    assert sum(live_child._paced(1000, 0)) == 1000
    assert sum(live_child._paced(100, 10_000)) == 100


@pytest.mark.interop
@pytest.mark.long
def test_a_quick_run_of_the_live_pipeline_compares_everything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pyspark")
    assert main(["live", "--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["skipped"]
    cases = {(r["case"], r["ours"]) for r in found["results"]}
    assert cases == {
        *(
            (f"saturated 8 B{cpu}", f"into the {what}")
            for cpu in ("", " cpu")
            for what in ("spool", "table")
        ),
        *(
            (f"visible {share}", f"in the {what}")
            for share in ("p50", "p99")
            for what in ("spool", "table")
        ),
    }
    assert all(r["seconds"] > 0 for r in found["results"])
