"""Extras that commands need: which packages each has, and what to install if some are missing."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EXTRAS", "MissingExtraError", "require"]

_FAST: Final = ("numba", "numpy", "pyarrow")
EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "fast": _FAST,
    "spark": (*_FAST, "pandas", "pyspark", "deltalake"),
    "delta": ("deltalake",),
    "iceberg": ("pyiceberg",),
    "mcap": ("mcap",),
}
"""The packages of each extra of pyproject.toml that a command needs."""


class MissingExtraError(Exception):
    """A command cannot run without packages that are not installed: exit code 2."""


def require(*extras: str) -> None:
    """Check that the packages of these extras are installed. Raises MissingExtraError.

    Nothing is imported: that would take seconds.
    """
    missing = {
        extra: [name for name in EXTRAS[extra] if find_spec(name) is None] for extra in extras
    }
    packages = dict.fromkeys(name for names in missing.values() for name in names)
    if packages:
        are = "are" if len(packages) > 1 else "is"
        wanted = ",".join(extra for extra, names in missing.items() if names)
        raise MissingExtraError(
            f"{', '.join(packages)} {are} not installed: pip install 'zenwire[{wanted}]'"
        )
