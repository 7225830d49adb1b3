"""The package as a user meets it: version, command, README, and a core without dependencies."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import zenwire

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "zenwire"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CORE = ("errors", "wire", "keyexpr", "transport", "routing", "links", "node", "api")


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=60, check=False
    )


def test_version_is_the_installed_one() -> None:
    assert metadata.version("zenwire") == zenwire.__version__


def test_console_script_is_the_module() -> None:
    (script,) = metadata.entry_points(group="console_scripts", name="zenwire")
    assert script.value == "zenwire.cli.main:main"


def test_core_has_no_dependencies() -> None:
    assert PYPROJECT["project"]["dependencies"] == []
    for requirement in metadata.requires("zenwire") or []:
        assert "extra ==" in requirement


def test_locked_versions_are_exact_hashed_and_name_no_index() -> None:
    lock = (ROOT / "requirements" / "dev.lock").read_text()
    entries = [line for line in lock.splitlines() if re.match(r"[a-z0-9]", line)]
    assert entries
    for entry in entries:
        assert re.fullmatch(r"[a-z0-9.-]+==[^ ]+ \\", entry)
    assert lock.count("--hash=sha256:") >= len(entries)
    assert "://" not in lock
    assert "index" not in lock


def test_core_imports_without_the_extras() -> None:
    """Importing every core module loads none of the optional packages."""
    modules = [
        ".".join(path.with_suffix("").relative_to(SRC.parent).parts).removesuffix(".__init__")
        for name in CORE
        for path in [SRC / f"{name}.py", *(SRC / name).rglob("*.py")]
        if path.exists() and path.name != "__main__.py"
    ]
    assert "zenwire.errors" in modules
    result = run(
        "-c",
        "import importlib, sys\n"
        f"for name in {modules!r}:\n"
        "    importlib.import_module(name)\n"
        "print(sorted({'numpy', 'numba', 'pyarrow', 'pyspark', 'lz4', 'zenoh', 'websockets', 'yaml'} & {*sys.modules}))",
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_version_command() -> None:
    result = run("-m", "zenwire", "version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == f"zenwire {zenwire.__version__}"


def test_version_option() -> None:
    assert run("-m", "zenwire", "--version").stdout == f"zenwire {zenwire.__version__}\n"


def test_help_has_examples_of_every_command() -> None:
    from zenwire.cli.main import COMMANDS

    text = run("-m", "zenwire", "--help").stdout
    _, _, examples = text.partition("examples:\n")
    for name, command in COMMANDS.items():
        assert command.SUMMARY
        assert f"zenwire {name}" in examples
        assert all(f"zenwire {name}" in line for line in command.EXAMPLES)
        assert (SRC / "cli" / f"{name}.py").exists()


@pytest.mark.parametrize("args", [(), ("nonsense",), ("version", "--nonsense")])
def test_wrong_arguments_exit_with_2_and_usage(args: tuple[str, ...]) -> None:
    result = run("-m", "zenwire", *args)
    assert result.returncode == 2
    assert result.stderr.startswith("usage: zenwire")


def readme_blocks() -> list[str]:
    """But that for Spark, which tests/spark/test_tables.py runs."""
    found = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [block for block in found if "spark" not in block]


def test_readme_has_an_example() -> None:
    assert readme_blocks()


@pytest.mark.parametrize("block", readme_blocks())
def test_readme_example_runs_and_prints_what_it_says(block: str) -> None:
    result = run("-W", "error", "-c", block)
    assert (result.returncode, result.stderr) == (0, "")
    said = re.findall(r"^ *print\(.*#  ?(.*)$", block, re.MULTILINE)
    assert result.stdout.splitlines() == said
