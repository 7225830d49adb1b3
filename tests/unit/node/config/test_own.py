"""Settings that zenoh does not have."""

from __future__ import annotations

import json

import pytest

from zenwire.errors import ConfigError
from zenwire.node.config import Config
from zenwire.node.offers import transport_settings
from zenwire.wire.values import ZenohId

OWN = {
    "transport/unicast/max_lease": 120_000,
    "transport/link/rx/max_reassembly": 2**29,
    "transport/link/rx/reassembly_timeout": 5_000,
}


@pytest.mark.parametrize("path", OWN)
def test_it_is_written_only_if_it_is_set(path: str) -> None:
    """A configuration without it can be given to zenoh, which refuses what it does not know."""
    name, config = path.rpartition("/")[2], Config()
    assert name not in str(config)
    default = config.get_json(path)
    config.insert_json5(path, json.dumps(OWN[path]))
    assert f'"{name}":{OWN[path]}' in str(config)
    assert Config.from_json5(str(config)) == config
    config.insert_json5(path, default)
    assert name not in str(config)


@pytest.mark.parametrize("path", OWN)
def test_it_is_above_zero(path: str) -> None:
    with pytest.raises(ConfigError, match=path):
        Config().insert_json5(path, "0")


def test_what_they_mean() -> None:
    config = Config()
    for path, value in OWN.items():
        config.insert_json5(path, json.dumps(value))
    settings = transport_settings(config.effective, ZenohId(b"z"))
    assert settings.max_lease == 120.0
    assert settings.reassembly_limit == 2**29
    assert settings.reassembly_timeout == 5.0
