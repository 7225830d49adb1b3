"""Send back what z_ping sends, until Ctrl-C; with ``-n`` so many times."""

from __future__ import annotations

import argparse
import itertools
import threading

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    ended = threading.Event()
    counter = itertools.count(1)
    with (
        zenoh.open(args.config) as session,
        session.declare_publisher(
            "test/pong", congestion_control=zenoh.CongestionControl.BLOCK, express=True
        ) as publisher,
    ):

        def answer(sample: zenoh.Sample) -> None:
            publisher.put(sample.payload)
            if next(counter) == args.number:
                ended.set()

        session.declare_subscriber("test/ping", answer)
        ended.wait()


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, number=0))
