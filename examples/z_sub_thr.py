"""Print how many samples come per second; ``-s`` rounds of ``-n`` samples."""

from __future__ import annotations

import argparse
import time

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session, session.declare_subscriber("test/thr") as subscriber:
        for _ in range(args.samples):
            subscriber.recv()
            start = time.perf_counter()
            for _ in range(args.number):
                subscriber.recv()
            print(f"{args.number / (time.perf_counter() - start):.0f} msgs/sec")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, samples=10, number=50_000))
