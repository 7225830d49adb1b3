from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import pytest

from zenwire.errors import ConfigError, ConfigProblem
from zenwire.node.config import Config, ModeDependent, Settings, effective
from zenwire.wire.values import WhatAmI, ZenohId


def test_all_problems_are_told_at_once() -> None:
    text = """{
  mode: "per",
  scouting: { multicast: { enabld: true, ttl: -1 } },
  lease: 5,
  transport: { link: { tx: { batch_size: 65536 } } },
  connect: { endpoints: ["tcp", "tcp/a:1"], timeout_ms: { router: "x" } },
}"""
    with pytest.raises(ConfigError) as e:
        Config.from_json5(text)
    assert [(p.line, p.column, p.path, p.hint) for p in e.value.problems] == [
        (2, 9, "mode", "did you mean 'peer'?"),
        (3, 28, "scouting/multicast/enabld", "did you mean 'enabled'?"),
        (3, 47, "scouting/multicast/ttl", ""),
        (4, 3, "lease", "did you mean transport/link/tx/lease?"),
        (5, 42, "transport/link/tx/batch_size", ""),
        (6, 26, "connect/endpoints/0", "write it as tcp/192.168.0.1:7447"),
        (6, 67, "connect/timeout_ms/router", ""),
    ]
    assert str(e.value).startswith("the configuration has 7 problems:\n  line 2, column 9: mode: ")
    assert str(pickle.loads(pickle.dumps(e.value))) == str(e.value)


def test_a_protocol_without_links_is_refused_by_name() -> None:
    text = """{
  listen: { endpoints: { router: ["tcp/[::]:7447", "quic/[::]:7447"] } },
  connect: { endpoints: [{ strategy: "oneOf", locators: ["tpc/a:1"] }] },
  transport: { link: { protocols: ["tcp", "vsock"] } },
}"""
    with pytest.raises(ConfigError) as e:
        Config.from_json5(text)
    assert [(p.line, p.path) for p in e.value.problems] == [
        (2, "listen/endpoints/router/1"),
        (3, "connect/endpoints/0/locators/0"),
        (4, "transport/link/protocols/1"),
    ]
    for name, problem in zip(("quic", "tpc", "vsock"), e.value.problems, strict=True):
        assert name in problem.reason
        assert "supported are tcp, tls, udp" in problem.hint
    config = Config()
    with pytest.raises(ConfigError, match="serial"):
        config.insert_json5("connect/endpoints", '["serial//dev/tty"]')


def test_a_dict_has_paths_but_no_lines() -> None:
    with pytest.raises(ConfigError) as e:
        Config.from_dict({"mode": "peer", "listen": {"endpoints": ["x"], "retry": {"foo": 1}}})
    assert [(p.path, p.line) for p in e.value.problems] == [
        ("listen/endpoints/0", 0),
        ("listen/retry/foo", 0),
    ]


@pytest.mark.parametrize("value", [{"id": b"x"}, {1: 2}, {"metadata": object()}, [1]])
def test_what_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(ConfigError):
        Config.from_dict(value)  # type: ignore[arg-type]


def test_settings_are_typed_and_frozen() -> None:
    config = Config.from_json5("{mode:'router', id:'a1', connect:{timeout_ms:{peer:5}}}")
    settings = config.settings
    assert (settings.mode, settings.id) == (WhatAmI.ROUTER, ZenohId.parse("a1"))
    assert settings.connect.timeout_ms == ModeDependent(peer=5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.mode = WhatAmI.PEER  # type: ignore[misc]
    before = settings
    config.insert_json5("mode", '"peer"')
    assert before.mode is WhatAmI.ROUTER
    assert config.settings.mode is WhatAmI.PEER


def test_values_are_inserted_too() -> None:
    config = Config()
    config.insert_json5("connect/endpoints", ["tcp/a:1"])
    config.insert_json5("plugins/rest/http_port", 8000)
    assert config.get_json("connect/endpoints") == '["tcp/a:1"]'
    assert config.get_json("plugins/rest/http_port") == "8000"


def test_a_failed_insert_changes_nothing() -> None:
    config = Config()
    for key, value in (
        ("transport/link/tx/lease", "-1"),
        ("lease", "1"),
        ("", "{}"),
        ("mode", "["),
    ):
        with pytest.raises(ConfigError):
            config.insert_json5(key, value)
    assert config.settings == Settings()


def test_an_unknown_path_says_where_the_name_is() -> None:
    with pytest.raises(ConfigError, match="did you mean transport/link/tx/lease"):
        Config().get_json("transport/lease")


def test_secrets_are_not_shown() -> None:
    config = Config.from_json5(
        "{transport:{auth:{usrpwd:{user:'u',password:'geheim'},pubkey:{private_key_pem:'geheim'}},"
        "link:{tls:{connect_private_key_base64:'geheim'}}}, plugins:{a:{private:'geheim'}}}"
    )
    assert "geheim" not in str(config) + repr(config)
    assert config.get_json("transport/auth/usrpwd/password") == '"geheim"'
    with pytest.raises(ConfigError) as e:
        Config.from_json5("{transport:{auth:{usrpwd:{user:'u',password:12345}}}}")
    assert "12345" not in str(e.value)


def test_a_file_is_named_in_its_error(tmp_path: Path) -> None:
    file = tmp_path / "c.json5"
    file.write_text("{mode:\n'x'}")
    with pytest.raises(ConfigError) as e:
        Config.from_file(file)
    assert e.value.source == str(file)
    assert (
        str(e.value)
        == f"{file}: line 2, column 1: mode: 'x' is not a mode; one of router, peer, client"
    )
    for content in (b"", b"\xff"):
        file.write_bytes(content)
        with pytest.raises(ConfigError):
            Config.from_file(file)
    with pytest.raises(ConfigError, match="No such file"):
        Config.from_file(tmp_path / "nope.json5")


def test_the_environment_must_name_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZENOH_CONFIG", raising=False)
    with pytest.raises(ConfigError, match="ZENOH_CONFIG is not set"):
        Config.from_env()


def test_what_holds_is_worked_out_once_for_all_copies_and_anew_after_a_change() -> None:
    config = Config()
    copy = config.copy()
    assert config.effective is copy.effective
    assert dataclasses.astuple(config.effective) == dataclasses.astuple(effective(config.settings))
    copy.insert_json5("mode", "'client'")
    assert copy.effective.mode is WhatAmI.CLIENT
    assert config.effective.mode is WhatAmI.PEER
    assert Config().effective.mode is WhatAmI.PEER


def test_what_cannot_be_done_is_told_each_time() -> None:
    config = Config.from_dict({"plugins": {"rest": {"__required__": True}}})
    for _ in range(2):
        with pytest.raises(ConfigError, match="cannot load plugins"):
            _ = config.effective


def test_equality_and_copies() -> None:
    config = Config()
    copy = config.copy()
    assert copy == config
    copy.insert_json5("mode", "'client'")
    assert copy != config
    with pytest.raises(TypeError):
        hash(config)
    assert ConfigProblem("a", "b") == ConfigProblem("a", "b")
