"""With and without the extra ``fast``: the same tests, the same results.

``make test-core`` runs all tests of the node without it; here some of each kind are run so.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRA = ["numba", "numpy", "pyarrow"]
SOME = [
    "tests/unit/test_without_fast.py",
    "tests/unit/api/test_queries.py",
    "tests/unit/api/ext/test_advanced.py",
    "tests/unit/node",
    "tests/unit/sync/test_session.py",
    "tests/interop/test_aio_pubsub.py",
    "tests/interop/test_ext_loss_aio.py",
]

without = bool(os.environ.get("ZENWIRE_WITHOUT_FAST"))


@pytest.mark.skipif(not without, reason="the extra is installed")
@pytest.mark.parametrize("name", EXTRA)
def test_it_is_absent(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        import_module(name)
    with pytest.raises(ImportError, match="pip install"):
        import_module("zenwire.columns")
    child = subprocess.run(  # our own program
        [sys.executable, "-c", f"import {name}"], capture_output=True, text=True, check=False
    )
    assert "ModuleNotFoundError" in child.stderr
    assert find_spec(name) is None


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.skipif(without, reason="this is it")
def test_some_tests_without_it() -> None:
    found = subprocess.run(  # our own program
        [sys.executable, "-m", "pytest", "-q", "-m", "not long", *SOME],
        cwd=ROOT,
        env=os.environ | {"ZENWIRE_WITHOUT_FAST": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout
    passed = re.search(r"(\d+) passed", found.stdout)
    assert passed is not None
    assert int(passed[1]) > 100
