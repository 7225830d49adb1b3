"""Print which keys are alive."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session:
        for reply in session.liveliness().get(args.key, timeout=args.timeout):
            if reply.ok is not None:
                print(f">> Alive token ('{reply.ok.key_expr}')")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="group1/**", timeout=10.0))
