"""Which process this is. Sessions look at every call, and asking the system would cost more."""

from __future__ import annotations

import os

__all__ = ["pid"]

pid = os.getpid()


def _forked() -> None:
    global pid  # noqa: PLW0603 # a child is told apart by it
    pid = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
