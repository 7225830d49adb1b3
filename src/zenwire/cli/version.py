"""``zenwire version``: what is installed, for a bug report."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import TYPE_CHECKING

from zenwire import __version__

if TYPE_CHECKING:
    import argparse

SUMMARY = "print the versions of zenwire and of what it uses"
EXAMPLES: tuple[str, ...] = ("zenwire version",)

# The distributions of the extras; metadata is read, nothing is imported.
_OPTIONAL = ("numpy", "numba", "pyarrow", "pyspark")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Take no arguments."""


def run(args: argparse.Namespace) -> int:
    """Print one ``name version`` per line."""
    print(f"zenwire {__version__}")
    print(f"{platform.python_implementation()} {platform.python_version()}")
    for name in _OPTIONAL:
        print(f"{name} {_installed(name)}")
    return 0


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
