"""Publish for z_advanced_sub: late ones get what there was, and all get what they lost."""

from __future__ import annotations

import argparse
import itertools
import time

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with (
        zenoh.open(args.config) as session,
        zenoh.ext.declare_advanced_publisher(
            session,
            args.key,
            cache=zenoh.ext.CacheConfig(args.history),
            sample_miss_detection=zenoh.ext.MissDetectionConfig(heartbeat=0.5),
            publisher_detection=True,
        ) as publisher,
    ):
        for index in range(args.number) if args.number else itertools.count():
            text = f"[{index:4}] {args.payload}"
            print(f"Putting Data ('{args.key}': '{text}')...", flush=True)
            publisher.put(text)
            time.sleep(args.interval)


if __name__ == "__main__":
    main(
        options(
            __doc__,
            zenoh.Config,
            key="demo/example/zenwire-pub",
            payload="Pub from zenwire!",
            history=10,
            number=0,
            interval=1.0,
        )
    )
