"""A file that was cut anywhere can be completed, and read up to its last whole chunk."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("mcap")

from mcap.reader import make_reader
from mcap.writer import Writer

from zenwire.errors import ZError
from zenwire.record.mcap_file import complete, is_complete, set_aside


def made(path: Path) -> list[int]:
    """A file of twenty chunks that was closed; where they end."""
    ends = []
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        channel = writer.register_channel("k", "json", 0)
        for n in range(20):
            for i in range(5):
                writer.add_message(channel, n, bytes([n, i]) * 50, n)
            writer.flush()  # type: ignore[no-untyped-call] # of the package
            ends.append(file.tell())
        writer.finish()  # type: ignore[no-untyped-call] # of the package
    return ends


def messages(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        return [message.data[:2] for _, _, message in make_reader(file).iter_messages()]


def test_cut_anywhere(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.mcap", tmp_path / "cut.mcap"
    ends = made(whole)
    assert is_complete(whole)
    data = whole.read_bytes()
    chance = random.Random(1)
    for size in (8, 20, ends[0], ends[19], *(chance.randrange(8, ends[19]) for _ in range(60))):
        cut.write_bytes(data[:size])
        assert not is_complete(cut)
        lost = complete(cut, "killed")
        assert is_complete(cut)
        assert 0 <= lost < size
        found = messages(cut)
        least = 5 * sum(end <= size for end in ends)
        assert (
            found[: max(least, 0)] == [bytes([n, i]) for n in range(20) for i in range(5)][:least]
        )
        # Of a chunk that is whole, indexes behind it may be missing.
        assert len(found) in (least, least + 5)


def test_what_has_zeros_behind_it(tmp_path: Path) -> None:
    """As some file systems leave a file when the machine dies."""
    path = tmp_path / "a.mcap"
    ends = made(path)
    path.write_bytes(path.read_bytes()[: ends[3]] + bytes(5000))
    assert complete(path, "killed") == 5000
    assert len(messages(path)) == 20


def test_names(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    assert set_aside(path) is None
    ends = made(path)
    data = path.read_bytes()
    with pytest.raises(ZError, match="complete; give another name"):
        set_aside(path)
    assert path.read_bytes() == data
    for number in (1, 2):
        path.write_bytes(data[: ends[5] + 3])
        assert set_aside(path) == tmp_path / f"a-{number}.mcap"
        assert not path.exists()
        assert len(messages(tmp_path / f"a-{number}.mcap")) == 30
    path.write_bytes(b"a text that somebody wrote")
    with pytest.raises(ZError, match="is no MCAP file"):
        set_aside(path)
    assert path.read_bytes() == b"a text that somebody wrote"
    path.write_bytes(b"")
    assert set_aside(path) is None
    assert not path.exists()
