"""Which files arguments mean, and what is said of those that are none."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.recorded import CAPTURES
from zenwire.cli.captures import capture_files, is_capture
from zenwire.errors import CaptureError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = CAPTURES[0].read_bytes()
    (tmp_path / "a.pcap").write_bytes(data)
    (tmp_path / "b.pcap.gz").write_bytes(gzip.compress(data))
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "other.gz").write_bytes(gzip.compress(b"nothing"))
    (tmp_path / "empty").touch()
    return tmp_path


def test_files_directories_and_patterns(folder: Path) -> None:
    both = [folder / "a.pcap", folder / "b.pcap.gz"]
    others = [folder / "empty", folder / "notes.txt", folder / "other.gz"]
    assert capture_files([str(folder)]) == (both, others)
    assert capture_files([str(folder / "*.pcap*")]) == (both, [])
    assert capture_files([str(both[1]), str(folder)]) == (both[::-1], others)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.pcap", "no such file"),
        ("*.pcapng", "no file matches"),
        ("notes.txt", "neither pcap nor pcapng"),
        ("other.gz", "neither pcap nor pcapng"),
        ("empty", "the file is empty"),
    ],
)
def test_what_is_no_capture(folder: Path, name: str, said: str) -> None:
    with pytest.raises(CaptureError, match=said):
        capture_files([str(folder / name)])


def test_a_directory_without_captures(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no captures in this directory"):
        capture_files([str(tmp_path)])


def test_what_only_begins_like_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content, expected in (
        (b"\x1f\x8b\x00", False),
        (gzip.compress(CAPTURES[0].read_bytes())[:12], False),
        (b"\x28\xb5\x2f\xfd", None),
    ):
        path.write_bytes(content)
        assert is_capture(path) is expected
