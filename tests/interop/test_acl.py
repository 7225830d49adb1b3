"""Access control by certificates, and configurations of it that the reference refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zenoh

import zenwire
from tests.interop.acl_tries import TRIES
from tests.interop.exchange import PATIENT, node_settings
from tests.interop.filtering import Pair
from tests.ports import free_port
from tests.unit.links.ends import make_certificates
from zenwire.errors import ConfigError
from zenwire.node.config import Config
from zenwire.node.filters import Filters

pytestmark = pytest.mark.interop


@contextmanager
def opened(api: Any, settings: dict[str, Any]) -> Iterator[Any]:
    session = api.open(api.Config.from_json5(json.dumps(settings)))
    try:
        yield session
    finally:
        session.close()


def test_names_of_certificates(tmp_path: Path) -> None:
    make_certificates(tmp_path)

    def tls(own: str) -> dict[str, Any]:
        values = {
            "root_ca_certificate": str(tmp_path / "ca.pem"),
            "listen_certificate": str(tmp_path / "server.pem"),
            "listen_private_key": str(tmp_path / "server.key"),
            "connect_certificate": str(tmp_path / f"{own}.pem"),
            "connect_private_key": str(tmp_path / f"{own}.key"),
            "enable_mtls": True,
        }
        return {"link": PATIENT["transport"]["link"] | {"tls": values}}

    rule = {
        "id": "no",
        "messages": ["put", "declare_subscriber"],
        "flows": ["ingress"],
        "key_exprs": ["m/no/**"],
        "permission": "deny",
    }
    control = {
        "enabled": True,
        "default_permission": "allow",
        "rules": [rule],
        "subjects": [
            {"id": "it", "cert_common_names": ["the-client", "x"], "link_protocols": ["tls"]},
            {"id": "none", "cert_common_names": ["the-elsewhere"], "link_protocols": ["tcp"]},
        ],
        "policies": [{"rules": ["no"], "subjects": ["it", "none"]}],
    }
    keys = ["m/no/a", "m/yes/a"]
    found = {}
    for api in (zenwire, zenoh):
        where = f"tls/127.0.0.1:{free_port()}"
        router = node_settings("router", listen=where, transport=tls("server"))
        sessions = [
            node_settings("client", connect=where, transport=tls(own))
            for own in ("client", "elsewhere")
        ]
        with (
            opened(api, router | {"access_control": control}),
            opened(zenoh, sessions[0]) as actor,
            opened(zenoh, sessions[1]) as observer,
        ):
            pair = Pair(actor, observer)
            found[api] = {name: TRIES[name](pair, keys) for name in ("put", "declare_subscriber")}
            found[api] |= {"back": TRIES["put"](Pair(observer, actor), keys)}
    assert found[zenwire] == found[zenoh]
    assert found[zenoh]["put"] == {"seen": ["m/yes/a"]}
    assert found[zenoh]["back"] == {"seen": ["m/no/a", "m/yes/a"]}


RULE = {"id": "r", "messages": ["put"], "key_exprs": ["a"], "permission": "deny"}
SUBJECT = {"id": "s", "usernames": ["u"]}
POLICY = {"id": "p", "rules": ["r"], "subjects": ["s"]}


def control(**parts: Any) -> dict[str, Any]:
    made = {"enabled": True, "rules": [RULE], "subjects": [SUBJECT], "policies": [POLICY]}
    return {"access_control": {name: value for name, value in (made | parts).items() if value != 0}}


def item(name: str, *ids: str | None) -> dict[str, Any]:
    """Items of a filter with these ids."""
    more: dict[str, Any] = {
        "downsampling": {"rules": [{"key_expr": "a", "freq": 1}]},
        "low_pass_filter": {"key_exprs": ["a"], "size_limit": 1},
        "qos/network": {"overwrite": {"express": True}},
    }
    items: list[Any] = [
        more[name] | {"messages": ["put"]} | ({} if one is None else {"id": one}) for one in ids
    ]
    return {"qos": {"network": items}} if name == "qos/network" else {name: items}


CONFIGS = {
    "as it should be": control(),
    "no rules": control(rules=0),
    "no subjects": control(subjects=0),
    "no policies": control(policies=0),
    "nothing at all": {"access_control": {"enabled": True}},
    "nothing at all, but off": {"access_control": {"enabled": False}},
    "empty rules": control(rules=[]),
    "empty subjects, and a rule twice": control(subjects=[], rules=[RULE, RULE]),
    "empty policies, and a subject twice": control(policies=[], subjects=[SUBJECT, SUBJECT]),
    "a rule twice": control(rules=[RULE, RULE]),
    "a subject twice": control(subjects=[SUBJECT, SUBJECT]),
    "a policy twice": control(policies=[POLICY, POLICY]),
    "policies without ids": control(policies=[POLICY | {"id": None}, POLICY | {"id": None}]),
    "a policy with an empty id": control(policies=[POLICY | {"id": ""}]),
    "all wrong, but off": control(enabled=False, rules=[RULE, RULE], policies=[]),
    "an unknown rule": control(policies=[POLICY | {"rules": ["q"]}]),
    "an unknown subject": control(policies=[POLICY | {"subjects": ["s", "t"]}]),
    "a policy without rules": control(policies=[POLICY | {"rules": []}]),
    "a policy without subjects": control(policies=[POLICY | {"subjects": []}]),
    "an empty id of a rule": control(rules=[RULE, RULE | {"id": " "}]),
    "an empty id of a subject": control(subjects=[SUBJECT, {"id": ""}]),
    "an empty username": control(subjects=[{"id": "s", "usernames": ["u", " "]}]),
    "an empty interface": control(subjects=[{"id": "s", "interfaces": [""]}]),
    "an empty name": control(subjects=[{"id": "s", "cert_common_names": ["\t"]}]),
    "a rule that nobody uses": control(rules=[RULE, RULE | {"id": "q"}]),
} | {
    f"{name} {ids}": item(name, *ids)
    for name in ("downsampling", "low_pass_filter", "qos/network")
    for ids in (("a", "b", None, None), ("a", "b", "a"))
}


@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_refused(name: str) -> None:
    settings = node_settings("peer") | CONFIGS[name]
    try:
        Filters.of(Config.from_dict(settings).settings)
    except ConfigError:
        ours = False
    else:
        ours = True
    config = zenoh.Config.from_json5(json.dumps(settings))
    try:
        zenoh.open(config).close()  # type: ignore[no-untyped-call]
    except zenoh.ZError:
        theirs = False
    else:
        theirs = True
    assert ours is theirs
