"""Where a spool is: a directory of this machine, or any filesystem of PyArrow or fsspec.

Here files grow, are synced and are mapped into memory. Elsewhere they are written whole.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from zenwire.spool.errors import SpoolDamaged, SpoolError

__all__ = ["Local", "Place", "Remote", "place_of", "sync_folder"]

_SCHEME_MIN: Final = 2
"""A letter before a colon is a drive."""
_MAPS_MAX: Final = 64


class Place(Protocol):
    """A directory. Names in it are relative, with slashes."""

    def __str__(self) -> str: ...

    def read(self, name: str) -> bytes:
        """The whole file. Raises FileNotFoundError, OSError."""
        ...

    def part(self, name: str, position: int, length: int = -1) -> bytes:
        """Bytes of a file, or fewer if it is shorter: a copy, of what others may cut off."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Writes a file as a whole: there is the old one or the new one, never half of it."""
        ...

    def names(self, folder: str) -> list[str]:
        """The files of a folder, in order; none if there is no such folder."""
        ...

    def delete(self, name: str) -> None:
        """Nothing happens if there is no such file."""
        ...

    def size(self, name: str) -> int:
        """Raises FileNotFoundError, OSError."""
        ...

    def view(self, name: str, position: int, length: int) -> pa.Buffer:
        """Bytes of a file; here without copying them. Raises SpoolDamaged if it is shorter."""
        ...

    def stamp(self, name: str) -> object:
        """Something that is another after the file was replaced, or None where nobody can know."""
        ...


class Local:
    """A directory of this machine. ``mapped``: views are of mapped files, else copies."""

    def __init__(self, root: Path, *, mapped: bool = True) -> None:
        self.root = root
        self._mapped = mapped
        self._maps: dict[str, tuple[int, int, pa.MemoryMappedFile]] = {}

    def __str__(self) -> str:
        return str(self.root)

    def __reduce__(self) -> tuple[type[Local], tuple[Path]]:
        return type(self), (self.root,)

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def part(self, name: str, position: int, length: int = -1) -> bytes:
        with (self.root / name).open("rb") as f:
            f.seek(position)
            return f.read(length)

    def replace(self, name: str, data: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        other = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with other.open("wb") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
            other.replace(path)
        except BaseException:
            other.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(e.name for e in os.scandir(self.root / folder) if e.is_file())
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def size(self, name: str) -> int:
        return (self.root / name).stat().st_size

    def view(self, name: str, position: int, length: int) -> pa.Buffer:
        # Looked at each time: to touch what was cut off a mapped file ends the process.
        stat = (self.root / name).stat()
        if position + length > stat.st_size:
            raise SpoolDamaged(str(self), name, f"it ends at byte {stat.st_size}")
        if not self._mapped:
            return pa.py_buffer(self.part(name, position, length))
        inode, size, found = self._maps.get(name, (0, 0, None))
        if found is None or inode != stat.st_ino or position + length > size:
            if len(self._maps) >= _MAPS_MAX:
                self._maps.clear()
            found = pa.memory_map(str(self.root / name))
            self._maps[name] = stat.st_ino, found.size(), found
        found.seek(position)
        return found.read_buffer(length)

    def stamp(self, name: str) -> object:
        stat = (self.root / name).stat()
        return stat.st_ino, stat.st_mtime_ns, stat.st_size


class Remote:
    """Another filesystem. ``replace`` is as whole as that filesystem makes it."""

    def __init__(self, fs: pafs.FileSystem, base: str) -> None:
        self.fs = fs
        self.base = base.rstrip("/")

    def __str__(self) -> str:
        return f"{self.fs.type_name}:{self.base}"

    def _path(self, name: str) -> str:
        return f"{self.base}/{name}"

    def read(self, name: str) -> bytes:
        with self.fs.open_input_file(self._path(name)) as f:
            found: bytes = f.read()
        return found

    def part(self, name: str, position: int, length: int = -1) -> bytes:
        with self.fs.open_input_file(self._path(name)) as f:
            f.seek(min(position, f.size()))
            found: bytes = f.read(None if length < 0 else length)
        return found

    def replace(self, name: str, data: bytes) -> None:
        # On an object store a file is there once its stream was closed.
        self.fs.create_dir(self._path(name).rpartition("/")[0], recursive=True)
        with self.fs.open_output_stream(self._path(name), compression=None) as f:
            f.write(data)

    def names(self, folder: str) -> list[str]:
        select = pafs.FileSelector(self._path(folder).rstrip("/"), allow_not_found=True)
        return sorted(i.base_name for i in self.fs.get_file_info(select) if i.is_file)

    def delete(self, name: str) -> None:
        if self.fs.get_file_info(self._path(name)).is_file:
            self.fs.delete_file(self._path(name))

    def size(self, name: str) -> int:
        info = self.fs.get_file_info(self._path(name))
        if not info.is_file:
            raise FileNotFoundError(self._path(name))
        return int(info.size)

    def view(self, name: str, position: int, length: int) -> pa.Buffer:
        with self.fs.open_input_file(self._path(name)) as f:
            size = f.size()
            if position + length > size:
                raise SpoolDamaged(str(self), name, f"it ends at byte {size}")
            f.seek(position)
            return f.read_buffer(length)

    def stamp(self, name: str) -> object:
        return None


def place_of(where: str | Path | Place) -> Place:
    """A path, or the address of a directory elsewhere, as PyArrow or fsspec write them.

    Raises SpoolError for an address that neither knows.
    """
    if isinstance(where, Path):
        return Local(where)
    if not isinstance(where, str):
        return where
    url = urlsplit(where)
    if url.scheme == "file":
        return Local(Path(unquote(url.path)))
    if len(url.scheme) < _SCHEME_MIN:
        return Local(Path(where))
    try:
        fs, base = pafs.FileSystem.from_uri(where)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        return _of_fsspec(where, str(e))
    return Remote(fs, base)


def _of_fsspec(where: str, why: str) -> Place:
    try:
        import fsspec  # type: ignore[import-untyped] # noqa: PLC0415 - an extra of the user's

        fs, base = fsspec.core.url_to_fs(where)
    except (ImportError, ValueError):
        raise SpoolError(where, f"is no address that PyArrow or fsspec knows ({why})") from None
    return Remote(pafs.PyFileSystem(pafs.FSSpecHandler(fs)), base)


def sync_folder(path: Path) -> None:
    """What was created, renamed and deleted in it stays so."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
