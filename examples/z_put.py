"""Publish one value."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session:
        print(f"Putting Data ('{args.key}': '{args.payload}')...")
        session.put(args.key, args.payload)


if __name__ == "__main__":
    main(
        options(__doc__, zenoh.Config, key="demo/example/zenwire-put", payload="Put from zenwire!")
    )
