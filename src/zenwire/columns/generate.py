"""Writes the generated parts of ``kernels.py`` from the message definitions.

    python -m zenwire.columns.generate --write    after a definition has changed
    python -m zenwire.columns.generate --check    what ``make check`` runs

Numba cannot cache functions that are made at run time, and its cache sees changes of the file
that a kernel stands in only: so the specialised source, and every number that the kernels need,
is in that file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from zenwire.columns.emit import Printer
from zenwire.columns.emit_scan import scan_source
from zenwire.columns.emit_write import write_source
from zenwire.columns.layout import NETWORK, TRANSPORT, Form
from zenwire.columns.program import NONE, Op, Store
from zenwire.errors import Fault
from zenwire.wire import limits

__all__ = ["main", "regenerate"]

KERNELS = Path(__file__).with_name("kernels.py")


def constants_source() -> str:
    """The numbers of faults, instructions, limits and columns."""
    out = Printer()

    def constant(name: str, value: int) -> None:
        out(f"{name} = np.uint64({value:#x})")

    for fault in Fault:
        constant(fault.name, fault)
    for op in Op:
        constant(f"OP_{op.name}", op)
    for store in Store:
        constant(f"STORE_{store.name}", store)
    constant("NONE", NONE)
    constant("EXTENSIONS_MAX", limits.EXTENSIONS_MAX)
    constant("EXTENSION_BODY_MAX", limits.EXTENSION_BODY_MAX)
    for prefix, layout in (("N", NETWORK), ("T", TRANSPORT)):
        for slot, name in enumerate(layout.fixed):
            constant(f"{prefix}_{name}", slot)
        for column in layout.columns.values():
            constant(f"{prefix}_{column.name}", column.slot)
            if column.form is Form.SPAN:
                constant(f"{prefix}_{column.name}_size", column.slot + 1)
            constant(f"{prefix}B_{column.name}", 1 << column.bit)
    return out.source


_PARTS: dict[str, Callable[[], str]] = {
    "constants": constants_source,
    "scan": scan_source,
    "write": write_source,
}


def regenerate(source: str) -> str:
    """The file with its generated parts made anew; the rest is written by hand."""
    for name, make in _PARTS.items():
        begin = f"# --- generated: {name} (make gen) ---\n"
        end = f"# --- end of {name} ---\n"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        part = f"{begin}{make()}{end}"
        # Not as a template: the source has backslashes of its own.
        source, found = pattern.subn(part.replace("\\", r"\\"), source)
        if found != 1:
            raise ValueError(f"{KERNELS.name} has no part {name!r}, or several")
    return source


def main(argv: list[str] | None = None) -> int:
    """The command; gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m zenwire.columns.generate",
        description="The generated parts of zenwire/columns/kernels.py.",
        epilog="example: python -m zenwire.columns.generate --check",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="write the file")
    what.add_argument("--check", action="store_true", help="fail if the file would change")
    args = parser.parse_args(argv)
    old = KERNELS.read_text()
    new = regenerate(old)
    if args.write:
        if new != old:
            KERNELS.write_text(new)
    elif new != old:
        print(f"{KERNELS.name} differs from its definitions: run 'make gen'", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
