"""All fuzz targets for a moment, and whether the fuzzer finds what it should find."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fuzz.__main__ as command
from fuzz import engine
from fuzz.engine import Runner, corpus
from fuzz.fields import fields_of, in_batch, put_z
from fuzz.seeds import Seed
from fuzz.targets import SCOPES, TARGETS, Target
from zenwire.errors import DecodeError, Fault
from zenwire.wire.buffer import Reader
from zenwire.wire.objects import decode

ROOT = Path(command.__file__).parent.parent
SECONDS = 4.0


def test_every_target_for_a_moment(tmp_path: Path) -> None:
    runner = Runner(TARGETS.values(), 0, tmp_path)
    runner.replay(corpus(ROOT / "fuzz" / "corpus"))
    report = runner.run(SECONDS)
    assert [f"{f.target}: {f.error} {f.data.hex()}" for f in report.findings] == []
    assert all(stats.execs for stats in report.stats.values())
    assert list(tmp_path.iterdir()) == []


def test_every_decoder_has_a_target() -> None:
    assert set(TARGETS) >= {f"decode-{scope}" for scope in SCOPES} | {
        "batch",
        "low-latency",
        "split",
        "expand",
        "lz4",
        "linkstate",
        "scan",
        "scan-stream",
        "write",
        "keyexpr",
        "encoding",
        "locator",
        "zid",
        "inspect",
    }


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read_and_refused(name: str) -> None:
    """Mutation starts from both sides: what is read to the end, and what is not."""
    target = TARGETS[name]
    assert len({seed.data for seed in target.seeds()}) >= 6
    ends = {engine._run(target, seed.data) for seed in target.seeds()[:300]}
    assert None in ends


def planted(data: bytes) -> None:
    if 0xE7 in data[3:]:
        raise ValueError("planted")
    decode(data, "data")


PLANTED = Target("planted", planted, TARGETS["decode-data"].seeds)


def test_a_planted_bug_is_found(tmp_path: Path) -> None:
    report = Runner([PLANTED], 1, tmp_path).run(1.0)
    (finding,) = report.findings
    assert finding.error == f"ValueError at {Path(__file__).name}:{_line()}: planted"
    assert len(finding.data) == 4, "it is made as short as it gets"
    assert finding.data[3] == 0xE7
    (written,) = tmp_path.iterdir()
    ((name, wanted, data),) = corpus(tmp_path)
    assert (name, wanted.strip(), data) == (written.name, "planted", finding.data)


def _line() -> int:
    return planted.__code__.co_firstlineno + 2


def test_a_case_is_the_same_again(tmp_path: Path) -> None:
    one, two = Runner([PLANTED], 7, tmp_path), Runner([PLANTED], 7, tmp_path)
    inputs = [one.input(PLANTED, case) for case in range(300)]
    assert [two.input(PLANTED, case) for case in range(300)] == inputs
    assert len(set(inputs)) > 250
    other = Runner([PLANTED], 8, tmp_path)
    assert [other.input(PLANTED, case) for case in range(300)] != inputs


def test_memory_that_grows_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bytes] = []
    monkeypatch.setattr(engine, "GROWTH_MAX", 4 << 20)
    # Written to, so that it is memory and not only addresses.
    leak = Target("leak", lambda _: kept.append(b"\1" * 65_536), PLANTED.seeds)
    report = Runner([leak], 0, tmp_path).run(0.5)
    assert [f.error.startswith("memory grew by") for f in report.findings] == [True]
    assert report.grown > 4 << 20


def test_what_is_slow_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SLOW", -1.0)
    quick = Target("quick", len, PLANTED.seeds)
    runner = Runner([quick], 0, tmp_path)
    runner.one(quick, 0)
    assert [f.error for f in runner.report.findings] == ["took more than -1.0 s"]


def test_a_corpus_is_replayed_on_its_targets(tmp_path: Path) -> None:
    (tmp_path / "a.hex").write_text("# target: one two\n# why\n00\nff\n")
    (tmp_path / "b.hex").write_text("01\n")
    ran: list[tuple[str, bytes]] = []
    targets = [
        Target(name, lambda data, name=name: ran.append((name, data)), PLANTED.seeds)  # type: ignore[misc]
        for name in ("one", "three")
    ]
    Runner(targets, 0, tmp_path).replay(corpus(tmp_path))
    assert ran == [("one", b"\0\xff"), ("one", b"\1"), ("three", b"\1")]


def test_fields_are_where_the_codec_reads_them() -> None:
    # FRAME, PUSH of "a" with QoS, PUT with an attachment and a payload.
    data = bytes.fromhex("2501 bd 00 01 61 21 05 81 43 02 7879 01 70")
    found = [(f.form, f.start, f.end) for f in fields_of(data, in_batch)]
    assert found == [
        ("u8", 0, 1),
        ("z", 1, 2),
        ("u8", 2, 3),
        ("z", 3, 4),
        ("length", 4, 5),
        ("text", 5, 6),
        ("ext", 6, 7),
        ("z", 7, 8),
        ("u8", 8, 9),
        ("ext", 9, 10),
        ("length", 10, 11),
        ("bytes", 11, 13),
        ("length", 13, 14),
        ("bytes", 14, 15),
    ]


@pytest.mark.parametrize("size", range(10))
@pytest.mark.parametrize("value", [0, 127, 128, 2**32 - 1, 2**56 - 1, 2**63, 2**64 - 1])
def test_long_spellings_are_read(value: int, size: int) -> None:
    data = put_z(value, size)
    assert len(data) >= size
    r = Reader(data)
    assert (r.z(), r.pos) == (value, len(data))


def test_the_command(tmp_path: Path) -> None:
    args = ["--seconds", "0.2", "--target", "zid", "--target", "split", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", *args], cwd=ROOT, capture_output=True, text=True, check=False
    )
    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert set(told["targets"]) == {"zid", "split"}
    assert told["findings"] == []
    assert "execs" in done.stderr


def test_a_documented_error_is_no_finding(tmp_path: Path) -> None:
    def refuse(data: bytes) -> None:
        raise DecodeError(Fault.INVALID, 0)

    target = Target("refuse", refuse, lambda: (Seed(b"x"),))
    runner = Runner([target], 0, tmp_path)
    runner.one(target, 0)
    assert runner.report.findings == []
    assert runner.report.stats["refuse"].refused == 1
