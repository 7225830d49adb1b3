"""Flags become the configuration that zenoh would make of them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from zenwire.cli.options import (
    config_of,
    count,
    qos_of,
    qos_options,
    seconds,
    session_options,
)
from zenwire.errors import ConfigError
from zenwire.node.config import Config


def parsed(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    session_options(parser)
    qos_options(parser)
    return parser.parse_args(given)


def told(config: Config, path: str) -> object:
    return json.loads(config.get_json(path))


@pytest.fixture(autouse=True)
def _no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZENOH_CONFIG", raising=False)


def test_nothing_said_is_the_default() -> None:
    assert config_of(parsed()) == Config()


def test_flags() -> None:
    config = config_of(
        parsed(
            *("-m", "client", "-e", "tcp/a:1", "-e", "tcp/b:2", "-l", "tcp/[::]:0"),
            *("--no-multicast-scouting", "--cfg", "transport/unicast/qos/enabled:false"),
            *("--cfg", 'namespace: "robot/1"'),
        )
    )
    assert told(config, "mode") == "client"
    assert told(config, "connect/endpoints") == ["tcp/a:1", "tcp/b:2"]
    assert told(config, "listen/endpoints") == ["tcp/[::]:0"]
    assert told(config, "scouting/multicast/enabled") is False
    assert told(config, "transport/unicast/qos/enabled") is False
    assert told(config, "namespace") == "robot/1"


def test_one_endpoint_must_be_reached_unless_the_configuration_says_so() -> None:
    path = "connect/exit_on_failure"
    assert told(config_of(parsed("-e", "tcp/a:1")), path) is True
    assert told(config_of(parsed("-e", "tcp/a:1", "-e", "tcp/b:1")), path) is None
    assert told(config_of(parsed("-e", "tcp/a:1", "--cfg", f"{path}:false")), path) is False


def test_flags_come_after_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "zenoh.json5"
    file.write_text("{mode: 'client', connect: {endpoints: ['tcp/a:1'], timeout_ms: 5}}")
    assert told(config_of(parsed("-c", str(file))), "mode") == "client"
    config = config_of(parsed("-c", str(file), "-m", "peer", "-e", "tcp/b:2"))
    assert told(config, "mode") == "peer"
    assert told(config, "connect/endpoints") == ["tcp/b:2"]
    assert told(config, "connect/timeout_ms") == 5
    monkeypatch.setenv("ZENOH_CONFIG", str(file))
    assert told(config_of(parsed()), "mode") == "client"


@pytest.mark.parametrize("setting", ["transport/no_such:1", "mode:banana", "mode:'client", ""])
def test_settings_that_are_none(setting: str) -> None:
    with pytest.raises(ConfigError):
        config_of(parsed("--cfg", setting))


def test_quality_of_service() -> None:
    quality = qos_of(parsed("--priority", "background", "--express"))
    assert quality["priority"].name == "BACKGROUND"
    assert quality["congestion_control"].name == "BLOCK"
    assert quality["express"] is True
    assert quality["reliability"].name == "RELIABLE"


@pytest.mark.parametrize("text", ["0", "-1", "x", "nan"])
def test_numbers_are_above_zero(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        seconds(text)
    with pytest.raises(argparse.ArgumentTypeError):
        count(text)
