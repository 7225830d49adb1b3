"""``zenwire tables``: what is wrong is said at once, in a line, before Spark is even loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recorded import CAPTURES
from zenwire.cli import tables
from zenwire.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    code = main(["tables", *map(str, args)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.pcap", None, "no such file"),
        ("empty.pcap", b"", "the file is empty"),
        ("notes.txt", b"hello", "neither pcap nor pcapng"),
    ],
)
def test_captures_that_are_none(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    content: bytes | None,
    said: str,
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code, out, err = run(capsys, tmp_path / name, "--out", tmp_path / "out")
    assert (code, out) == (1, "")
    assert err.startswith(f"zenwire tables: {tmp_path / name}: ")
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_out_is_no_directory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "file"
    out.touch()
    code, text, err = run(capsys, CAPTURES[0], "--out", out)
    assert (code, text) == (1, "")
    assert "--out is a directory" in err
    assert err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_out_that_may_not_be_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    code, _, err = run(capsys, CAPTURES[0], "--out", tmp_path / "deep" / "out")
    assert code == 1
    assert "give another --out" in err


def test_rotating_captures_are_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(CAPTURES[0].read_bytes())
    (tmp_path / "notes.txt").write_text("none")
    code, _, err = run(capsys, tmp_path, "--rotating", "--out", tmp_path / "out")
    assert code == 2
    assert "notes.txt is no capture" in err


def test_a_setting_without_a_value(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, CAPTURES[0], "--out", tmp_path, "--conf", "spark.x")
    assert code == 2
    assert "NAME=VALUE" in err


def test_mistakes_are_told_without_loading_anything_slow(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom zenwire.cli.main import main\n"
        f"main(['tables', 'missing.pcap', '--out', {str(tmp_path)!r}])\n"
        "print(sorted({'numpy', 'numba', 'pyarrow', 'pyspark'} & {*sys.modules}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout == "[]\n"
    assert result.stderr == "zenwire tables: missing.pcap: no such file; check the path\n"


def test_help_has_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["tables", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for example in tables.EXAMPLES:
        assert f"  {example}\n" in text
