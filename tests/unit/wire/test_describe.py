"""The reference pages: complete, equal to the files in docs/wire, and checked as whole files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.strategies import label, message_specs, specs
from zenwire.wire.define import Spec
from zenwire.wire.describe import all_messages, main, pages
from zenwire.wire.diagram import diagram, flags_of, title

PAGES = pages()


def section(spec: Spec) -> str:
    """The part of a page that is about one definition."""
    found = [
        part
        for name, text in PAGES.items()
        for part in re.split(r"(?m)^(?=##+ )", text)
        if part.splitlines()[0].lstrip("# ") == title(spec)
        and (not spec.scope or name == f"{spec.scope}.md")
    ]
    assert found, f"no section on {title(spec)}"
    return found[0]


def test_the_pages_in_docs_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_the_pages() -> None:
    assert set(PAGES) == {
        "README.md",
        "scouting.md",
        "transport.md",
        "network.md",
        "declare.md",
        "data.md",
        "linkstate.md",
    }
    assert set(all_messages()) == set(message_specs())


@pytest.mark.parametrize("spec", specs(), ids=label)
def test_every_definition_has_its_section(spec: Spec) -> None:
    text = section(spec)
    assert f"```\n{diagram(spec)}\n```" in text
    assert f"`{spec.cls.__module__}.{spec.cls.__name__}`" in text
    for name, bits in flags_of(spec).items():
        assert re.search(rf"(?m)^\| {name} \| [\d:]+ \| 0x{bits.mask:02X} \| \S", text)
    for e in spec.exts:
        m = "yes" if e.mandatory else "no"
        row = rf"\| `{e.name}` \| 0x{e.id:X} \| (Unit|Z64|ZBuf) \| {m} \| `0x{e.header:02X}` \|"
        assert re.search(row, text)
    for f in spec.fields:
        if f.name != "unknown":
            assert f"| `{f.name}` |" in text


def test_links_between_pages_lead_somewhere() -> None:
    for text in PAGES.values():
        titles = re.findall(r"(?m)^##+ (.+)$", text)
        anchors = {re.sub(r"[^\w ]", "", t.lower()).replace(" ", "-") for t in titles}
        assert set(re.findall(r"\(#([^)]+)\)", text)) <= anchors
        assert set(re.findall(r"\((\w+\.md)\)", text)) <= set(PAGES)


def test_tables_have_the_columns_of_their_head() -> None:
    for text in PAGES.values():
        for block in re.findall(r"(?m)(?:^\|.*\|\n)+", text):
            counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            if not block.startswith("|Z") and "X|X" not in block:
                assert len(counts) == 1, block


def test_write_then_check(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "wire"
    assert main(["--write", "--into", str(folder)]) == 0
    assert main(["--check", "--into", str(folder)]) == 0
    assert {p.name for p in folder.iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", ["data.md", "README.md"])
@pytest.mark.parametrize("change", ["edit", "extend", "cut", "remove", "add"])
def test_check_names_the_file_that_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, change: str
) -> None:
    main(["--write", "--into", str(tmp_path)])
    path = tmp_path / name
    match change:
        case "edit":
            path.write_text(path.read_text().replace("bytes", "octets"))
        case "extend":
            path.write_text(path.read_text() + "\n")
        case "cut":
            path.write_text(path.read_text()[:-1])
        case "remove":
            path.unlink()
        case "add":
            path = tmp_path / f"stale_{name}"
            path.write_text("# Left over\n")
    assert main(["--check", "--into", str(tmp_path)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert path.name in told[0]
    assert "make docs" in told[0]
    main(["--write", "--into", str(tmp_path)])
    assert main(["--check", "--into", str(tmp_path)]) == 0


def test_it_must_be_told_what_to_do() -> None:
    with pytest.raises(SystemExit):
        main([])
    with pytest.raises(SystemExit):
        main(["--write", "--check"])
