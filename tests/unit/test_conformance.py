"""docs/conformance.md names tests and vectors that exist, and leaves no message out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.strategies import label, message_specs
from tests.vectors import directory
from zenwire.wire.define import Spec

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")

ROWS = [line for line in TEXT.splitlines() if re.match(r"\| [A-Z]\d+ \|", line)]
DIFFERENCES = 29
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", TEXT)))


@cache
def functions(path: str) -> frozenset[str]:
    """Of a test module, without importing it."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_exists(name: str) -> None:
    path, _, function = name.partition("::")
    assert (ROOT / path).is_file()
    if path.endswith(".py") and function:
        assert function in functions(path)
    else:
        assert not function


def identifier(row: str) -> str:
    return row.split("|")[1].strip()


@pytest.mark.parametrize("row", ROWS, ids=identifier)
def test_every_row_is_shown_or_says_when(row: str) -> None:
    assert len(row.split("|")) == 7
    assert "`tests/" in row or "not yet" in row or "not built" in row


@pytest.mark.parametrize("row", ROWS, ids=identifier)
def test_nothing_waits_for_what_is_there(row: str) -> None:
    """The node is; what is still to come has another name."""
    assert "comes with the node" not in row


def test_rows_are_numbered() -> None:
    found: dict[str, list[int]] = {}
    for row in ROWS:
        name = identifier(row)
        found.setdefault(name[0], []).append(int(name[1:]))
    assert list(found) == ["M", "P", "Q", "R", "C", "X", "D"]
    for numbers in found.values():
        assert numbers == list(range(1, len(numbers) + 1))
    assert len(found["D"]) == DIFFERENCES


def test_every_difference_is_referred_to_by_its_number() -> None:
    last = {row.split("|")[-2].strip() for row in ROWS}
    referred = {number for cell in last for number in re.findall(r"\bD\d+\b", cell)}
    # D27 is about pages that are not among the five.
    assert {f"D{n}" for n in range(1, DIFFERENCES + 1)} - {"D27"} == referred


@pytest.mark.parametrize("spec", message_specs(), ids=label)
def test_every_message_has_a_row(spec: Spec) -> None:
    assert any(f"{spec.name} (0x{spec.id:02X}" in row for row in ROWS)


@pytest.mark.parametrize("spec", message_specs(), ids=label)
def test_every_message_has_a_vector_in_the_tables(spec: Spec) -> None:
    assert f"`tests/vectors/{spec.scope}/{directory(spec)}/" in TEXT


# What the definitions call it, and what the tables do.
WORDS = {
    "attachment": "Attachment",
    "auth": "Auth",
    "body": "QueryBody",
    "budget": "Budget",
    "compression": "Compression",
    "drop": "Drop",
    "first": "First",
    "info": "QueryableInfo",
    "key": "WireExpr",
    "lanes": "QoS",
    "lowlatency": "LowLatency",
    "multilink": "MultiLink",
    "node_id": "NodeId",
    "patch": "Patch",
    "priority": "QoS",
    "qos": "QoS",
    "qos_link": "QoSLink",
    "region_name": "RegionName",
    "remote_bound": "RemoteBound",
    "responder": "ResponderId",
    "shm": "Shm",
    "source_info": "SourceInfo",
    "target": "QueryTarget",
    "timeout": "Timeout",
    "timestamp": "Timestamp",
    "timestamp_stack": "timestamp stack",
}


@pytest.mark.parametrize("spec", message_specs(), ids=label)
def test_every_extension_has_a_row(spec: Spec) -> None:
    for e in spec.exts:
        words = {spec.name, "xtension", WORDS[e.name]}
        if e.name == "key":
            words = {"WireExpr extension", "0xF"}
        elif spec.name == "QUERY" and e.name == "shm":
            words = {"query", "shared-memory mark"}
        assert [row for row in ROWS if all(word in row for word in words)], (spec.name, e.name)


def test_every_word_is_used() -> None:
    assert {e.name for s in message_specs() for e in s.exts} == set(WORDS)
