"""Publish one number, as eclipse-zenoh's other languages read it."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session:
        print(f"Putting Float ('{args.key}': '{args.value}')...")
        session.put(args.key, zenoh.ext.z_serialize(args.value))


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="demo/example/zenwire-put", value=3.14))
