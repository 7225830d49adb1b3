"""The first use of the kernels in a fresh process: seconds from import to the first result.

The process imports ``zenwire.columns``, scans one batch, makes a record batch of it and writes
that again. With an empty cache all kernels are compiled first; that happens once on a machine
and for a version. "imports" is NumPy, Numba and PyArrow without us. The start of Python
itself is in none of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks.report import Result, progress

__all__ = ["run"]

_FIRST_USE = """
import time
start = time.perf_counter()
from zenwire.columns import COLUMNS, Scanner, Writer, as_buffer, network
batch = bytes.fromhex("2501dd01210d010161")
stream = len(batch).to_bytes(2, "little") + batch
table = next(network(scan, COLUMNS) for scan in Scanner().scan_stream(as_buffer(stream)))
assert sum(written.rows for written in Writer().write(table)) == 1
print(time.perf_counter() - start)
"""
_IMPORTS = """
import time
start = time.perf_counter()
import numba, numpy, pyarrow, pyarrow.compute
print(time.perf_counter() - start)
"""


def run(quick: bool) -> list[Result]:
    if quick:
        # Whoever got here has a warm cache.
        progress("startup: warm cache")
        imports, warm = _seconds(_IMPORTS), _seconds(_FIRST_USE)
        return [Result("startup", "warm cache", "first use", warm, "process", "imports", imports)]
    with tempfile.TemporaryDirectory() as cache:
        progress("startup: empty cache, some seconds")
        cold = _seconds(_FIRST_USE, cache)
        progress("startup: warm cache")
        turns = [(_seconds(_IMPORTS, cache), _seconds(_FIRST_USE, cache)) for _ in range(5)]
        imports, warm = map(min, zip(*turns, strict=True))
    return [
        Result("startup", "warm cache", "first use", warm, "process", "imports", imports),
        Result("startup", "warm cache", "first use", warm, "process", "empty cache", cold),
    ]


def _seconds(code: str, cache: str | None = None) -> float:
    environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)
