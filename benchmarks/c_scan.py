"""Compiles ``scan.c`` with the system's compiler and calls it with NumPy arrays."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.report import Skipped
from zenwire.columns.layout import BODY_SHIFT, MESSAGE_SHIFT, NETWORK, TRANSPORT, Form, Layout
from zenwire.columns.scan import Bytes, Int32, Rows, Scan, Spans
from zenwire.wire import kinds as k
from zenwire.wire import limits
from zenwire.wire.data import Del, Put
from zenwire.wire.define import spec_of
from zenwire.wire.network import Push
from zenwire.wire.objects import ID_MASK
from zenwire.wire.transport import Frame

__all__ = ["CScanner", "Other", "header"]

SOURCE: Final = Path(__file__).with_name("scan.c")
FLAGS: Final = ("-O3", "-march=native", "-shared", "-fPIC", "-std=c11", "-Wall", "-Wextra")


class Other(Exception):  # noqa: N818 # not an error: the yardstick reads publications only
    """There is a message in a batch that the C scan does not read."""


class _Table(ctypes.Structure):
    _fields_ = (
        ("c", ctypes.c_void_p),
        ("t", ctypes.c_void_p),
        ("present", ctypes.c_void_p),
        ("stride", ctypes.c_int64),
        ("rows", ctypes.c_int64),
    )


class Counts(NamedTuple):
    """Where a call of the C scan stopped."""

    batches: int
    rows: int
    transport_rows: int


class CScanner:
    """Scans into the arrays of a ``Scan``, so that both scanners use the same memory.

    Raises Skipped where there is no compiler.
    """

    def __init__(self, into: Scan) -> None:
        self._library = _library()
        self._into = into
        self._network = _table(into.network)
        self._transport = _table(into.transport)
        self._starts: Int32 = np.empty(65_536, np.int32)
        self._ends: Int32 = np.empty(65_536, np.int32)

    def split(self, buffer: Bytes) -> Spans:
        """The batches of a stream, at most 65,536."""
        state = ctypes.c_int64(0)
        n = self._library.split(
            _address(buffer),
            len(buffer),
            _address(self._starts),
            _address(self._ends),
            len(self._starts),
            ctypes.byref(state),
        )
        return Spans(self._starts[:n], self._ends[:n])

    def scan(self, buffer: Bytes, spans: Spans, first: int = 0) -> Counts:
        """Rows from batch ``first`` on, as many as fit. Raises Other."""
        state = (ctypes.c_int64 * 3)(first, 0, 0)
        other = self._library.scan(
            _address(buffer),
            _address(spans.starts),
            _address(spans.ends),
            len(spans.starts),
            ctypes.byref(self._network),
            ctypes.byref(self._transport),
            state,
        )
        if other:
            raise Other(f"batch {state[0]}")
        return Counts(*state)


def _table(rows: Rows) -> _Table:
    stride = rows.int32.shape[1]
    assert rows.uint64.shape[1] == stride
    return _Table(
        _address(rows.int32),
        _address(rows.uint64),
        _address(rows.present),
        stride,
        len(rows.present),
    )


def _address(array: np.ndarray[Any, Any]) -> int:
    return array.ctypes.data


@cache
def _library() -> ctypes.CDLL:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        raise Skipped(f"no C compiler: {compiler[0]!r} is not there (CC names another)")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "layout.h").write_text(header())
        target = Path(folder, "scan.so")
        command = [*compiler, *FLAGS, "-I", folder, "-o", str(target), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"{shlex.join(command)} failed:\n{done.stderr}")
        library = ctypes.CDLL(str(target))
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    library.scan.argtypes = [pointer, pointer, pointer, integer, pointer, pointer, pointer]
    library.split.argtypes = [pointer, integer, pointer, pointer, integer, pointer]
    library.split.restype = integer
    return library


def header() -> str:
    """Every number that ``scan.c`` needs, from the definitions."""
    values = {
        "ID_MASK": ID_MASK,
        "Z_FLAG": 0x80,
        "BODY_SHIFT": BODY_SHIFT,
        "MESSAGE_SHIFT": MESSAGE_SHIFT,
        "QOS_MASK": k.qos.keep,
        "PRIORITY_MASK": k.priority.keep,
        "ENCODING_MAX": 2**k.encoding.bits - 1,
        "ZID_MAX": limits.ZID_MAX,
        "SCHEMA_MAX": limits.SCHEMA_MAX,
        "KEY_SUFFIX_MAX": limits.KEY_SUFFIX_MAX,
        "PAYLOAD_MAX": limits.PAYLOAD_MAX,
        "EXTENSION_BODY_MAX": limits.EXTENSION_BODY_MAX,
        "EXTENSIONS_MAX": limits.EXTENSIONS_MAX,
    }
    for cls in (Push, Put, Del, Frame):
        spec = spec_of(cls)
        values[spec.name] = spec.id
        values |= {f"EXT_{spec.name}_{e.name.upper()}": e.header for e in spec.exts}
        for name, bits in vars(cls).items():
            if isinstance(bits, k.Bits):
                values[f"{spec.name}_{name}"] = bits.mask
    lines = [f"#define {name} {value:#x}u" for name, value in values.items()]
    lines += [*_columns("N", NETWORK), *_columns("T", TRANSPORT)]
    return "\n".join(lines) + "\n"


def _columns(prefix: str, layout: Layout) -> list[str]:
    lines = [f"#define {prefix}_{name.upper()} {i}" for i, name in enumerate(layout.fixed)]
    for column in layout.columns.values():
        name = f"{prefix}_{column.name.upper()}"
        lines.append(f"#define HAS_{name} {1 << column.bit:#x}ull")
        if column.form is not Form.BOOL:
            lines.append(f"#define {name} {column.slot}")
    return lines
