"""``examples/decode.py``: what it prints, and that it needs nothing but the standard library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.recorded import CAPTURES, _streams

EXAMPLES = Path(__file__).parents[2] / "examples"

# Imports of the extras fail, as they do where only zenwire is installed.
WITHOUT_EXTRAS = """
import runpy, sys
for name in ("numpy", "numba", "pyarrow", "pyspark", "pandas"):
    sys.modules[name] = None
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def test_decode() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, str(EXAMPLES / "decode.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert 30 < len(lines) <= 60
    assert max(map(len, lines)) <= 120
    assert "publisher.zenoh: a client publishes to a router" in done.stdout
    assert 'payload  7 bytes  "value 2"' in done.stdout
    assert "fleet/r2/pose                49" in done.stdout
    assert done.stderr == ""


def test_the_streams_are_those_of_the_captures() -> None:
    recorded = {stream for path in CAPTURES for stream in _streams(path).values()}
    shipped = sorted((EXAMPLES / "data").glob("*.zenoh"))
    assert len(shipped) == 2
    for path in shipped:
        assert path.read_bytes() in recorded
