"""``zenwire acl explain``: what is decided, by which rule, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zenwire.cli import acl
from zenwire.cli.main import main
from zenwire.node.config.interceptors import AclMessage, Flow, LinkProtocol

CONTROL = {
    "enabled": True,
    "default_permission": "allow",
    "rules": [
        {
            "id": "secrets",
            "messages": ["put", "declare_subscriber"],
            "flows": ["ingress"],
            "key_exprs": ["demo/secret/**", "private/*"],
            "permission": "deny",
        }
    ],
    "subjects": [
        {"id": "guests", "usernames": ["guest", "alice"], "link_protocols": ["tcp"]},
        {"id": "robots", "cert_common_names": ["robot-1"], "zids": ["a1"]},
        {"id": "wired", "interfaces": ["eth0"]},
    ],
    "policies": [{"id": "closed", "rules": ["secrets"], "subjects": ["guests", "robots"]}],
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    name = tmp_path / "router.json5"
    name.write_text(json.dumps({"access_control": CONTROL}))
    return str(name)


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["acl", "explain", *words]) == 0
    return capsys.readouterr().out


def objects(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in explained(capsys, *words, "--json").splitlines()]


GUEST = ("--username", "guest", "--link-protocol", "tcp")


def test_the_rule_that_decides_is_named(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ("-c", file, *GUEST, "--message", "put", "-k", "demo/secret/a", "--flow", "ingress")
    assert explained(capsys, *ask) == (
        "deny: put on demo/secret/a (ingress): "
        "rule secrets of policy closed denies demo/secret/**\n"
        "  as subject guests: deny\n"
        "    rule secrets of policy closed denies demo/secret/**\n"
        "  not subject robots: it has other cert_common_names, zids\n"
        "  not subject wired: it has other interfaces\n"
    )


def test_why_no_rule_applies(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ("-c", file, *GUEST, "--message", "put", "--flow", "ingress", "-k", "demo/**")
    assert explained(capsys, *ask).splitlines()[:4] == [
        "allow: put on demo/** (ingress): no rule denies it, and the default is allow",
        "  as subject guests: allow",
        "    no rule denies it, and the default is allow",
        "    rule secrets does not apply: demo/secret/** does not include demo/**",
    ]


def test_one_subject_that_is_allowed_is_enough(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ("-c", file, *GUEST, "--interface", "lo", "--interface", "eth0", "-k", "private/a")
    [found] = objects(capsys, *ask, "--message", "put", "--flow", "ingress")
    assert found["permission"] == "allow"
    assert [(one["ids"], one["permission"]) for one in found["subjects"]] == [
        (["guests"], "deny"),
        (["wired"], "allow"),
    ]
    rule = {"rule": "secrets", "policy": "closed", "key_expr": "private/*", "permission": "deny"}
    assert found["subjects"][0]["rules"] == [rule]
    assert found["not_subjects"] == {"robots": ["cert_common_names", "zids"]}


def test_certificates_and_ids(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ("-c", file, "-k", "private/a", "--cert-common-name", "robot-1", "--message", "put")
    assert [one["permission"] for one in objects(capsys, *ask, "--zid", "a1")] == ["deny", "allow"]
    assert [one["permission"] for one in objects(capsys, *ask, "--zid", "b2")] == ["allow"] * 2


def test_every_message_and_both_directions_unless_some_are_named(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = objects(capsys, "-c", file, "-k", "private/a", *GUEST)
    assert [(one["message"], one["flow"]) for one in found] == [
        (message, flow) for message in acl.MESSAGES for flow in acl.FLOWS
    ]
    denied = {(one["message"], one["flow"]) for one in found if one["permission"] == "deny"}
    assert denied == {("put", "ingress"), ("declare_subscriber", "ingress")}
    nobody = objects(capsys, "-c", file, "-k", "private/a")
    assert {one["why"] for one in nobody} == {
        "this is none of the subjects, and the default is allow"
    }


def test_without_access_control_everything_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = tmp_path / "plain.json5"
    name.write_text("{}")
    [found] = objects(capsys, "-c", str(name), "-k", "a", "--message", "put", "--flow", "egress")
    assert (found["permission"], found["enabled"]) == ("allow", False)
    assert found["why"] == "access control is not enabled"


def test_what_is_wrong_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = tmp_path / "wrong.json5"
    policy = {"rules": ["no"], "subjects": ["nobody"]}
    name.write_text(json.dumps({"access_control": CONTROL | {"policies": [policy]}}))
    assert main(["acl", "explain", "-c", str(name), "-k", "a"]) == 1
    told = capsys.readouterr().err
    assert "access_control/policies/0/rules/0" in told
    assert "access_control/policies/0/subjects/0" in told
    assert main(["acl", "explain", "-c", str(name), "-k", "a//b"]) == 1


def test_the_words_are_those_of_the_configuration() -> None:
    assert set(acl.MESSAGES) == {message.value for message in AclMessage}
    assert set(acl.FLOWS) == {flow.value for flow in Flow}
    assert set(acl.PROTOCOLS) == {protocol.value for protocol in LinkProtocol}
