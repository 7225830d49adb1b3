"""``zenwire acl``: what an access control decides, and which of its rules do."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

from zenwire.cli.escaping import escape, json_text
from zenwire.cli.running import OK

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from zenwire.node.config.interceptors import AclMessage, Flow
    from zenwire.node.filters import Explanation, Finding, Party
    from zenwire.node.filters.access import Applied

SUMMARY = "say which rule of an access control decides about a message, and why"
EXAMPLES: tuple[str, ...] = (
    "zenwire acl explain -c router.json5 --username alice --message put -k demo/secret/a",
    "zenwire acl explain -c router.json5 --interface eth0 -k 'demo/**' --flow egress --json",
)

MESSAGES: Final = (
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
FLOWS: Final = ("ingress", "egress")
PROTOCOLS: Final = (
    *("tcp", "udp", "tls", "quic", "serial"),
    *("unixpipe", "unixsock-stream", "vsock", "ws"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add whom and what it is about."""
    parser.add_argument("action", choices=["explain"], help="what to do")
    parser.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="the configuration of the node that decides (default: that of $ZENOH_CONFIG)",
    )
    parser.add_argument("-k", "--key", required=True, metavar="KEYEXPR", help="of the message")
    parser.add_argument(
        "--message",
        action="append",
        choices=MESSAGES,
        help="what is said; may be given several times (default: each of them)",
    )
    parser.add_argument(
        "--flow",
        action="append",
        choices=FLOWS,
        help="ingress: the other node says it; egress: it is told (default: both)",
    )
    group = parser.add_argument_group("the other node")
    group.add_argument("--zid", metavar="ID", help="its id, which anybody can claim")
    group.add_argument("--username", metavar="NAME", help="by which it has logged in")
    group.add_argument(
        "--cert-common-name", action="append", default=[], metavar="NAME", help="of its certificate"
    )
    group.add_argument(
        "--interface",
        action="append",
        default=[],
        metavar="NAME",
        help="of this node, by which it comes, such as eth0; may be given several times",
    )
    group.add_argument(
        "--link-protocol", action="append", default=[], choices=PROTOCOLS, help="by which it comes"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object for each message")


def run(args: argparse.Namespace) -> int:
    """Explain. What is wrong in the configuration is an error."""
    # Slow to load, and not for --help.
    from zenwire.keyexpr import KeyExpr  # noqa: PLC0415
    from zenwire.node.config import Config  # noqa: PLC0415
    from zenwire.node.config.interceptors import AclMessage, Flow  # noqa: PLC0415
    from zenwire.node.filters import Filters, Party  # noqa: PLC0415
    from zenwire.wire.values import ZenohId  # noqa: PLC0415

    config = Config.from_file(args.config) if args.config else Config.from_env()
    filters = Filters.of(config.settings)
    access = None if filters is None else filters.access
    key = str(KeyExpr(args.key))
    party = Party(
        zid=None if args.zid is None else ZenohId.parse(args.zid),
        username=args.username,
        common_names=tuple(args.cert_common_name),
        interfaces=tuple(args.interface),
        protocols=tuple(args.link_protocol),
    )
    for message, flow in product(
        map(AclMessage, args.message or MESSAGES), map(Flow, args.flow or FLOWS)
    ):
        found = None if access is None else access.explain(party, flow, message, key)
        if args.json:
            print(json_text(_told(found, party, message, flow, key), ascii_only=True))
        else:
            print("\n".join(map(escape, _lines(found, message, flow, key))))
    return OK


def _lines(found: Explanation | None, message: AclMessage, flow: Flow, key: str) -> Iterator[str]:
    permission = "allow" if found is None else found.permission.value
    yield f"{permission}: {message.value} on {key} ({flow.value}): {_why(found)}"
    for finding in () if found is None else found.findings:
        names = " = ".join(finding.subjects)
        yield f"  as subject {names}: {finding.permission.value}"
        yield from (f"    {_shown(one)}" for one in finding.rules)
        if found is not None and not finding.rules:
            yield f"    {_by_default(found)}"
        for one in finding.missed:
            yield f"    rule {one.rule} does not apply: {one.key_expr} does not include {key}"
    for name, unlike in () if found is None else found.others.items():
        yield f"  not subject {name}: it has other {', '.join(unlike)}"


def _why(found: Explanation | None) -> str:
    """In one sentence."""
    if found is None:
        return "access control is not enabled"
    if not found.findings:
        return f"this is none of the subjects, and the default is {found.default.value}"
    deciding: tuple[Finding, ...] = found.deciding
    rules = [one for finding in deciding for one in finding.rules]
    if not rules:
        return _by_default(found)
    if found.permission.value == "allow" and len(found.findings) > len(deciding):
        return f"{_shown(rules[0])}, and to be allowed as one subject is enough"
    return _shown(rules[0])


def _by_default(found: Explanation) -> str:
    verb = {"allow": "denies", "deny": "allows"}[found.default.value]
    return f"no rule {verb} it, and the default is {found.default.value}"


def _shown(one: Applied) -> str:
    verb = {"allow": "allows", "deny": "denies"}[one.permission.value]
    return f"rule {one.rule} of policy {one.policy} {verb} {one.key_expr}"


def _told(
    found: Explanation | None, party: Party, message: AclMessage, flow: Flow, key: str
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "permission": "allow" if found is None else found.permission.value,
        "why": _why(found),
        "message": message.value,
        "flow": flow.value,
        "key": key,
        "enabled": found is not None,
        "default_permission": None if found is None else found.default.value,
        "from": {
            "zid": None if party.zid is None else str(party.zid),
            "username": party.username,
            "cert_common_names": party.common_names,
            "interfaces": party.interfaces,
            "link_protocols": party.protocols,
        },
        "subjects": [],
        "not_subjects": {} if found is None else found.others,
    }
    for finding in () if found is None else found.findings:
        told["subjects"].append(
            {
                "ids": finding.subjects,
                "permission": finding.permission.value,
                "rules": [_rule(one) for one in finding.rules],
                "not_included": [_rule(one) for one in finding.missed],
            }
        )
    return told


def _rule(one: Applied) -> dict[str, str]:
    return {
        "rule": one.rule,
        "policy": one.policy,
        "key_expr": one.key_expr,
        "permission": one.permission.value,
    }
