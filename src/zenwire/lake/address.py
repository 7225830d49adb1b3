"""Where a lake is: a directory, or an object store by its address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pyarrow import fs as pafs

from zenwire.lake.errors import LakeError

__all__ = ["PARTIALS", "Address"]

PARTIALS: Final = ".zenwire/partials"
"""Files that tasks hand to later tasks. Hidden from table readers, removed after their merge."""
_SCHEME_MIN: Final = 2
"""Characters of a scheme: one is a drive letter."""


@dataclass(frozen=True)
class Address:
    """A lake's root. ``options`` are deltalake's storage options, for example ``AWS_ENDPOINT_URL``.

    One set of options serves table commits and data files, because both go through deltalake's
    object stores. A local directory is written directly, and its files are synced.
    """

    root: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, where: str | Path, options: Mapping[str, str] | None = None) -> Address:
        """A path, or a URL such as ``s3://bucket/lake``. Raises LakeError for another scheme."""
        text = str(where)
        url = urlsplit(text)
        if len(url.scheme) < _SCHEME_MIN:
            return cls(str(Path(text).resolve()), dict(options or {}))
        if url.scheme == "file":
            return cls(str(Path(unquote(url.path)).resolve()), dict(options or {}))
        if url.scheme not in _SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
            raise LakeError(text, f"unknown scheme {url.scheme}; use a path, {known}")
        return cls(text.rstrip("/"), dict(options or {}))

    def __reduce__(self) -> tuple[type[Address], tuple[str, dict[str, str]]]:
        """Without the filesystem, which each process opens for itself."""
        return type(self), (self.root, dict(self.options))

    @property
    def local(self) -> Path | None:
        """The directory, or None for an object store."""
        return None if "://" in self.root else Path(self.root)

    def table(self, name: str) -> str:
        """Path or URL of a table."""
        return f"{self.root}/{name}"

    @cached_property
    def files(self) -> pafs.FileSystem:
        """Filesystem whose paths are relative to the lake's root."""
        if self.local is not None:
            self.local.mkdir(parents=True, exist_ok=True)
            return pafs.SubTreeFileSystem(self.root, pafs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - slow to load

        handler = DeltaStorageHandler(self.root, dict(self.options))
        return pafs.PyFileSystem(handler)

    def sync(self, path: str) -> None:
        """Flush a written file and its directory to the disk. No effect on an object store."""
        if self.local is None:
            return
        for each in (self.local / path, (self.local / path).parent):
            fd = os.open(each, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def __str__(self) -> str:
        return self.root


_SCHEMES: Final = ("s3", "s3a", "az", "abfs", "abfss", "gs", "memory")
