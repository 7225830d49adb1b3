"""Every key of the reference's default configuration has an effect here, or a notice.

`WITHOUT`, `TRANSPORT` and `SHOWN` have a value for each leaf. One in `WITHOUT` must give a notice
that names it. The others must give none: one in `TRANSPORT` must change what transports and links
are made of, one in `SHOWN` names the test that shows its effect.
"""

from __future__ import annotations

import ast
import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.vectors import ROOT
from zenwire.links import parse_endpoint
from zenwire.node.config import Config, Effective
from zenwire.node.offers import allowed, group_settings, transport_settings, with_defaults
from zenwire.wire.values import ZenohId

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

TESTS = Path(__file__).parents[1]
_KEYS = tomllib.loads((ROOT / "transport_keys.toml").read_text())

WITHOUT: dict[str, Any] = {
    "adminspace/permissions/write": True,
    "gateway/south": [{"filters": [{"modes": ["peer"]}]}],
    "plugins": {"rest": {}},
    "plugins_loading/enabled": True,
    "plugins_loading/search_dirs": ["/opt/plugins"],
    "transport/auth/pubkey/key_size": 2048,
    "transport/auth/pubkey/public_key_file": "/key.pem",
    "transport/auth/pubkey/public_key_pem": "-",
    "transport/link/tx/queue/allocation/mode": "init",
    "transport/link/tx/threads": 99,
    "transport/link/unixpipe/file_access_mask": 0o600,
    # The default, but written down: the reference would use shared memory.
    "transport/shared_memory/enabled": True,
    "transport/shared_memory/mode": "lazy",
    "transport/shared_memory/transport_optimization/enabled": False,
    "transport/shared_memory/transport_optimization/message_size_threshold": 1,
    "transport/shared_memory/transport_optimization/messages": ["put"],
    "transport/shared_memory/transport_optimization/pool_size": 1,
}
"""Keys without effect."""

TRANSPORT: dict[str, Any] = {
    "id": "a1",
    "mode": "client",
    "region_name": "north",
    "transport/auth/pubkey/known_keys_file": "public_pkcs1",
    "transport/auth/pubkey/private_key_file": "pkcs1",
    "transport/auth/pubkey/private_key_pem": _KEYS["pkcs1"],
    "transport/auth/usrpwd/dictionary_file": "users",
    "transport/auth/usrpwd/password": "secret",
    "transport/auth/usrpwd/user": "me",
    "transport/link/protocols": ["tcp"],
    "transport/link/rx/max_message_size": 1 << 20,
    "transport/link/tcp/so_rcvbuf": 9000,
    "transport/link/tcp/so_sndbuf": 9000,
    "transport/link/tls/close_link_on_expiration": True,
    "transport/link/tls/connect_certificate": "/cert.pem",
    "transport/link/tls/connect_private_key": "/key.pem",
    "transport/link/tls/enable_mtls": True,
    "transport/link/tls/listen_certificate": "/cert.pem",
    "transport/link/tls/listen_private_key": "/key.pem",
    "transport/link/tls/root_ca_certificate": "/ca.pem",
    "transport/link/tls/so_rcvbuf": 9000,
    "transport/link/tls/so_sndbuf": 9000,
    "transport/link/tls/verify_name_on_connect": False,
    "transport/link/tx/batch_size": 1000,
    "transport/link/tx/keep_alive": 2,
    "transport/link/tx/lease": 2000,
    "transport/link/tx/queue/batching/enabled": False,
    "transport/link/tx/queue/congestion_control/block/wait_before_close": 1,
    "transport/link/tx/queue/congestion_control/drop/max_wait_before_drop_fragments": 1,
    "transport/link/tx/queue/congestion_control/drop/wait_before_drop": 1,
    "transport/link/tx/queue/size/background": 3,
    "transport/link/tx/queue/size/control": 3,
    "transport/link/tx/queue/size/data": 3,
    "transport/link/tx/queue/size/data_high": 3,
    "transport/link/tx/queue/size/data_low": 3,
    "transport/link/tx/queue/size/interactive_high": 3,
    "transport/link/tx/queue/size/interactive_low": 3,
    "transport/link/tx/queue/size/real_time": 3,
    "transport/link/tx/sequence_number_resolution": "16bit",
    "transport/multicast/compression/enabled": True,
    "transport/multicast/join_interval": 100,
    "transport/multicast/max_sessions": 5,
    "transport/multicast/qos/enabled": True,
    "transport/unicast/accept_pending": 5,
    "transport/unicast/accept_timeout": 50,
    "transport/unicast/compression/enabled": True,
    "transport/unicast/lowlatency": True,
    "transport/unicast/max_links": 2,
    "transport/unicast/max_sessions": 5,
    "transport/unicast/open_timeout": 50,
    "transport/unicast/qos/enabled": False,
}
"""Keys that change the settings of transports or the configuration of endpoints."""

