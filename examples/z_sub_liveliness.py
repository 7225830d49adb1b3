"""Print which keys become alive, and which are not any more; with ``-n`` so many."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session:
        tokens = session.liveliness().declare_subscriber(args.key, history=True)
        for count, sample in enumerate(tokens, 1):
            alive = sample.kind == zenoh.SampleKind.PUT
            print(f">> '{sample.key_expr}' is {'alive' if alive else 'gone'}", flush=True)
            if count == args.number:
                break


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="group1/**", number=0))
