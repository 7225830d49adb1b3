"""Send to z_pong, wait for the answer, and print how long both took."""

from __future__ import annotations

import argparse
import time

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with (
        zenoh.open(args.config) as session,
        session.declare_subscriber("test/pong") as answers,
        session.declare_publisher(
            "test/ping", congestion_control=zenoh.CongestionControl.BLOCK, express=True
        ) as publisher,
    ):
        publisher.declare_matching_listener().recv()
        payload = bytes(args.size)
        for index in range(args.number):
            start = time.perf_counter_ns()
            publisher.put(payload)
            answers.recv()
            rtt = (time.perf_counter_ns() - start) // 1000
            print(f"{args.size} bytes: seq={index} rtt={rtt}us lat={rtt // 2}us")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, size=8, number=100))
