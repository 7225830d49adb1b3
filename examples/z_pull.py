"""Look at the last samples now and then; older ones give way. With ``-n`` so many times."""

from __future__ import annotations

import argparse
import itertools
import time

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    last: zenoh.handlers.RingChannel[zenoh.Sample] = zenoh.handlers.RingChannel(args.size)
    with zenoh.open(args.config) as session, session.declare_subscriber(args.key, last) as samples:
        for _ in range(args.number) if args.number else itertools.count():
            time.sleep(args.interval)
            print("[Subscriber] Pulling...")
            while (sample := samples.try_recv()) is not None:
                show(sample)


def show(sample: zenoh.Sample) -> None:
    print(f">> Received {sample.kind} ('{sample.key_expr}': '{sample.payload.to_string()}')")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="demo/example/**", size=3, interval=5.0, number=0))
