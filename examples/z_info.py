"""Who is connected."""

from __future__ import annotations

import argparse

from z_options import options

import zenwire as zenoh


def main(args: argparse.Namespace) -> None:
    with zenoh.open(args.config) as session:
        info = session.info
        print(f"zid: {info.zid()}")
        print(f"routers: {[str(one) for one in info.routers_zid()]}")
        print(f"peers: {[str(one) for one in info.peers_zid()]}")


if __name__ == "__main__":
    main(options(__doc__, zenoh.Config))