_ACL = "interop/test_acl_matrix.py::test_decisions_are_those_of_the_reference"
_AGGREGATION = "interop/test_config_aggregation.py::test_a_router_hears_of_aggregates"
_FILTERS = "interop/test_filters.py::test_it_passes_as_in_the_reference"
_AUTOCONNECT = "unit/node/test_autoconnect.py::"
_OPENING = "unit/node/test_opening.py::"
_SCOUTING = "unit/node/test_scouting.py::"
SHOWN: dict[str, tuple[Any, str]] = {
    "access_control/default_permission": ("allow", _ACL),
    "access_control/enabled": (True, _ACL),
    "access_control/policies": ([{"rules": [], "subjects": []}], _ACL),
    "access_control/rules": ([], _ACL),
    "access_control/subjects": ([{"id": "s"}], _ACL),
    "adminspace/enabled": (
        True,
        "interop/test_admin.py::test_it_is_not_there_unless_it_is_enabled",
    ),
    "adminspace/permissions/read": (
        False,
        "interop/test_admin.py::test_who_may_not_read_is_told_nothing_by_either",
    ),
    "aggregation/publishers": (["a/**"], _AGGREGATION),
    "aggregation/subscribers": (["a/**"], _AGGREGATION),
    "connect/endpoints": (
        ["tcp/127.0.0.1:1"],
        f"{_OPENING}test_a_client_takes_the_first_endpoint_that_works",
    ),
    "connect/exit_on_failure": (True, f"{_OPENING}test_a_peer_that_must_connect_does_or_fails"),
    "connect/retry": (
        {"period_init_ms": 5},
        "unit/node/test_connecting.py::test_after_a_loss_at_once_then_with_back_off",
    ),
    "connect/timeout_ms": (
        5,
        f"{_OPENING}test_a_client_with_a_timeout_tries_with_back_off_until_then",
    ),
    "downsampling": (
        [{"messages": ["put"], "rules": [{"key_expr": "a", "freq": 1}]}],
        _FILTERS,
    ),
    "listen/endpoints/peer": (
        ["tcp/127.0.0.1:0"],
        f"{_SCOUTING}test_whoever_is_asked_for_answers_the_asker",
    ),
    "listen/endpoints/router": (["tcp/127.0.0.1:0"], f"{_OPENING}test_a_router_waits_for_nobody"),
    "listen/exit_on_failure": (
        False,
        f"{_OPENING}test_an_endpoint_that_is_taken_ends_opening_unless_it_may_not",
    ),
    "listen/retry": (
        {"period_init_ms": 5},
        f"{_OPENING}test_listening_waits_for_its_place_if_it_must",
    ),
    "listen/timeout_ms": (5, f"{_OPENING}test_listening_waits_for_its_place_if_it_must"),
    "low_pass_filter": (
        [{"messages": ["put"], "key_exprs": ["a"], "size_limit": 1}],
        _FILTERS,
    ),
    "metadata": ({"a": 1}, "interop/test_admin.py::test_a_router_answers_as_the_reference_does"),
    "namespace": ("a", "interop/test_aio_pubsub.py::test_namespaces"),
    "open/return_conditions/connect_scouted": (
        False,
        f"{_OPENING}test_a_peer_alone_opens_at_once_or_after_the_delay_of_scouting",
    ),
    "open/return_conditions/declares": (
        False,
        f"{_OPENING}test_a_peer_waits_for_declarations_unless_it_need_not",
    ),
    "qos/network": ([{"messages": ["put"], "overwrite": {"express": True}}], _FILTERS),
    "qos/publication": (
        [{"key_exprs": ["a"], "config": {"express": True}}],
        "interop/test_config_publication.py::test_publications_are_overwritten_alike",
    ),
    "queries_default_timeout": (
        5,
        "unit/api/test_queries.py::test_the_configured_timeout_holds_for_queries_without_one",
    ),
    "routing/interests/timeout": (
        500,
        "unit/routing/test_interests.py::test_the_time_for_answers_can_be_set",
    ),
    "routing/router/linkstate/transport_weights": (
        [{"dst_zid": "1", "weight": 5}],
        "simulation/test_routers.py::test_a_weight_that_is_set_moves_messages_to_another_way",
    ),
    "scouting/delay": (
        5,
        f"{_OPENING}test_a_peer_alone_opens_at_once_or_after_the_delay_of_scouting",
    ),
    "scouting/gossip/autoconnect": ([], f"{_AUTOCONNECT}test_nobody_is_dialled_who_is_not_wanted"),
    "scouting/gossip/autoconnect_strategy": (
        "greater-zid",
        f"{_AUTOCONNECT}test_greater_zid_alone_dials",
    ),
    "scouting/gossip/enabled": (False, f"{_AUTOCONNECT}test_greater_zid_alone_dials"),
    "scouting/gossip/multihop": (
        True,
        "interop/test_config_gossip.py::test_multihop_gossip_goes_beyond_neighbours",
    ),
    "scouting/gossip/target": (
        ["router"],
        "interop/test_config_gossip.py::test_locators_are_told_to_the_targets",
    ),
    "scouting/multicast/address": (
        "224.0.0.225:7000",
        f"{_SCOUTING}test_loopback_locators_are_for_askers_on_loopback",
    ),
    "scouting/multicast/autoconnect": (
        [],
        f"{_SCOUTING}test_whoever_is_asked_for_answers_the_asker",
    ),
    "scouting/multicast/autoconnect_strategy": (
        "greater-zid",
        f"{_AUTOCONNECT}test_greater_zid_alone_dials",
    ),
    "scouting/multicast/enabled": (False, f"{_OPENING}test_a_client_needs_somewhere_to_go"),
    "scouting/multicast/interface": (
        "lo",
        f"{_SCOUTING}test_an_interface_that_is_not_there_stops_a_client_only",
    ),
    "scouting/multicast/listen": (
        False,
        f"{_SCOUTING}test_one_that_does_not_listen_does_not_answer",
    ),
    "scouting/multicast/ttl": (5, f"{_SCOUTING}test_the_group_is_joined_with_the_configured_ttl"),
    "scouting/timeout": (5, f"{_OPENING}test_a_client_without_endpoints_scouts"),
    "stats/filters": (
        [{"key": "a"}],
        "interop/test_admin.py::test_statistics_by_session_and_by_key",
    ),
    "timestamping/drop_future_timestamp": (
        True,
        "interop/test_router_roles.py::test_puts_of_the_future_are_dropped_if_one_wants_it",
    ),
    "transport/link/rx/buffer_size": (
        1 << 20,
        "interop/test_config_buffer.py::test_reads_are_as_large_as_configured",
    ),
    "transport/link/tx/queue/batching/time_limit": (
        20,
        "interop/test_config_time_limit.py::test_messages_of_a_busy_link_wait_for_others",
    ),
    "timestamping/enabled": (
        True,
        "unit/api/test_session.py::test_timestamps_rise_and_are_put_on_if_configured",
    ),
}
"""Keys with an effect: a value, and the test that shows it."""


