"""Answer queries, until Ctrl-C; with ``-n`` so many."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session, session.declare_queryable(args.key) as queryable:
        for count, query in enumerate(queryable, 1):
            with query:
                print(f">> [Queryable] Received Query '{query.selector}'")
                query.reply(args.key, args.payload)
            if count == args.number:
                break


if __name__ == "__main__":
    main(
        options(
            __doc__,
            zenoh.Config,
            key="demo/example/zenwire-queryable",
            payload="Queryable from zenwire!",
            number=0,
        )
    )
