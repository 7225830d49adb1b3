"""Ask, and print the replies."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session:
        payload = args.payload or None
        for reply in session.get(args.selector, payload=payload, timeout=args.timeout):
            show(reply)


def show(reply: zenoh.Reply) -> None:
    if reply.ok is not None:
        print(f">> Received ('{reply.ok.key_expr}': '{reply.ok.payload.to_string()}')")
    elif reply.err is not None:
        print(f">> Received (ERROR: '{reply.err.payload.to_string()}')")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, selector="demo/example/**", payload="", timeout=10.0))