def _leaves(value: object, path: str = "") -> list[str]:
    if not isinstance(value, dict) or not value:
        return [path]
    return [
        leaf
        for key, item in value.items()
        for leaf in _leaves(item, f"{path}/{key}" if path else key)
    ]


NEEDED = {
    "transport/auth/usrpwd/password": ("transport/auth/usrpwd/user", "me"),
    "transport/auth/usrpwd/user": ("transport/auth/usrpwd/password", "secret"),
    "transport/unicast/lowlatency": ("transport/unicast/qos/enabled", False),
}
"""Keys that hold together with another one only."""


def _with(path: str, value: object) -> Config:
    nested: Any = value
    for name in reversed(path.split("/")):
        nested = {name: nested}
    if path not in NEEDED:
        return Config.from_dict(nested)
    config = Config()
    for each, what in ((path, value), NEEDED[path]):
        config.insert_json5(each, json.dumps(what))
    return config


def _meaning(config: Effective) -> tuple[object, ...]:
    """What transports and links of a node are made of."""
    zid = config.settings.id or ZenohId(b"\1")
    unicast = transport_settings(config, zid)
    endpoints = (parse_endpoint("tcp/localhost:1"), parse_endpoint("tls/localhost:1"))
    return (
        unicast,
        group_settings(config, unicast),
        *(with_defaults(endpoint, config) for endpoint in endpoints),
        allowed(config),
    )


