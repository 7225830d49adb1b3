"""Keep the last value of each key, and answer with them; with ``-n`` so many queries."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    stored: dict[str, zenoh.Sample] = {}

    def keep(sample: zenoh.Sample) -> None:
        print(f">> [Subscriber] Received {sample.kind} ('{sample.key_expr}')")
        if sample.kind == zenoh.SampleKind.DELETE:
            stored.pop(str(sample.key_expr), None)
        else:
            stored[str(sample.key_expr)] = sample

    with zenoh.open(args.config) as session, session.declare_subscriber(args.key, keep):
        queryable = session.declare_queryable(args.key, complete=True)
        for count, query in enumerate(queryable, 1):
            print(f">> [Queryable] Received Query '{query.selector}'")
            with query:
                for key, sample in list(stored.items()):
                    if query.key_expr.intersects(key):
                        query.reply(key, sample.payload, encoding=sample.encoding)
            if count == args.number:
                break


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="demo/example/**", number=0))
