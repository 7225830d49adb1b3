"""As if the extra ``fast`` were not installed: what it brings is not found.

ZENWIRE_ABSENT names other packages, joined by commas, that are not found instead.

Python runs this file by itself if its folder is in PYTHONPATH; so it holds for the programs that
tests start, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

FAST = "llvmlite,numba,numpy,pandas,pyarrow"
ABSENT = set(os.environ.get("ZENWIRE_ABSENT", FAST).split(","))


class _Without(MetaPathFinder):
    """Python's own way to find modules, but for those."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in ABSENT:
            return None
        return PathFinder.find_spec(fullname, path, target)

    def find_distributions(self, *context: Any) -> Iterable[Any]:
        """What is installed, for `importlib.metadata`."""
        return PathFinder.find_distributions(*context)

    def invalidate_caches(self) -> None:
        PathFinder.invalidate_caches()


sys.meta_path[:] = [_Without() if one is PathFinder else one for one in sys.meta_path]
