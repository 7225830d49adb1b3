"""Definitions of ROS 2 messages: ``.msg`` text to fields.

    MSG: geometry_msgs/msg/Twist
    Vector3 linear
    Vector3 angular

Types are named ``package/msg/Name``, and where they are looked up also ``package/Name``, as DDS
does (``package::msg::dds_::Name_``), or by their name alone within a package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from zenwire.errors import ZError

__all__ = ["PRIMITIVES", "DefinitionError", "Definitions", "Field", "load", "parse", "plain_name"]

ARRAY_MAX: Final = 1 << 20
"""Elements of an array that a definition may declare."""
PRIMITIVES: Final = {
    "bool": "?",
    "byte": "B",
    "char": "B",
    "float32": "f",
    "float64": "d",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
}
"""As the module struct names them."""
_FIELD: Final = re.compile(
    r"(?P<type>[A-Za-z][\w/]*)(?:<=\d+)?(?P<array>\[(?P<bound><=)?(?P<size>\d*)\])?"
    r"\s+(?P<name>[A-Za-z]\w*)\s*(?P<rest>.*)"
)
_DDS: Final = re.compile(r"(\w+)::(\w+)::dds_::(\w+)_")


class DefinitionError(ZError):
    """A file of definitions that is none."""


@dataclass(frozen=True, slots=True)
class Field:
    """``size`` is that of an array, 0 of a sequence, and None of a single value."""

    name: str
    type: str
    size: int | None


Definitions = Mapping[str, tuple[Field, ...]]
"""By ``package/msg/Name``."""


def plain_name(name: str) -> str:
    """``package/msg/Name`` of any way to write it."""
    dds = _DDS.fullmatch(name)
    if dds:
        return "/".join(dds.groups())
    parts = name.replace("::", "/").split("/")
    return f"{parts[0]}/msg/{parts[1]}" if len(parts) == 2 else "/".join(parts)


def load(*paths: str | Path) -> dict[str, tuple[Field, ...]]:
    """The common ones, and those of files, or of directories of ``.msg`` files.

    Raises DefinitionError, OSError.
    """
    common = files("zenwire.lake.payloads").joinpath("common.msg").read_text("utf-8")
    found = parse(common, "common.msg")
    for path in map(Path, paths):
        inside = sorted(path.rglob("*.msg")) if path.is_dir() else [path]
        if not inside:
            raise DefinitionError(f"{path}: no .msg file is in this directory")
        for file in inside:
            found |= parse(file.read_text("utf-8"), str(file), _of_path(file))
    _check(found)
    return found


def _of_path(file: Path) -> str | None:
    """``geometry_msgs/msg/Twist`` of ``.../geometry_msgs/msg/Twist.msg``."""
    kind, package = file.parent.name, file.parent.parent.name
    return f"{package}/{kind}/{file.stem}" if kind in ("msg", "srv", "action") else None


def parse(text: str, where: str, name: str | None = None) -> dict[str, tuple[Field, ...]]:
    """Each definition begins with a line ``MSG: package/msg/Name``; the first may be ``name``.

    Raises DefinitionError.
    """
    found: dict[str, list[Field]] = {} if name is None else {name: []}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line or set(line) <= {"=", "-"}:
            continue
        if line.startswith("MSG:"):
            name = plain_name(line.removeprefix("MSG:").strip())
            found[name] = []
            continue
        if name is None:
            raise DefinitionError(
                f"{where}:{number}: which type is it? begin with MSG: package/msg/Name"
            )
        field = _field(line, name, f"{where}:{number}")
        if field is not None:
            found[name].append(field)
    return {name: tuple(fields) for name, fields in found.items()}


def _field(line: str, of: str, where: str) -> Field | None:
    match = _FIELD.fullmatch(line)
    if match is None:
        raise DefinitionError(f"{where}: {line!r} is no field")
    if match["rest"].startswith("=") and match["array"] is None:
        return None
    kind = match["type"]
    if kind not in PRIMITIVES and kind not in ("string", "wstring"):
        package = "std_msgs" if kind == "Header" else of.partition("/")[0]
        kind = plain_name(kind) if "/" in kind else f"{package}/msg/{kind}"
    size = None
    if match["array"] is not None:
        size = 0 if match["bound"] or not match["size"] else int(match["size"])
        if not match["bound"] and match["size"] and not 0 < size <= ARRAY_MAX:
            raise DefinitionError(f"{where}: an array of {size} elements")
    return Field(match["name"], kind, size)


def _check(found: Definitions) -> None:
    """A type that contains itself has no end. Raises DefinitionError."""
    whole: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise DefinitionError(f"{name} contains itself")
        if name in whole or name not in found:
            return
        for field in found[name]:
            visit(field.type, (*above, name))
        whole.add(name)

    for name in found:
        visit(name, ())
