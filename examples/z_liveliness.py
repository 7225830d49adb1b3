"""Be alive until Ctrl-C; or for so many seconds."""

from __future__ import annotations

import argparse
import time

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session, session.liveliness().declare_token(args.key):
        print(f"'{args.key}' is alive...", flush=True)
        time.sleep(args.seconds or 1e9)


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config, key="group1/zenwire", seconds=0.0))
