"""``import zenwire``: all names, and nothing loaded before it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import zenwire


def test_names_are_where_they_are_said_to_be() -> None:
    assert sorted(set(zenwire.__all__)) == sorted(zenwire.__all__)
    for name in zenwire.__all__:
        assert getattr(zenwire, name) is not None
        assert name in dir(zenwire)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        zenwire.nothing  # noqa: B018 # asking is the test


def test_type_checkers_see_the_same() -> None:
    """What is imported for them is what is imported when it is asked for."""
    tree = ast.parse(Path(zenwire.__file__).read_text(encoding="utf-8"))
    checking = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in checking.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(seen) | {"__version__"} == set(zenwire.__all__)
    for name, home in seen.items():
        if home is not None and home != "zenwire":
            assert getattr(zenwire, name) is getattr(import_module(home), name)


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    program = (
        "import sys, zenwire\n"
        "print(sorted(m for m in sys.modules if m.startswith('zenwire') or m == 'asyncio'))\n"
        "print(zenwire.KeyExpr('a').intersects('*'), zenwire.handlers.RingChannel(1).capacity)\n"
    )
    run = subprocess.run(  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split("\n")[:2] == ["['zenwire']", "True 1"]
