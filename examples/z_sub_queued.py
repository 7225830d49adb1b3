"""Print what is published, from a queue, until Ctrl-C; with ``-n`` so many samples."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session, session.declare_subscriber(args.key) as subscriber:
        for count, sample in enumerate(subscriber, 1):
            show(sample)
            if count == args.number:
                break


def show(sample: zenoh.Sample) -> None:
    print(f">> Received {sample.kind} ('{sample.key_expr}': '{sample.payload.to_string()}')")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="demo/example/**", number=0))
