"""Access control: which rules hold for whom, and what they say about a message.

Of the rules that hold for one subject, those apply whose key expression includes the message's; one
that denies is enough. Whoever is several subjects at once may do what any one of them may.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from zenwire.keyexpr import KeyExprTree
from zenwire.node.config.interceptors import Flow, Permission

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zenwire.node.config.interceptors import AccessControl, AclMessage, AclRule, AclSubject
    from zenwire.node.filters.party import Party
    from zenwire.wire.values import ZenohId

__all__ = ["Access", "Applied", "Explanation", "Finding", "Subject"]


class Applied(NamedTuple):
    """A rule where it is applied: by which policy, with which of its key expressions."""

    rule: str
    policy: str
    key_expr: str
    permission: Permission


class _Match(NamedTuple):
    """One combination of what a subject may be; None is anything."""

    interface: str | None
    common_name: str | None
    username: str | None
    protocol: str | None
    zid: ZenohId | None

    def unlike(self, party: Party) -> tuple[str, ...]:
        """What of a subject in the configuration a party does not have."""
        fits = {
            "interfaces": self.interface is None or self.interface in party.interfaces,
            "cert_common_names": (
                self.common_name is None or self.common_name in party.common_names
            ),
            "usernames": self.username is None or self.username == party.username,
            "link_protocols": self.protocol is None or self.protocol in party.protocols,
            "zids": self.zid is None or self.zid == party.zid,
        }
        return tuple(name for name, is_so in fits.items() if not is_so)


_Place = tuple[Flow, "AclMessage", Permission]


@dataclass(slots=True, eq=False)
class Subject:
    """Somebody whom rules hold for. Subjects that are described alike are one, with all rules."""

    names: list[str] = field(default_factory=list)
    rules: dict[_Place, KeyExprTree[list[Applied]]] = field(default_factory=dict)

    def add(self, rule: AclRule, policy: str) -> None:
        for flow, message, key in product(rule.flows or tuple(Flow), rule.messages, rule.key_exprs):
            tree = self.rules.setdefault((flow, message, rule.permission), KeyExprTree())
            applied = Applied(rule.id, policy, str(key), rule.permission)
            found = tree.get(key)
            if found is None:
                tree.insert(key, [applied])
            elif applied not in found:
                found.append(applied)

    def applying(
        self, flow: Flow, message: AclMessage, permission: Permission, key: str
    ) -> Iterator[Applied]:
        """The rules with this permission that include the key."""
        tree = self.rules.get((flow, message, permission))
        if tree is not None:
            for _, applied in tree.including(key):
                yield from applied

    def missed(self, flow: Flow, message: AclMessage, key: str) -> Iterator[Applied]:
        """The rules that would apply if they included the key, which they only intersect."""
        for permission in Permission:
            tree = self.rules.get((flow, message, permission))
            if tree is not None:
                including = {expr for expr, _ in tree.including(key)}
                for expr, applied in tree.intersecting(key):
                    if expr not in including:
                        yield from applied


@dataclass(frozen=True, slots=True)
class Finding:
    """What one subject may do, and which rules say so; none if the default does.

    ``missed`` are rules whose key expression has keys in common with the message's, but does not
    include it, so that they do not apply.
    """

    subjects: tuple[str, ...]
    permission: Permission
    rules: tuple[Applied, ...]
    missed: tuple[Applied, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a message may pass. Without findings it is from, or for, none of the subjects.

    ``others`` are the subjects that it is not, with the settings that keep it from being one.
    """

    permission: Permission
    default: Permission
    findings: tuple[Finding, ...]
    others: dict[str, tuple[str, ...]]

    @property
    def deciding(self) -> tuple[Finding, ...]:
        """The findings on which it depends: any that allows, or all that deny."""
        return tuple(one for one in self.findings if one.permission is self.permission)


class Access:
    """What an access control says, of which `problems` found nothing wrong."""

    def __init__(self, settings: AccessControl) -> None:
        self.default = settings.default_permission
        self._subjects: dict[_Match, Subject] = {}
        rules, subjects, policies = settings.rules, settings.subjects, settings.policies
        # Where one of the lists is empty, the others mean nothing.
        if rules and subjects and policies:
            named = {
                one.id: [self._subject(one.id, match) for match in _matches(one)]
                for one in subjects
            }
            by_id = {rule.id: rule for rule in rules}
            for at, policy in enumerate(policies):
                name = f"#{at}" if policy.id is None else policy.id
                for rule_id, subject_id in product(policy.rules, policy.subjects):
                    for subject in named[subject_id]:
                        subject.add(by_id[rule_id], name)

    def _subject(self, name: str, match: _Match) -> Subject:
        subject = self._subjects.setdefault(match, Subject())
        subject.names.append(name)
        return subject

    def subjects(self, party: Party) -> tuple[Subject, ...]:
        """All that a party is."""
        return tuple(
            subject for match, subject in self._subjects.items() if not match.unlike(party)
        )

    def _others(self, party: Party) -> dict[str, tuple[str, ...]]:
        least: dict[str, tuple[str, ...]] = {}
        for match, subject in self._subjects.items():
            unlike = match.unlike(party)
            for name in subject.names:
                least[name] = min(least.get(name, unlike), unlike, key=len)
        return {name: unlike for name, unlike in least.items() if unlike}

    def decides(self, flow: Flow) -> bool:
        """Whether anything in this direction could be denied."""
        if self.default is Permission.DENY:
            return True
        return any(place[0] is flow for one in self._subjects.values() for place in one.rules)

    def allows(
        self, subjects: Iterable[Subject], flow: Flow, message: AclMessage, key: str
    ) -> bool:
        """Whether a message of these subjects may pass."""
        permission = self.default
        for subject in subjects:
            permission, _ = self._judge(subject, flow, message, key)
            if permission is Permission.ALLOW:
                break
        return permission is Permission.ALLOW

    def _judge(
        self, subject: Subject, flow: Flow, message: AclMessage, key: str
    ) -> tuple[Permission, Applied | None]:
        """What one subject may, and a rule that says so."""
        for applied in subject.applying(flow, message, Permission.DENY, key):
            return Permission.DENY, applied
        if self.default is Permission.DENY:
            for applied in subject.applying(flow, message, Permission.ALLOW, key):
                return Permission.ALLOW, applied
        return self.default, None

    def explain(self, party: Party, flow: Flow, message: AclMessage, key: str) -> Explanation:
        """The same as `allows`, with all that leads to it."""
        subjects = self.subjects(party)
        findings = []
        for subject in subjects:
            permission, applied = self._judge(subject, flow, message, key)
            rules = () if applied is None else subject.applying(flow, message, permission, key)
            missed = subject.missed(flow, message, key)
            names = tuple(dict.fromkeys(subject.names))
            findings.append(Finding(names, permission, tuple(rules), tuple(missed)))
        allowed = self.allows(subjects, flow, message, key)
        permission = Permission.ALLOW if allowed else Permission.DENY
        return Explanation(permission, self.default, tuple(findings), self._others(party))


def _matches(subject: AclSubject) -> Iterator[_Match]:
    protocols = [protocol.value for protocol in subject.link_protocols or ()]
    for interface, common_name, username, protocol, zid in product(
        subject.interfaces or (None,),
        subject.cert_common_names or (None,),
        subject.usernames or (None,),
        protocols or (None,),
        subject.zids or (None,),
    ):
        yield _Match(interface, common_name, username, protocol, zid)
