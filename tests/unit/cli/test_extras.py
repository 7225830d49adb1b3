"""Commands without the packages that they need: one line, and no traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from zenwire.cli.extras import EXTRAS, require
from zenwire.cli.main import COMMANDS, extra_of, main

ROOT = Path(__file__).parents[3]
WITHOUT = ROOT / "tests" / "without_fast"
FAST = "llvmlite,numba,numpy,pandas,pyarrow"


def run(absent: str, *args: str) -> tuple[int, str, str]:
    """A command in a Python that does not find some packages."""
    done = subprocess.run(
        [sys.executable, "-m", "zenwire", *args],
        env=os.environ | {"PYTHONPATH": str(WITHOUT), "ZENWIRE_ABSENT": absent},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("line", "absent", "needed"),
    [
        ("record -k a --to {place}", FAST, "fast"),
        ("record -k a --to {place} --format mcap", FAST + ",mcap", "fast,mcap"),
        ("record -k a --to {place} --format mcap", "mcap", "mcap"),
        ("report {capture} --json", FAST + ",pyspark", "spark"),
        ("report {capture} --html {place}", "pyspark", "spark"),
        ("tables {capture} --out {place}", FAST + ",pyspark", "spark"),
        ("tables {capture} --out {place}", "pandas", "spark"),
        ("tables {capture} --out {place} --format delta", "deltalake", "spark,delta"),
        ("lake info {place}", "deltalake", "spark"),
        ("ingest --spool {place} --lake {place}", FAST + ",pyspark", "spark"),
        ("ingest --spool {place} --lake {place} -k a", "pyspark", "spark"),
        (
            "ingest --spool {place} --lake {place} --format iceberg",
            "pyspark,pyiceberg",
            "spark,iceberg",
        ),
        ("inspect {capture}", FAST, "fast"),
    ],
)
def test_a_line_names_the_extra(line: str, absent: str, needed: str, tmp_path: Path) -> None:
    place, capture = tmp_path / "place", ROOT / "tests" / "captures" / "udp.pcap"
    code, out, err = run(absent, *line.format(place=place, capture=capture).split())
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.endswith(f"pip install 'zenwire[{needed}]'\n")
    assert not place.exists()


@pytest.mark.parametrize("name", [n for n, command in COMMANDS.items() if extra_of(command)])
def test_the_help_says_so(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    mark = f"zenwire[{extra_of(COMMANDS[name])}]"
    for line in (["--help"], [name, "--help"]):
        with pytest.raises(SystemExit):
            main(line)
        out = " ".join(capsys.readouterr().out.split())
        assert re.search(rf"(^usage: zenwire {name} | {name} ).*{re.escape(mark)}", out)


def test_the_help_works_without_them() -> None:
    for line in (["--help"], ["record", "--help"], ["tables", "--help"]):
        code, out, err = run(FAST + ",pyspark", *line)
        assert (code, err) == (0, "")
        assert "zenwire[" in out


def test_the_extras_are_those_of_the_project() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra, packages in EXTRAS.items():
        wanted = declared["optional-dependencies"][extra]
        assert {re.split(r"[\[<>=]", one)[0] for one in wanted} == set(packages)


def test_what_is_there_is_not_missed() -> None:
    require(*EXTRAS)
