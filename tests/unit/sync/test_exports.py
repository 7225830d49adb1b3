"""``import zenwire``: all names, and nothing loaded before it is asked for."""

from __future__ import annotations

import ast
import inspect
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


MODULES = ("zenwire", "zenwire.aio", "zenwire.aio.ext", "zenwire.ext", "zenwire.handlers")


def undocumented(owner: type) -> list[str]:
    """Public methods and properties of a class that have no docstring."""
    missing = []
    for home in owner.__mro__:
        if not home.__module__.startswith("zenwire."):
            continue
        for name, member in vars(home).items():
            called = getattr(member, "__func__", member)
            if name.startswith("_") or not (
                inspect.isroutine(called) or isinstance(member, property)
            ):
                continue
            if not (called.__doc__ or "").strip():
                missing.append(f"{home.__module__}.{home.__qualname__}.{name}")
    return missing


@pytest.mark.parametrize("module", MODULES)
def test_everything_public_is_documented(module: str) -> None:
    home = import_module(module)
    missing = [] if home.__doc__ else [module]
    for name in home.__all__:
        public = getattr(home, name)
        if not callable(public):
            continue
        if inspect.isclass(public):
            missing += undocumented(public)
        if inspect.isclass(public) or inspect.isfunction(public):
            missing += [] if (public.__doc__ or "").strip() else [f"{module}.{name}"]
    assert sorted(set(missing)) == []


@pytest.mark.parametrize("module", MODULES)
def test_modules_can_be_imported_first(module: str) -> None:
    program = f"import {module}; print({module}.__name__, min({module}.__all__))"
    run = subprocess.run(  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    first = min(import_module(module).__all__)
    assert (run.stdout, run.stderr) == (f"{module} {first}\n", "")


def test_the_modules_of_asyncio_and_of_threads_have_the_same_names() -> None:
    assert set(import_module("zenwire.aio.ext").__all__) == set(
        import_module("zenwire.ext").__all__
    )
    assert zenwire.aio.ext is import_module("zenwire.aio.ext")


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
