"""Wrong input and output are found before Spark starts, and said in one line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from tests.unit.spool.rows import samples
from tests.web.conftest import CAPTURES
from zenwire.cli import report
from zenwire.errors import CaptureError, ZError
from zenwire.spool import Writer
from zenwire.web.report import InputError, open_source

CAPTURE = str(CAPTURES / "usrpwd.pcap")


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("zenwire.spark.session.spark_session", started)


def run(*inputs: str, html: str | None = None, as_json: bool = False) -> int:
    return report.run(argparse.Namespace(input=list(inputs), html=html, json=as_json))


def refused(*inputs: str, html: str = "report.html") -> str:
    with pytest.raises((ZError, OSError)) as error:
        run(*inputs, html=html)
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "nothing.pcap" in refused(str(tmp_path / "nothing.pcap"))
    assert "no such file" in refused(str(tmp_path / "*.pcap"))


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "x.pcap").touch()
    assert "empty" in refused(str(tmp_path / "x.pcap"))


def test_a_file_that_is_no_capture(tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_text("neither this nor that\n" * 10)
    assert "pcap" in refused(CAPTURE, str(tmp_path / "x.pcap"))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(Path(CAPTURE).read_bytes())
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert str(path) in refused(str(path))


def test_an_empty_directory(tmp_path: Path) -> None:
    assert "neither captures nor tables" in refused(str(tmp_path))


def test_a_directory_without_tables_of_a_report(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    assert "zenwire tables" in refused(str(tmp_path))
    (tmp_path / "queries").mkdir()
    assert "no Parquet file" in refused(str(tmp_path))


def test_captures_and_tables_together(tmp_path: Path) -> None:
    (tmp_path / "messages").mkdir()
    (tmp_path / "messages" / "part-0.parquet").touch()
    assert "or one directory" in refused(str(tmp_path), CAPTURE)


def test_spools_are_a_source_of_their_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with Writer.open(tmp_path / name) as writer:
            writer.append(samples(range(3)))
    both = [str(tmp_path / "a"), str(tmp_path / "b")]
    source = open_source(both)
    assert (source.kind, source.paths) == ("spools", both)
    assert "captures, or spools, or one directory" in refused(*both, CAPTURE)


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    assert "no/such" in refused(CAPTURE, html=str(tmp_path / "no/such/report.html"))
    assert "is a directory" in refused(CAPTURE, html=str(tmp_path))


def test_it_must_be_said_where_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(CAPTURE) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_files_directories_and_patterns_are_captures(tmp_path: Path) -> None:
    for name in ("a.pcap", "b.pcap"):
        (tmp_path / name).write_bytes(Path(CAPTURE).read_bytes())
    both = [str(tmp_path / "a.pcap"), str(tmp_path / "b.pcap")]
    for given in (both, [str(tmp_path)], [str(tmp_path / "*.pcap")], [*both, str(tmp_path)]):
        source = open_source(given)
        assert (source.kind, source.paths) == ("captures", both)


def test_the_errors_are_ours() -> None:
    assert issubclass(InputError, ZError)
    assert issubclass(CaptureError, ZError)
