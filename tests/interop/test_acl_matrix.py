"""Access control: subjects, messages, keys and permissions, decided as the reference does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import zenoh

import zenwire
from tests.interop.acl_tries import TRIES, Outcome
from tests.interop.exchange import PATIENT, node_settings
from tests.interop.filtering import Pair, client, router
from tests.ports import free_port

pytestmark = pytest.mark.interop

MESSAGES = (
    "put",
    "delete",
    "declare_subscriber",
    "query",
    "declare_queryable",
    "reply",
    "liveliness_token",
    "declare_liveliness_subscriber",
    "liveliness_query",
)
FLOWS: tuple[list[str] | None, ...] = (["ingress"], ["egress"], None)
FORMS = ("a", "*", "a/b")
"""What follows the prefix of a rule in the keys that are tried."""
ENDS = ("**", "a", "*")
"""What follows it in the rule."""


USERS = ("alice", "bob", "carol", "dave", "eve")


def rule(
    name: str, messages: Sequence[str], key: str, permission: str, flows: Any
) -> dict[str, Any]:
    made = {"id": name, "messages": list(messages), "key_exprs": [key], "permission": permission}
    return made if flows is None else made | {"flows": flows}


def rules(default: str) -> Iterator[dict[str, Any]]:
    """One for each message, direction and form, on keys of its own."""
    for message in MESSAGES:
        for at, flows in enumerate(FLOWS):
            for end_at, end in enumerate(ENDS):
                name = f"{message}-{at}-{end_at}"
                key = f"m/{message}/{at}/{end_at}/{end}"
                if default == "allow":
                    yield rule(name, [message], key, "deny", flows)
                else:
                    others = [other for other in MESSAGES if other != message]
                    yield rule(name, others, key, "allow", None)
                    if flows is not None:
                        # Denied in one direction only.
                        [back] = {"ingress", "egress"} - set(flows)
                        yield rule(f"{name}-back", [message], key, "allow", [back])


def keys(form: str) -> list[str]:
    return [
        f"m/{message}/{at}/{end_at}/{form}"
        for message in MESSAGES
        for at in range(len(FLOWS))
        for end_at in range(len(ENDS))
    ]


def settings(default: str) -> dict[str, Any]:
    """Alice has all rules. Bob has half of them, and Carol too, but as another subject the rest.

    Dave has those of Bob, and is a subject without any rules besides. Eve is none of them.
    """
    every = rule("every", MESSAGES, "**", "allow", None)
    fence = rule("fence", MESSAGES, "fence/**", "allow", None)
    never = rule("never", MESSAGES, "m/put/1/**", "deny", None)
    found = list(rules(default))
    names = [one["id"] for one in found]
    subjects = [
        {"id": "root", "usernames": ["root"]},
        {"id": "alice", "usernames": ["alice"], "interfaces": ["lo"]},
        {"id": "some", "usernames": ["bob", "carol", "dave"], "link_protocols": ["tls", "tcp"]},
        {"id": "carol", "usernames": ["carol"], "zids": ["ca01", "ca02"]},
        {"id": "dave", "usernames": ["dave"]},
        {"id": "elsewhere", "usernames": ["eve"], "interfaces": ["eth99"]},
        {"id": "not eve", "usernames": ["eve"], "zids": ["ca01"]},
    ]
    policies = [
        {"id": "r", "rules": ["every"], "subjects": ["root"]},
        {"rules": names, "subjects": ["alice", "elsewhere"]},
        {"rules": names[::2], "subjects": ["some"]},
        {"rules": ["never"], "subjects": ["alice", "some", "not eve"]},
        {"rules": names[1::2], "subjects": ["carol"]},
    ]
    if default == "deny":
        # Whoever is allowed as one subject is allowed.
        subjects.append({"id": "all"})
        policies.append({"rules": ["fence"], "subjects": ["all"]})
    control = {"enabled": True, "default_permission": default, "subjects": subjects}
    return {
        "access_control": control | {"rules": [every, fence, *found, never], "policies": policies}
    }


def outcomes(
    kind: str, config: dict[str, Any], users: Sequence[str], forms: Sequence[str], where: Path
) -> dict[tuple[str, str, str], Outcome]:
    found = {}
    with router(kind, config, where) as port:
        for user in users:
            zid = {"carol": "ca01"}.get(user)
            named = {} if zid is None else {"id": zid}
            with client(port, user, **named) as actor, client(port, "root") as observer:
                pair = Pair(actor, observer)
                for form in forms:
                    for name, attempt in TRIES.items():
                        found[user, form, name] = attempt(pair, keys(form))
    return found


@pytest.mark.parametrize(
    ("mode", "default", "user", "form"),
    [
        ("router", "deny", "carol", "*"),
        pytest.param("peer", "deny", "carol", "*", marks=pytest.mark.long),
        pytest.param("peer", "allow", "alice", "a", marks=pytest.mark.long),
    ],
)
def test_decisions_are_those_of_the_reference(
    mode: str, default: str, user: str, form: str, tmp_path: Path
) -> None:
    config = settings(default) | {"mode": mode}
    theirs = outcomes("E", config, [user], [form], tmp_path)
    assert outcomes("Z", config, [user], [form], tmp_path) == theirs
    assert all(outcome.values() for outcome in theirs.values())


@pytest.mark.long
@pytest.mark.parametrize("default", ["allow", "deny"])
def test_every_decision_is_that_of_the_reference(default: str, tmp_path: Path) -> None:
    config = settings(default)
    theirs = outcomes("E", config, USERS, FORMS, tmp_path)
    # One of them is held to rules, the other is not: all tries tell the difference.
    for name in TRIES:
        assert theirs["alice", "a", name] != theirs["eve", "a", name]
    assert outcomes("Z", config, USERS, FORMS, tmp_path) == theirs


def alone(api: Any, mode: str, default: str, form: str) -> dict[str, Outcome]:
    """What passes between a node with rules, and another one without."""
    port = free_port()
    found = list(rules(default))
    fence = rule("fence", MESSAGES, "fence/**", "allow", None)
    control = {
        "enabled": True,
        "default_permission": default,
        "rules": [fence, *found],
        "subjects": [{"id": "other", "zids": ["a0"]}],
        "policies": [{"rules": ["fence", *(one["id"] for one in found)], "subjects": ["other"]}],
    }
    here = {"connect": f"tcp/127.0.0.1:{port}"}
    there = {"listen": f"tcp/127.0.0.1:{port}"}
    if mode != "client":
        here, there = there, here
    held = node_settings(mode, **here, **PATIENT) | {"access_control": control}
    other = node_settings("peer" if mode == "peer" else "router", **there, **PATIENT)
    both = [(api, held), (zenoh, other | {"id": "a0"})]
    if mode == "client":
        both.reverse()
    with ExitStack() as stack:
        sessions = {}
        for module, values in both:
            session = module.open(module.Config.from_json5(json.dumps(values)))
            stack.callback(session.close)
            sessions[values is held] = session
        pair = Pair(sessions[False], sessions[True], api)
        return {name: attempt(pair, keys(form)) for name, attempt in TRIES.items()}


@pytest.mark.parametrize(
    ("mode", "default", "form"),
    [
        ("peer", "allow", "a"),
        pytest.param("client", "deny", "*", marks=pytest.mark.long),
        pytest.param("client", "allow", "a", marks=pytest.mark.long),
        pytest.param("peer", "deny", "a/b", marks=pytest.mark.long),
        pytest.param("router", "allow", "a", marks=pytest.mark.long),
        pytest.param("router", "deny", "*", marks=pytest.mark.long),
    ],
)
def test_a_node_holds_its_own_sessions_to_rules_about_others(
    mode: str, default: str, form: str
) -> None:
    assert alone(zenwire, mode, default, form) == alone(zenoh, mode, default, form)
