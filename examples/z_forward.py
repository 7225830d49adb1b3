"""Publish what comes on one key on another, until Ctrl-C; with ``-n`` so many samples."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with (
        zenoh.open(args.config) as session,
        session.declare_publisher(args.forward) as publisher,
        session.declare_subscriber(args.key) as subscriber,
    ):
        for count, sample in enumerate(subscriber, 1):
            print(f"Forwarding '{sample.key_expr}' to '{args.forward}'")
            publisher.put(sample.payload, encoding=sample.encoding, attachment=sample.attachment)
            if count == args.number:
                break


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="demo/example/**", forward="demo/forward", number=0))
