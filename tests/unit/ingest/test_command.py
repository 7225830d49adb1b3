"""``zenwire ingest``: what it refuses, in one line, before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lake.traffic import samples
from zenwire.cli.main import main
from zenwire.spool import Writer


@pytest.fixture
def spool(tmp_path: Path) -> str:
    with Writer.open(tmp_path / "spool") as writer:
        writer.append(samples(0, 1))
    return str(tmp_path / "spool")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--spool", "{spool}", "-e", "tcp/127.0.0.1:1"], (2, "say it with -k")),
        (["--spool", "{spool}", "-k", "a/**", "--once"], (2, "no --once")),
        (["--spool", "{spool}", "--spool", "b", "-k", "a/**"], (2, "one spool")),
        (["--spool", "{spool}", "--conf", "spark.x"], (2, "NAME=VALUE")),
        (["--spool", "{tmp}/none"], (1, "is no spool")),
        (["--spool", "{spool}", "--lake", "{file}"], (1, "is a directory, and this is none")),
    ],
)
def test_what_is_refused(
    spool: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: tuple[int, str],
) -> None:
    code, said = told
    (tmp_path / "file").touch()
    names = {"spool": spool, "tmp": tmp_path, "file": tmp_path / "file"}
    given = [argument.format(**names) for argument in arguments]
    lake = [] if "--lake" in given else ["--lake", str(tmp_path / "lake")]
    assert main(["ingest", *given, *lake]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "lake").exists()
