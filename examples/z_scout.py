"""Look for nodes for a second."""

from __future__ import annotations

import argparse
import time

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    heard: list[zenoh.Hello] = []
    scout = zenoh.scout(heard.append, what=args.what, config=args.config)
    time.sleep(args.seconds)
    scout.stop()
    for hello in heard:
        print(hello)
    print(f"Found {len(heard)} nodes.")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, what="peer|router", seconds=1.0))
