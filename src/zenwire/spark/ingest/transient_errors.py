"""Tell transient faults of Spark from lasting ones: the same micro-batch succeeds the next time.

A busy machine starts a Python worker later than Spark waits for it (ten seconds, which no setting
changes), or a worker or an executor is killed. Neither says anything about the rows.
"""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped] # comes with PySpark

from zenwire.errors import ZError
from zenwire.lake.errors import LakeConflictError

__all__ = ["is_transient"]

_LASTING: Final = re.compile(
    # Python's code has said why, here or in a task: it would say so again.
    r"Traceback \(most recent call last\)|zenwire\.[\w.]*Error:"
    r"|AnalysisException|ParseException|ClassNotFoundException|NoClassDefFoundError"
    r"|OutOfMemoryError|No space left on device|Permission denied|Read-only file system"
    r"|Too many open files|Input/output error"
)


def is_transient(error: Exception) -> bool:
    """Return True for errors worth a retry. Unknown errors of Spark count as transient."""
    if isinstance(error, LakeConflictError):
        return True
    if isinstance(error, ZError | Py4JNetworkError | OSError):
        return False
    text = str(error)
    # An exception of a foreachBatch function comes back from Java as text.
    return LakeConflictError.__name__ in text or _LASTING.search(text) is None
