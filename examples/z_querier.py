"""Ask every second; with ``-n`` so many times, once somebody can answer."""

from __future__ import annotations

import argparse
import itertools
import time

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    selector = zenoh.Selector(args.selector)
    with zenoh.open(args.config) as session:
        querier = session.declare_querier(
            selector.key_expr,
            target=zenoh.QueryTarget.BEST_MATCHING,
            consolidation=zenoh.ConsolidationMode.NONE,
        )
        if args.number:
            querier.declare_matching_listener().recv()
        for index in range(args.number) if args.number else itertools.count():
            text = f"[{index:4}] {args.payload}"
            print(f"Querying '{selector}' with payload '{text}'...")
            for reply in querier.get(parameters=selector.parameters, payload=text):
                show(reply)
            time.sleep(args.interval)


def show(reply: zenoh.Reply) -> None:
    if reply.ok is not None:
        print(f">> Received ('{reply.ok.key_expr}': '{reply.ok.payload.to_string()}')")
    elif reply.err is not None:
        print(f">> Received (ERROR: '{reply.err.payload.to_string()}')")


if __name__ == "__main__":
    main(
        options(
            __doc__,
            zenoh.Config,
            selector="demo/example/**",
            payload="Querier from zenwire!",
            number=0,
            interval=1.0,
        )
    )
