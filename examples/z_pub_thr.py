"""Publish as fast as can be, for z_sub_thr; with ``-n`` so many times."""

from __future__ import annotations

import argparse
import itertools

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with (
        zenoh.open(args.config) as session,
        session.declare_publisher(
            "test/thr", congestion_control=zenoh.CongestionControl.BLOCK
        ) as publisher,
    ):
        publisher.declare_matching_listener().recv()
        payload = bytes(args.size)
        for _ in range(args.number) if args.number else itertools.count():
            publisher.put(payload)


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, size=8, number=0))
