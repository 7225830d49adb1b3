"""The kernels never look behind the end of a buffer: there they would die.

In a process of its own, so that its death is a failure here and not the end of the run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import guarded

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs mprotect")


def _run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.hostile.guarded", *args]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )


def test_nothing_is_read_or_written_beyond_a_buffer() -> None:
    done = _run()
    assert done.returncode == 0, f"died in: {done.stdout}\n{done.stderr}"
    told = done.stdout.split()
    assert told[::2] == [job.__name__ for job in guarded.JOBS]
    assert all(int(count) > 50 for count in told[1::2])


def test_one_byte_beyond_is_death() -> None:
    """So the test above would see it."""
    done = _run("beyond")
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
    assert done.stdout.split() == ["beyond"]
