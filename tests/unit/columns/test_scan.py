from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from zenwire.columns import Scanner, Spans, as_buffer, split
from zenwire.errors import DecodeError, Fault
from zenwire.wire import encode_batch, frame_stream, split_stream
from zenwire.wire.data import Put
from zenwire.wire.network import Push
from zenwire.wire.transport import Frame, KeepAlive
from zenwire.wire.values import WireExpr

PUSH = Push(key=WireExpr(1), body=Put(payload=b"x"))
BATCH = encode_batch([Frame(reliable=True, sn=1), PUSH, KeepAlive(), Frame(sn=2), PUSH, PUSH])


def test_rows_know_their_frame() -> None:
    (scan,) = Scanner().scan(as_buffer(BATCH), Spans.of_lengths([len(BATCH)]))
    assert scan.network.count == 3
    assert scan.transport.message.tolist() == [5, 4, 5]
    assert scan.network.fixed("frame").tolist() == [0, 2, 2]
    assert scan.network.message.tolist() == [0x1D] * 3
    assert scan.network.body.tolist() == [1] * 3


def test_pieces_follow_each_other() -> None:
    """More rows than the arrays hold come in several pieces, cut between batches."""
    batch = encode_batch([Frame(sn=1), *[PUSH] * 13_000])
    scanner = Scanner()
    pieces = 0
    batches: list[int] = []
    rows = 0
    for scan in scanner.scan(as_buffer(batch * 20), Spans.of_lengths([len(batch)] * 20)):
        pieces += 1
        rows += scan.network.count
        batches += range(scan.first, scan.stop)
    assert pieces > 1
    assert rows == 20 * 13_000
    assert batches == list(range(20))


def test_a_batch_larger_than_the_arrays_makes_them_grow() -> None:
    batch = encode_batch([KeepAlive()]) * 200_000
    (scan,) = Scanner().scan(as_buffer(batch), Spans.of_lengths([len(batch)]))
    assert scan.transport.count == 200_000


def test_more_bad_batches_than_fit_at_once() -> None:
    scans = list(Scanner().scan(as_buffer(b"\xff" * 10_000), Spans.of_lengths([1] * 10_000)))
    assert sum(scan.stop - scan.first for scan in scans) == 10_000


def test_no_batches_and_empty_batches() -> None:
    assert list(Scanner().scan(as_buffer(b""), Spans.of_lengths([]))) == []
    (scan,) = Scanner().scan(as_buffer(b""), Spans.of_lengths([0, 0, 0]))
    assert (scan.network.count, scan.transport.count, len(scan.bad.batch)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("starts", "ends"), [([0], [99]), ([-1], [1]), ([2], [1]), ([0, 1], [1]), ([5], [6])]
)
def test_batches_outside_of_the_buffer_are_refused(starts: list[int], ends: list[int]) -> None:
    spans = Spans(np.array(starts, np.int32), np.array(ends, np.int32))
    with pytest.raises(ValueError, match=r"outside|starts"):
        list(Scanner().scan(as_buffer(b"\x04\x04"), spans))


def test_stream() -> None:
    stream = frame_stream(BATCH) * 3
    assert sum(s.network.count for s in Scanner().scan_stream(as_buffer(stream))) == 9


@pytest.mark.parametrize("prefix", [2, 4])
@pytest.mark.parametrize("tail", range(6))
def test_split_agrees_with_split_stream(prefix: int, tail: int) -> None:
    batches = [BATCH, b"", b"\x04" * 300, b"\x04"]
    stream = b"".join(frame_stream(batch, prefix) for batch in batches)
    stream += frame_stream(b"\x04" * 20, prefix)[:tail]
    spans, rest = split(as_buffer(stream), prefix=prefix)
    pairs = list(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True))
    assert pairs == list(split_stream(stream, prefix))
    assert rest == len(stream) - tail


def test_split_of_very_many_batches() -> None:
    spans, rest = split(as_buffer(b"\x00\x00" * 200_000))
    assert (len(spans.starts), rest) == (200_000, 400_000)


def test_split_refuses_a_batch_above_the_limit() -> None:
    stream = frame_stream(b"\x04") + frame_stream(b"\x04" * 200)
    with pytest.raises(DecodeError) as e:
        split(as_buffer(stream), limit=100)
    assert (e.value.fault, e.value.offset) == (Fault.LIMIT, 3)


def test_offsets_of_an_arrow_column() -> None:
    spans = Spans.of_offsets(np.array([0, 3, 3, 9], np.int32))
    assert (spans.starts.tolist(), spans.ends.tolist()) == ([0, 3, 3], [3, 3, 9])


def test_two_scanners_in_two_threads() -> None:
    """Kernels run without the GIL and share nothing."""
    from concurrent.futures import ThreadPoolExecutor

    batch = encode_batch([Frame(sn=1), *[PUSH] * 5_000])

    def count(_: int) -> int:
        spans = Spans.of_lengths([len(batch)] * 4)
        return sum(s.network.count for s in Scanner().scan(as_buffer(batch * 4), spans))

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(count, range(16))) == {20_000}


def _python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_without_the_extra_the_error_says_what_to_install() -> None:
    hide = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'numba' else find(name, *a)\n"
        "import zenwire.wire\n"
        "try:\n    import zenwire.columns\n"
        "except ImportError as e:\n    print(e)\n"
    )
    done = _python(hide)
    assert "pip install 'zenwire[fast]'" in done.stdout, done.stderr


def test_without_a_writable_cache_the_kernels_still_work() -> None:
    code = (
        "from numba.core import caching\n"
        "caching.CacheImpl._locator_classes = []; caching.CodeLibraryCacheImpl._locator_classes = []\n"
        "import numba; real = numba.njit\n"
        # Only the question whether there is a cache is asked: compiling everything takes long.
        "class Enough(Exception): pass\n"
        "def njit(*a, **k):\n"
        "    if k.get('cache') is False: raise Enough\n"
        "    return real(*a, **k)\n"
        "numba.njit = njit\n"
        "try:\n    import zenwire.columns.kernels\n"
        "except Enough:\n    print('compiles without a cache')\n"
    )
    done = _python(code)
    assert "compiles without a cache" in done.stdout, done.stderr
    assert "set NUMBA_CACHE_DIR" in done.stderr


def test_compiling_is_said_once_and_only_when_it_happens(tmp_path: Path) -> None:
    """A warm cache says nothing. What a cold one says is seen without waiting for its end."""
    warm = _python("import zenwire.columns.kernels")
    assert (warm.returncode, warm.stderr) == (0, "")
    code = (
        "import logging\n"
        "class Said(Exception): pass\n"
        "class Handler(logging.Handler):\n"
        "    def emit(self, record):\n        print(record.getMessage()); raise Said\n"
        "logging.getLogger('zenwire.columns').addHandler(Handler())\n"
        "try:\n    import zenwire.columns.kernels\n"
        "except Said:\n    pass\n"
    )
    cold = _python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiling the kernels" in cold.stdout, cold.stderr
    assert logging.getLogger("zenwire.columns").level == logging.NOTSET


@pytest.mark.parametrize("start", [-2, 101])
def test_split_starts_in_the_buffer(start: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        split(as_buffer(bytes(100)), start=start)
