"""Publish that a key has no value any more."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session:
        print(f"Deleting resources matching '{args.key}'...")
        session.delete(args.key)


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="demo/example/zenwire-put"))
