from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from zenwire.errors import ConfigError
from zenwire.links import Facts, parse_endpoint
from zenwire.node.config import Config, Effective, effective
from zenwire.node.offers import allowed, facts_of, group_settings, transport_settings, with_defaults
from zenwire.wire.values import Priority, WhatAmI, ZenohId

ZID = ZenohId(b"\x01")


def held(**transport: Any) -> Effective:
    return effective(Config.from_dict({"mode": "peer", "transport": transport}).settings)


def test_settings_are_those_of_the_configuration() -> None:
    settings = transport_settings(
        held(
            unicast={"max_links": 2, "open_timeout": 5_000, "compression": {"enabled": True}},
            link={"tx": {"lease": 3_000, "batch_size": 1_000}},
            auth={"usrpwd": {"user": "me", "password": "secret"}},
        ),
        ZID,
    )
    assert (settings.zid, settings.whatami) == (ZID, WhatAmI.PEER)
    assert (settings.max_links, settings.open_timeout, settings.compression) == (2, 5.0, True)
    assert (settings.lease, settings.batch_size) == (3.0, 1_000)
    assert settings.wait_before_drop == 0.001
    assert settings.wait_before_close == 5.0
    assert settings.credentials is not None
    assert settings.credentials.user == b"me"


def test_settings_of_a_configuration_differ_between_nodes_in_their_id_alone() -> None:
    config = held(unicast={"max_links": 2})
    one, other = (transport_settings(config, ZenohId(bytes([n]))) for n in (1, 2))
    assert (one.zid, other.zid) == (ZenohId(b"\1"), ZenohId(b"\2"))
    assert dataclasses.replace(one, zid=other.zid) == other
    assert transport_settings(held(unicast={"max_links": 3}), ZID).max_links == 3


def test_nothing_is_negotiated_in_a_group() -> None:
    config = held(
        unicast={"compression": {"enabled": True}},
        multicast={"qos": {"enabled": True}, "join_interval": 100},
    )
    settings = group_settings(config, transport_settings(config, ZID))
    assert settings.qos
    assert not settings.compression
    assert settings.join_interval == 0.1


def test_the_file_of_users(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("a:1\n\nb:2:3\n")
    config = held(auth={"usrpwd": {"user": "x", "password": "y", "dictionary_file": str(users)}})
    assert transport_settings(config, ZID).users == {b"a": b"1", b"b": b"2:3"}
    # It is read for each node that is opened.
    users.write_text("a:1\nnonsense\n")
    with pytest.raises(ConfigError, match="line 2"):
        transport_settings(config, ZID)
    users.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        transport_settings(config, ZID)


def test_an_endpoint_says_more_than_the_configuration() -> None:
    config = held(
        link={"tls": {"root_ca_certificate": "/ca.pem", "enable_mtls": True, "so_sndbuf": 9_000}}
    )
    plain = with_defaults(parse_endpoint("tls/localhost:1"), config)
    assert plain.config == "enable_mtls=true;root_ca_certificate_file=/ca.pem;so_sndbuf=9000"
    own = with_defaults(parse_endpoint("tls/localhost:1#enable_mtls=false"), config)
    assert "enable_mtls=false" in own.config
    assert with_defaults(parse_endpoint("tcp/localhost:1"), config).config == ""


def test_facts_of_a_link() -> None:
    facts = Facts(streamed=False, reliable=False, mtu=1_400)
    found = facts_of(facts, parse_endpoint("udp/127.0.0.1:1?prio=2-4;rel=0"))
    assert (found.stream, found.reliable, found.mtu, found.only) == (False, False, 1_400, False)
    assert found.priorities == (Priority(2), Priority(4))


def test_protocols_that_may_be_used() -> None:
    assert "tcp" in allowed(held())
    assert allowed(held(link={"protocols": ["ws"]})) == {"ws"}
