"""Logs on standard output, as the environment says it to the reference."""

from __future__ import annotations

import logging
import os
import sys
from typing import Final

__all__ = ["init_log_from_env_or", "try_init_log_from_env"]

_LEVELS: Final = {
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
    "off": logging.CRITICAL + 1,
}

_handlers: list[logging.Handler] = []


def try_init_log_from_env() -> None:
    """Log to standard output if ``RUST_LOG`` says so: ``debug``, or ``info,zenoh=debug``."""
    wanted = os.environ.get("RUST_LOG")
    if wanted:
        _log(wanted)


def init_log_from_env_or(level: str) -> None:
    """Log to standard output as ``RUST_LOG`` says, or without it from ``level`` on."""
    _log(os.environ.get("RUST_LOG") or level)


def _log(wanted: str) -> None:
    logger = logging.getLogger("zenwire")
    logger.setLevel(_level(wanted))
    if not _handlers:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        _handlers.append(handler)
        logger.addHandler(handler)


def _level(wanted: str) -> int:
    """Modules of the reference are not those of zenwire: the most that is said of any counts."""
    found = [_LEVELS["off"]]
    for part in wanted.split(","):
        where, _, level = part.strip().rpartition("=")
        if not where or where.split("::")[0].startswith("zen"):
            # A module without a level is to tell everything.
            found.append(_LEVELS.get(level.lower(), logging.DEBUG))
    return min(found)
