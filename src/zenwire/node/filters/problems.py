"""What is wrong in the settings of filters, all of it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenwire.errors import ConfigProblem
from zenwire.node.config.kinds import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from zenwire.node.config import Settings
    from zenwire.node.config.interceptors import AccessControl, AclPolicy, AclSubject

__all__ = ["problems"]

_VALUES = ("interfaces", "cert_common_names", "usernames")


def problems(settings: Settings) -> list[ConfigProblem]:
    """Everything for which the reference would refuse to start, and where it stands."""
    found: list[ConfigProblem] = []
    found += _repeated("qos/network", [item.id for item in settings.qos.network])
    found += _repeated("downsampling", [item.id for item in settings.downsampling])
    if settings.access_control.enabled:
        found += _access(settings.access_control)
    found += _repeated("low_pass_filter", [item.id for item in settings.low_pass_filter])
    return found


def _repeated(path: str, ids: Iterable[str | None]) -> Iterator[ConfigProblem]:
    first: dict[str, int] = {}
    for at, id_ in enumerate(ids):
        if id_ is None:
            continue
        if id_ in first:
            reason = f"{id_!r} is the id of {path}/{first[id_]} already"
            yield ConfigProblem(f"{path}/{at}/id", reason, "each id must be another one")
        else:
            first[id_] = at


def _blank(path: str, values: Iterable[str | None]) -> Iterator[ConfigProblem]:
    for at, value in enumerate(values):
        if value is not None and not value.strip():
            yield ConfigProblem(path.format(at), "it is empty")


def _access(access: AccessControl) -> Iterator[ConfigProblem]:
    rules, subjects, policies = access.rules, access.subjects, access.policies
    if rules is None or subjects is None or policies is None:
        lists = {"rules": rules, "subjects": subjects, "policies": policies}
        for name, value in lists.items():
            if value is None:
                hint = "where access control is enabled all three lists are needed, if only as []"
                yield ConfigProblem(f"access_control/{name}", "it is not set", hint)
        return
    if not (rules and subjects and policies):
        # Nothing applies to anybody: the default permission holds, as in the reference.
        return
    rule_ids = [rule.id for rule in rules]
    subject_ids = [subject.id for subject in subjects]
    yield from _blank("access_control/rules/{}/id", rule_ids)
    yield from _repeated("access_control/rules", rule_ids)
    yield from _blank("access_control/subjects/{}/id", subject_ids)
    yield from _repeated("access_control/subjects", subject_ids)
    for at, subject in enumerate(subjects):
        yield from _subject(f"access_control/subjects/{at}", subject)
    yield from _repeated("access_control/policies", [policy.id for policy in policies])
    for at, policy in enumerate(policies):
        yield from _policy(f"access_control/policies/{at}", policy, rule_ids, subject_ids)


def _subject(path: str, subject: AclSubject) -> Iterator[ConfigProblem]:
    for name in _VALUES:
        yield from _blank(f"{path}/{name}/{{}}", getattr(subject, name) or ())


def _policy(
    path: str, policy: AclPolicy, rule_ids: Sequence[str], subject_ids: Sequence[str]
) -> Iterator[ConfigProblem]:
    named = (("rules", policy.rules, rule_ids), ("subjects", policy.subjects, subject_ids))
    for name, wanted, known in named:
        if not wanted:
            yield ConfigProblem(f"{path}/{name}", "it is empty", f"name some of the {name}")
        for at, id_ in enumerate(wanted):
            if id_ not in known:
                reason = f"none of access_control/{name} has the id {id_!r}"
                yield ConfigProblem(f"{path}/{name}/{at}", reason, nearest(id_, known))
