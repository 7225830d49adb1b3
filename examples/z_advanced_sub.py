"""Print what is published in order, also from before, and what is missed; ``-n``: so many."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with (
        zenoh.open(args.config) as session,
        zenoh.ext.declare_advanced_subscriber(
            session,
            args.key,
            history=zenoh.ext.HistoryConfig(detect_late_publishers=True),
            recovery=zenoh.ext.RecoveryConfig(heartbeat=True),
            subscriber_detection=True,
        ) as subscriber,
    ):
        subscriber.sample_miss_listener(
            lambda miss: print(f">> Missed {miss.nb} samples from '{miss.source}'")
        )
        for count, sample in enumerate(subscriber, 1):
            show(sample)
            if count == args.number:
                break


def show(sample: zenoh.Sample) -> None:
    print(f">> Received {sample.kind} ('{sample.key_expr}': '{sample.payload.to_string()}')")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="demo/example/**", number=0))
