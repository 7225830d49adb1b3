"""Faults of Spark that pass: the same micro-batch goes well the next time.

A busy machine starts a Python worker later than Spark waits for it (ten seconds, which no setting
changes); or a worker or an executor is killed. None of that says anything about the rows.
"""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped] # comes with PySpark

from zenwire.spark.write_layout import TableError

__all__ = ["PassingError", "passes"]

_LASTING: Final = re.compile(
    # Python's code has said why, here or in a task: it would say so again.
    r"Traceback \(most recent call last\)|zenwire\.[\w.]*Error:"
    r"|AnalysisException|ParseException|ClassNotFoundException|NoClassDefFoundError"
    r"|OutOfMemoryError|No space left on device|Permission denied|Read-only file system"
    r"|Too many open files|Input/output error"
)


class PassingError(TableError):
    """Spark did not do what it was to do, and it may the next time."""


def passes(error: Exception) -> bool:
    """Whether it is worth to try again. What is not known to last is."""
    if isinstance(error, PassingError):
        return True
    if isinstance(error, TableError | Py4JNetworkError | OSError):
        return False
    text = str(error)
    # What a function of ours raised comes back from Java as text.
    return PassingError.__name__ in text or _LASTING.search(text) is None
