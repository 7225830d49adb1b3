"""Other filesystems: PyArrow's and fsspec's. Files there are written whole."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow.fs as pafs

from tests.unit.spool.rows import numbers, samples
from zenwire.spool import Retention, Settings, Spool, SpoolFailed, SpoolLocked, Writer
from zenwire.spool.files import Local, Place, Remote, place_of
from zenwire.spool.inspection import info, ls, verify


@pytest.fixture(params=["pyarrow", "fsspec"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "pyarrow":
        # This machine's, used as if it were another's.
        return Remote(pafs.LocalFileSystem(), str(tmp_path / "s"))
    pytest.importorskip("fsspec")
    return place_of(f"memory://{uuid.uuid4().hex}/s")


def test_addresses(tmp_path: Path) -> None:
    assert isinstance(place_of(tmp_path), Local)
    assert str(place_of("spools/fleet")) == "spools/fleet"
    assert str(place_of("file:///somewhere/a%20b")) == "/somewhere/a b"
    assert str(place_of("C:/x")) == "C:/x"


def test_a_spool_elsewhere(elsewhere: Place) -> None:
    settings = Settings(sync_interval=3600.0)
    with Writer.open(elsewhere, settings, name="far") as writer:
        for first in range(0, 30, 10):
            assert writer.append(samples(range(first, first + 10))) == first
            writer.flush()
        with pytest.raises(SpoolLocked, match="zenwire"):
            Writer.open(elsewhere)
        writer.lose("session", "gone", count=2)
        spool = Spool.open(elsewhere)
        assert spool.samples.latest() == 30
        assert numbers(spool.samples, 5, 25) == list(range(5, 25))
        assert spool.register("x", 15) == 15
    assert [(s.first, s.end) for s in ls(elsewhere)] == [(0, 10), (10, 20), (20, 30)]
    assert info(elsewhere).lost == {"session": 2}
    assert verify(elsewhere).faults == ()
    keep = Settings(sync_interval=3600.0, retention=Retention(bytes=1))
    with Writer.open(elsewhere, keep) as writer:
        assert writer.append(samples(range(30, 35))) == 30
        writer.flush()
    assert spool.samples.earliest() == 10
    assert numbers(spool.samples) == list(range(10, 35))


def test_who_lost_the_lock_writes_no_more(elsewhere: Place) -> None:
    writer = Writer.open(elsewhere, Settings(sync_interval=3600.0))
    writer.append(samples(range(5)))
    elsewhere.replace("lock", b'{"token": "of another"}')
    with pytest.raises(SpoolFailed, match="now written by"):
        writer.flush()
    with pytest.raises(SpoolFailed):
        writer.close()
    assert Spool.open(elsewhere).samples.latest() == 0


def test_a_lease_that_is_over_is_nobodys(elsewhere: Place) -> None:
    Writer.open(elsewhere).close()
    elsewhere.replace("lock", b'{"token": "of the dead", "until": 5.0}')
    with Writer.open(elsewhere) as writer:
        writer.append(samples(range(3)))
    for garbage in (b"", b"[]", b"\xff", b'{"until": "soon"}'):
        elsewhere.replace("lock", garbage)
        Writer.open(elsewhere).close()
    assert numbers(Spool.open(elsewhere).samples) == [0, 1, 2]
