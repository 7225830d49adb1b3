"""Decisions of access control, against a reading of the configuration without any cleverness."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from zenwire.keyexpr import includes
from zenwire.node.config import Config
from zenwire.node.config.interceptors import AclMessage, Flow, Permission
from zenwire.node.filters import Access, Filters, Party
from zenwire.wire.values import ZenohId

KEYS = ("a", "a/b", "a/*", "**", "a/**", "*/b", "a/$*b", "c/d", "@x/a")
FIELDS = {
    "interfaces": ("eth0", "lo"),
    "cert_common_names": ("one", "two"),
    "usernames": ("alice", "bob"),
    "link_protocols": ("tcp", "tls"),
    "zids": ("a1", "b2"),
}


def access_of(**control: Any) -> Access:
    settings = Config.from_dict({"access_control": {"enabled": True} | control}).settings
    filters = Filters.of(settings)
    assert filters is not None
    assert filters.access is not None
    return filters.access


def some(r: Random, values: Any, least: int = 1) -> list[Any]:
    values = list(values)
    return r.sample(values, r.randint(least, len(values)))


def control_of(r: Random) -> dict[str, Any]:
    rules = [
        {
            "id": f"r{at}",
            "messages": [message.value for message in some(r, AclMessage)],
            "key_exprs": some(r, KEYS),
            "permission": r.choice(["allow", "deny"]),
        }
        | ({"flows": [flow.value for flow in some(r, Flow)]} if r.random() < 0.7 else {})
        for at in range(r.randint(1, 5))
    ]
    subjects = [
        {"id": f"s{at}"}
        | {name: some(r, values) for name, values in FIELDS.items() if r.random() < 0.3}
        for at in range(r.randint(1, 5))
    ]
    policies = [
        {
            "rules": some(r, [rule["id"] for rule in rules]),
            "subjects": some(r, [subject["id"] for subject in subjects]),
        }
        for _ in range(r.randint(1, 4))
    ]
    return {
        "default_permission": r.choice(["allow", "deny"]),
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    }


def expected(control: dict[str, Any], party: Party, flow: str, message: str, key: str) -> bool:
    """Every combination that a subject may be has the rules of all subjects that it is part of."""
    default = control["default_permission"] == "allow"
    has = {
        "interfaces": party.interfaces,
        "cert_common_names": party.common_names,
        "usernames": (party.username,),
        "link_protocols": party.protocols,
        "zids": () if party.zid is None else (str(party.zid),),
    }
    combinations: dict[tuple[Any, ...], set[str]] = {}
    for subject in control["subjects"]:
        for values in product(*(subject.get(name) or [None] for name in FIELDS)):
            combinations.setdefault(values, set()).add(subject["id"])
    verdicts = []
    for values, names in combinations.items():
        if any(
            value is not None and value not in has[name]
            for name, value in zip(FIELDS, values, strict=True)
        ):
            continue
        ids = {
            rule
            for policy in control["policies"]
            if names.intersection(policy["subjects"])
            for rule in policy["rules"]
        }
        applying = {
            rule["permission"]
            for rule in control["rules"]
            if rule["id"] in ids
            and message in rule["messages"]
            and flow in rule.get("flows", ["ingress", "egress"])
            and any(includes(expr, key) for expr in rule["key_exprs"])
        }
        verdicts.append("deny" not in applying and (default or "allow" in applying))
    return any(verdicts) if verdicts else default


@pytest.mark.parametrize("seed", range(10))
def test_random_configurations(seed: int) -> None:
    r = Random(seed)
    control = control_of(r)
    access = access_of(**control)
    for _ in range(3):
        party = Party(
            zid=r.choice([None, ZenohId.parse("a1"), ZenohId.parse("c3")]),
            username=r.choice([None, "alice", "carol"]),
            common_names=tuple(some(r, FIELDS["cert_common_names"], 0)),
            interfaces=tuple(some(r, FIELDS["interfaces"], 0)),
            protocols=(r.choice(["tcp", "tls", "udp"]),),
        )
        subjects = access.subjects(party)
        for flow, message, key in product(Flow, AclMessage, KEYS):
            wanted = expected(control, party, flow.value, message.value, key)
            assert access.allows(subjects, flow, message, key) is wanted
            found = access.explain(party, flow, message, key)
            assert found.permission is (Permission.ALLOW if wanted else Permission.DENY)
            assert access.decides(flow) or wanted


RULES = [
    {"id": "no", "messages": ["put"], "key_exprs": ["a/**", "c"], "permission": "deny"},
    {"id": "yes", "messages": ["put"], "key_exprs": ["a/b"], "permission": "allow"},
]
SUBJECTS = [
    {"id": "alice", "usernames": ["alice"]},
    {"id": "wired", "interfaces": ["eth0"]},
    {"id": "nobody", "usernames": ["nobody"], "interfaces": ["lo", "eth0"]},
]
INGRESS, PUT = Flow.INGRESS, AclMessage.PUT


def test_an_explanation_names_the_rules_that_decide() -> None:
    access = access_of(
        default_permission="allow",
        rules=RULES,
        subjects=SUBJECTS,
        policies=[{"id": "p", "rules": ["no", "yes"], "subjects": ["alice"]}],
    )
    found = access.explain(Party(username="alice"), INGRESS, PUT, "a/b")
    assert (found.permission, found.default) == (Permission.DENY, Permission.ALLOW)
    [finding] = found.deciding
    assert finding.subjects == ("alice",)
    assert [(one.rule, one.policy, one.key_expr) for one in finding.rules] == [("no", "p", "a/**")]
    assert found.others == {"wired": ("interfaces",), "nobody": ("interfaces", "usernames")}
    # One of the subjects may do it: that is enough.
    both = access.explain(Party(username="alice", interfaces=("eth0",)), INGRESS, PUT, "a/b")
    assert both.permission is Permission.ALLOW
    assert [one.subjects for one in both.deciding] == [("wired",)]
    assert both.deciding[0].rules == ()
    # A rule that has only some of the keys does not apply.
    missed = access.explain(Party(username="alice"), INGRESS, PUT, "*/b")
    assert missed.permission is Permission.ALLOW
    assert {one.rule for one in missed.findings[0].missed} == {"no", "yes"}
    assert access.explain(Party(), INGRESS, PUT, "a/b").findings == ()


def test_subjects_that_are_described_alike_have_all_rules() -> None:
    alike = [{"id": "x", "usernames": ["alice"]}, {"id": "y", "usernames": ["alice", "bob"]}]
    access = access_of(
        default_permission="deny",
        rules=RULES,
        subjects=alike,
        policies=[
            {"rules": ["yes"], "subjects": ["x"]},
            {"rules": ["no"], "subjects": ["y"]},
        ],
    )
    alice = access.explain(Party(username="alice"), INGRESS, PUT, "a/b")
    assert alice.permission is Permission.DENY
    assert [one.subjects for one in alice.findings] == [("x", "y")]


@pytest.mark.parametrize("empty", ["rules", "subjects", "policies"])
def test_with_an_empty_list_the_default_holds_for_all(empty: str) -> None:
    policies = [{"rules": ["yes"], "subjects": ["alice"]}]
    lists = {"rules": RULES, "subjects": SUBJECTS, "policies": policies}
    access = access_of(default_permission="deny", **(lists | {empty: []}))
    assert access.subjects(Party(username="alice")) == ()
    assert not access.allows((), INGRESS, PUT, "a/b")
