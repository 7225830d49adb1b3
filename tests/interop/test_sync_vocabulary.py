"""``import zenwire as zenoh``: every name, signature and default of the stubs of the reference.

What is meant to differ is listed here, and what is listed must differ.
"""

from __future__ import annotations

import ast
import enum
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import zenoh
import zenoh.ext

import zenwire

pytestmark = pytest.mark.interop

FOLDER = Path(zenoh.__file__).parent
MODULES: dict[str, tuple[str, ModuleType]] = {
    "": ("__init__.pyi", zenwire),
    "ext": ("ext.pyi", zenwire.ext),
    "handlers": ("handlers.pyi", zenwire.handlers),
}
STUBS = {
    module: ast.parse((FOLDER / name).read_text(encoding="utf-8"))
    for module, (name, _) in MODULES.items()
}

ABSENT = {"shm"}
"""Shared memory."""

ALIASES = {"EntityId", "SourceSn"}
"""Names for types in the stub, which the reference does not have when it runs either."""

MORE = {
    "Config.__new__": "settings, as a dict",
    "QueryConsolidation.__new__": "mode may be left out",
    "open": "config may be left out, or be a dict",
    "Session.put": "reliability",
    "Session.delete": "reliability",
    "Session.get": "budget",
    "ext.MissDetectionConfig.__new__": "each may be left out, as when the reference runs",
    "ext.RecoveryConfig.__new__": "each may be left out, as when the reference runs",
    "handlers.FifoChannel.__new__": "overflow",
    "handlers.Callback.__new__": "capacity and overflow",
}
"""Arguments that only we have; all can be left out."""

METHODS = {"QueryConsolidation.mode"}
"""Called in the reference too, whatever its stub says."""


def _public(tree: ast.Module) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    seen = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            # Of overloads, the first: they differ in types only.
            if node.name not in seen:
                yield node
            seen.add(node.name)


def _named(kind: type) -> list[tuple[str, str, Any]]:
    return [
        (module, f"{module}.{node.name}".lstrip("."), node)
        for module, tree in STUBS.items()
        for node in _public(tree)
        if isinstance(node, kind)
    ]


CLASSES = [pytest.param(module, node, id=name) for module, name, node in _named(ast.ClassDef)]
FUNCTIONS = [pytest.param(module, node, id=name) for module, name, node in _named(ast.FunctionDef)]


def _said(function: ast.FunctionDef) -> list[tuple[str, str, str | None]]:
    """Name, kind and default of each argument but self."""
    args = function.args
    placed = [(one.arg, "place only") for one in args.posonlyargs]
    placed += [(one.arg, "place") for one in args.args]
    defaults: list[Any] = [None] * (len(placed) - len(args.defaults)) + args.defaults
    said = [
        (name, kind, None if default is None else ast.unparse(default))
        for (name, kind), default in zip(placed, defaults, strict=True)
    ]
    said += [
        (one.arg, "name", None if default is None else ast.unparse(default))
        for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    return [one for one in said if one[0] not in {"self", "cls"}]


KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "place only",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "place",
    inspect.Parameter.KEYWORD_ONLY: "name",
}


def _ours(function: Any) -> list[tuple[str, str, str | None]]:
    empty = inspect.Parameter.empty
    return [
        (one.name, KINDS[one.kind], None if one.default is empty else repr(one.default))
        for one in inspect.signature(function).parameters.values()
        if one.name not in {"self", "cls"} and one.kind in KINDS
    ]


def _compare(name: str, stub: ast.FunctionDef, found: Any) -> None:
    said, ours = _said(stub), _ours(found)
    if name in MORE:
        assert said != ours, f"{name} does not differ"
        known = {one[0] for one in said}
        kept = [(arg, kind) for arg, kind, _ in ours if arg in known]
        assert kept == [(arg, kind) for arg, kind, _ in said], name
        assert all(default is not None for arg, _, default in ours if arg not in known), name
    else:
        assert ours == said, name


@pytest.mark.parametrize(("module", "stub"), CLASSES)
def test_classes(module: str, stub: ast.ClassDef) -> None:
    ours = getattr(MODULES[module][1], stub.name)
    assert stub.name in MODULES[module][1].__all__
    seen = set()
    for method in stub.body:
        if not isinstance(method, ast.FunctionDef) or method.name in seen:
            continue
        seen.add(method.name)
        name = f"{module}.{stub.name}.{method.name}".lstrip(".")
        decorators = {ast.unparse(one) for one in method.decorator_list}
        if method.name == "__new__":
            if not issubclass(ours, enum.Enum):
                _compare(name, method, ours)
            continue
        found = inspect.getattr_static(ours, method.name, None)
        if "property" in decorators:
            fields = inspect.get_annotations(ours)
            assert found is not None or method.name in fields, f"{name} is missing"
            assert inspect.isfunction(found) == (name in METHODS), name
            continue
        assert found is not None, f"{name} is missing"
        assert isinstance(found, classmethod) == ("classmethod" in decorators), name
        if not method.name.startswith("__"):
            _compare(name, method, getattr(ours, method.name))


@pytest.mark.parametrize(("module", "stub"), FUNCTIONS)
def test_functions(module: str, stub: ast.FunctionDef) -> None:
    ours = getattr(MODULES[module][1], stub.name)
    assert stub.name in MODULES[module][1].__all__
    _compare(stub.name, stub, ours)


@pytest.mark.parametrize(("module", "stub"), CLASSES)
def test_constants(module: str, stub: ast.ClassDef) -> None:
    ours = getattr(MODULES[module][1], stub.name)
    theirs = getattr(getattr(zenoh, module) if module else zenoh, stub.name)
    for node in stub.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                mine, other = getattr(ours, target.id), getattr(theirs, target.id)
                assert str(mine) == str(other) or " object at " in str(other)


def test_all_that_runs() -> None:
    names = {name for name in dir(zenoh) if not name.startswith("_")} - {"zenoh"} - ABSENT
    assert names <= set(zenwire.__all__) | {"Handler"}
    for name in names:
        assert getattr(zenwire, name) is not None
    for name in ALIASES:
        assert not hasattr(zenoh, name)
    with pytest.raises(AttributeError, match="no shared memory"):
        zenwire.shm  # noqa: B018 # asking is the test


ENUMS = [
    "CongestionControl",
    "ConsolidationMode",
    "InterceptionPoint",
    "Locality",
    "Priority",
    "QueryTarget",
    "Reliability",
    "ReplyKeyExpr",
    "SampleKind",
    "SetIntersectionLevel",
    "WhatAmI",
]


@pytest.mark.parametrize("name", ENUMS)
def test_enums(name: str) -> None:
    ours, theirs = getattr(zenwire, name), getattr(zenoh, name)
    members = [one for one in dir(theirs) if isinstance(getattr(theirs, one), theirs)]
    assert members
    for one in members:
        assert str(getattr(ours, one)) == str(getattr(theirs, one))
        assert (getattr(ours, one) == ours.__members__[one]) is True
        for other in members:
            same = getattr(theirs, one) == getattr(theirs, other)
            assert (getattr(ours, one) == getattr(ours, other)) is same
