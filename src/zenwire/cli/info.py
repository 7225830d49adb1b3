"""``zenwire info``: who this node is, whom it is connected to, and what was agreed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zenwire.cli.escaping import escape, json_text
from zenwire.cli.options import session_options
from zenwire.cli.running import FAILED, OK, Output, run_command, say, session_of

if TYPE_CHECKING:
    import argparse

    from zenwire import aio

SUMMARY = "show the nodes that a session is connected to, over which links, and what was agreed"
EXAMPLES: tuple[str, ...] = (
    "zenwire info -e tcp/localhost:7447",
    "zenwire info -m client --json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add how it is printed."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Open a session and look. Exit code 1: it is connected to nobody."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    async with session_of(args) as session:
        told = told_of(session)
    text = json_text(told, indent=1) if args.json else "\n".join(map(escape, _lines(told)))
    await Output().write(text + "\n")
    if told["nodes"]:
        return OK
    say(args, "connected to nobody; try zenwire scout, or -e tcp/HOST:7447")
    return FAILED


def told_of(session: aio.Session) -> dict[str, Any]:
    """What is known of a session, as plain values."""
    links = session.info.links()
    nodes = []
    for one in session.info.stats().neighbours:
        agreed = one.peer
        nodes.append(
            {
                "zid": str(one.zid),
                "whatami": one.whatami.name.lower(),
                "links": [
                    {
                        "src": link.src,
                        "dst": link.dst,
                        "mtu": link.mtu,
                        "reliability": link.reliability and link.reliability.name.lower(),
                        "interfaces": list(link.interfaces),
                        "auth_identifier": link.auth_identifier,
                    }
                    for link in links
                    if str(link.zid) == str(one.zid)
                ],
                "agreed": {
                    "qos": agreed.qos,
                    "lowlatency": agreed.lowlatency,
                    "compression": agreed.compression,
                    "multilink": agreed.multilink,
                    "batch_size": agreed.batch_size,
                    "lease_seconds": agreed.lease,
                    "patch": agreed.patch,
                },
            }
        )
    return {
        "zid": str(session.zid()),
        "mode": str(session.config.effective.mode.name.lower()),
        "nodes": nodes,
    }


def agreed_line(agreed: dict[str, Any]) -> str:
    """What was agreed with a node, for people."""
    words = [name for name in ("qos", "lowlatency", "compression", "multilink") if agreed[name]]
    words.append(f"batches of {agreed['batch_size']:,} bytes")
    words.append(f"lease {agreed['lease_seconds']:g} s")
    return ", ".join(words)


def _lines(told: dict[str, Any]) -> list[str]:
    lines = [f"{'zid':<8} {told['zid']}", f"{'mode':<8} {told['mode']}"]
    for node in told["nodes"]:
        lines += ["", f"{node['whatami']:<8} {node['zid']}"]
        for link in node["links"]:
            user = f", as {link['auth_identifier']}" if link["auth_identifier"] else ""
            lines.append(f"  link   {link['src']} -> {link['dst']}, {link['reliability']}{user}")
        lines.append(f"  agreed {agreed_line(node['agreed'])}")
    return lines
