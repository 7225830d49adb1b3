"""Logs, as the environment says it to the reference."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import zenwire
from zenwire.sync import logs


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("zenwire")
    level = logger.level
    yield logger
    logger.setLevel(level)
    while logs._handlers:
        logger.removeHandler(logs._handlers.pop())


@pytest.mark.parametrize(
    ("wanted", "level"),
    [
        ("debug", logging.DEBUG),
        ("warn", logging.WARNING),
        ("off", logging.CRITICAL + 1),
        ("error,zenoh=info", logging.INFO),
        ("zenoh_transport::tcp=trace,other=debug", logging.DEBUG),
        ("other=debug", logging.CRITICAL + 1),
        ("zenoh", logging.DEBUG),
    ],
)
def test_levels(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch, wanted: str, level: int
) -> None:
    monkeypatch.setenv("RUST_LOG", wanted)
    zenwire.try_init_log_from_env()
    zenwire.init_log_from_env_or("error")
    assert logger.level == level
    assert len(logs._handlers) == 1


def test_without_the_environment(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RUST_LOG", raising=False)
    zenwire.try_init_log_from_env()
    assert not logs._handlers
    zenwire.init_log_from_env_or("info")
    logging.getLogger("zenwire.test").info("here")
    assert "INFO zenwire.test: here" in capsys.readouterr().out
