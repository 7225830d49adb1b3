"""Publish a value every second; with ``-n`` so many times, once somebody listens."""

from __future__ import annotations

import argparse
import itertools
import time

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session, session.declare_publisher(args.key) as publisher:
        if args.number:
            publisher.declare_matching_listener().recv()
        for index in range(args.number) if args.number else itertools.count():
            text = f"[{index:4}] {args.payload}"
            print(f"Putting Data ('{args.key}': '{text}')...")
            publisher.put(text)
            time.sleep(args.interval)


if __name__ == "__main__":
    main(
        options(
            __doc__,
            zenoh.Config,
            key="demo/example/zenwire-pub",
            payload="Pub from zenwire!",
            number=0,
            interval=1.0,
        )
    )
