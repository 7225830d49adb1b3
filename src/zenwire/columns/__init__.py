"""Whole batches and columns: messages as struct of arrays and as Arrow, compiled by Numba.

Needs the extra ``fast``. The first use on a machine compiles the kernels, which takes some
seconds and is said in the log; later ones load them from Numba's cache.

    scanner = Scanner()
    for scan in scanner.scan_stream(as_buffer(received)):
        record_batch = network(scan)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zenwire.columns.arrow import MALFORMED, malformed, network, schema, transport
    from zenwire.columns.layout import NETWORK, TRANSPORT, Column, Form, Layout
    from zenwire.columns.scan import Bad, Rows, Scan, Scanner, Spans, as_buffer, split
    from zenwire.columns.write import COLUMNS, Writer, Written

__all__ = [
    "COLUMNS",
    "MALFORMED",
    "NETWORK",
    "TRANSPORT",
    "Bad",
    "Column",
    "Form",
    "Layout",
    "Rows",
    "Scan",
    "Scanner",
    "Spans",
    "Writer",
    "Written",
    "as_buffer",
    "malformed",
    "network",
    "schema",
    "split",
    "transport",
]

_MODULES = ("layout", "scan", "arrow", "write")

for _name in ("numpy", "numba", "pyarrow"):
    if find_spec(_name) is None:
        raise ImportError(
            f"zenwire.columns needs NumPy, Numba and PyArrow, and {_name} is not here: "
            "pip install 'zenwire[fast]' (zenwire.wire reads and writes without them)",
            name=_name,
        )


def __getattr__(name: str) -> object:
    """Names are imported when first used: the generator of the kernels must not need them."""
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{m}" for m in _MODULES)):
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