@cache
def _tests_in(path: Path) -> frozenset[str]:
    found = ast.walk(ast.parse(path.read_text()))
    return frozenset(each.name for each in found if isinstance(each, ast.FunctionDef))


def test_every_leaf_is_listed_once() -> None:
    leaves = _leaves(json.loads(str(zenoh.Config())))
    listed = [*WITHOUT, *TRANSPORT, *SHOWN]
    assert sorted(listed) == sorted(leaves)


@pytest.mark.parametrize("path", WITHOUT)
def test_a_key_without_effect_has_a_notice(path: str) -> None:
    notices = _with(path, WITHOUT[path]).effective.notices
    named = [notice.partition(":")[0] for notice in notices]
    assert len(named) == 1
    assert f"{path}/".startswith(f"{named[0]}/") or named[0].startswith(f"{path}/")


@pytest.mark.parametrize("path", TRANSPORT)
def test_a_key_of_transports_changes_what_they_are_made_of(path: str, tmp_path: Path) -> None:
    value = TRANSPORT[path]
    if path.endswith("_file"):
        (tmp_path / value).write_text("me:secret\n" if value == "users" else _KEYS[value])
        value = str(tmp_path / value)
    config = _with(path, value).effective
    assert config.notices == ()
    usual = _with(*NEEDED[path]) if path.endswith("lowlatency") else Config()
    assert _meaning(config) != _meaning(usual.effective)


@pytest.mark.parametrize("path", SHOWN)
def test_a_key_with_an_effect_has_a_test_that_shows_it(path: str) -> None:
    value, test = SHOWN[path]
    assert _with(path, value).settings != Config().settings
    assert _with(path, value).effective.notices == ()
    file, _, name = test.partition("::")
    assert name in _tests_in(TESTS / file)


def test_the_default_configuration_has_no_notices() -> None:
    assert Config().effective.notices == ()
    for mode in ("router", "peer", "client"):
        assert Config.from_dict({"mode": mode}).effective.notices == ()


def test_shared_memory_that_is_off_is_off() -> None:
    off = Config.from_dict({"transport": {"shared_memory": {"enabled": False}}})
    assert off.effective.notices == ()
