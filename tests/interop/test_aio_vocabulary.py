"""The words of the reference: each class, method, property and argument of its stub is here."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
import zenoh

from zenwire import aio

pytestmark = pytest.mark.interop

STUB = ast.parse(Path(zenoh.__file__).with_name("__init__.pyi").read_text(encoding="utf-8"))
CLASSES = {
    node.name: node
    for node in STUB.body
    if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
}

RENAMED = {
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
    "__iter__": "__aiter__",
}
"""What waits is asynchronous here."""

VALUES = {"Parameters", "Query"}
"""Iterated, or entered, as in the reference: nothing waits there."""

MISSING = {
    # Python calls it for `Class(...)`; here classes have an `__init__`.
    "__new__",
}


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [one for one in node.body if isinstance(one, ast.FunctionDef)]


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes(name: str) -> None:
    ours = getattr(aio, name)
    assert name in aio.__all__
    for method in _methods(CLASSES[name]):
        if method.name in MISSING:
            continue
        word = method.name if name in VALUES else RENAMED.get(method.name, method.name)
        found = getattr(ours, word, None)
        if found is None:
            # Attributes of instances have no default in their class.
            assert word in inspect.get_annotations(ours), f"{name}.{word}"
            continue
        if method.name.startswith("__") or not inspect.isfunction(found):
            continue
        theirs = [arg.arg for arg in (*method.args.args, *method.args.kwonlyargs)]
        mine = list(inspect.signature(found).parameters)
        assert set(theirs) <= set(mine), f"{name}.{word}"
        # Those that can be given by place have the same places.
        places = [arg.arg for arg in method.args.args]
        assert mine[: len(places)] == places, f"{name}.{word}"


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_constants(name: str) -> None:
    ours = getattr(aio, name)
    for node in CLASSES[name].body:
        targets = []
        if isinstance(node, ast.Assign):
            targets = [one.id for one in node.targets if isinstance(one, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            targets = [node.target.id]
        for target in targets:
            assert hasattr(ours, target), f"{name}.{target}"


@pytest.mark.parametrize("name", ["open", "scout"])
def test_functions(name: str) -> None:
    [theirs, *_] = [n for n in STUB.body if isinstance(n, ast.FunctionDef) and n.name == name]
    names = [arg.arg for arg in (*theirs.args.args, *theirs.args.kwonlyargs)]
    assert list(inspect.signature(getattr(aio, name)).parameters) == names
