"""Print what is published, by a callback, until Ctrl-C; with ``-n`` so many samples."""

from __future__ import annotations

import argparse
import itertools
import threading

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    ended = threading.Event()
    counter = itertools.count(1)

    def take(sample: zenoh.Sample) -> None:
        show(sample)
        if next(counter) == args.number:
            ended.set()

    with zenoh.open(args.config) as session, session.declare_subscriber(args.key, take):
        ended.wait()


def show(sample: zenoh.Sample) -> None:
    print(f">> Received {sample.kind} ('{sample.key_expr}': '{sample.payload.to_string()}')")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="demo/example/**", number=0))
