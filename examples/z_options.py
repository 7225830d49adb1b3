"""Options that the examples share, with the names of those of eclipse-zenoh."""

from __future__ import annotations

import argparse
import json
from typing import Any

_SHORT = {"key", "selector", "payload", "number", "size", "samples", "interval"}


def options(doc: str | None, kind: Any, **defaults: Any) -> argparse.Namespace:
    """Parse. ``defaults`` are those of the example, such as its key; ``kind`` is the class Config.

    Gives a ``config`` too, of that class.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("-m", "--mode", choices=["peer", "client"])
    parser.add_argument("-e", "--connect", action="append", metavar="ENDPOINT")
    parser.add_argument("-l", "--listen", action="append", metavar="ENDPOINT")
    parser.add_argument("-c", "--config", metavar="FILE")
    parser.add_argument("--no-multicast-scouting", action="store_true")
    for name, default in defaults.items():
        short = [f"-{name[0]}"] if name in _SHORT else []
        parser.add_argument(*short, f"--{name}", default=default, type=type(default))
    args = parser.parse_args()
    config = kind.from_file(args.config) if args.config else kind()
    settings = {
        "mode": args.mode,
        "connect/endpoints": args.connect,
        "listen/endpoints": args.listen,
        "scouting/multicast/enabled": False if args.no_multicast_scouting else None,
    }
    for name, value in settings.items():
        if value is not None:
            config.insert_json5(name, json.dumps(value))
    args.config = config
    return args
