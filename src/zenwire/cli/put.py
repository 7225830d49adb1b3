"""``zenwire put``: publish values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from zenwire.cli.options import key_options
from zenwire.cli.publishing import publish, publishing_options, ticks
from zenwire.cli.running import Aside, Wrong, run_command

if TYPE_CHECKING:
    import argparse

    from zenwire import aio

SUMMARY = "publish a value, from the command line, a file or standard input"
EXAMPLES: tuple[str, ...] = (
    "zenwire put -k demo/a -p hello",
    "zenwire put -k demo/a -p '{\"x\": 1}' --encoding application/json --rate 10 --count 100",
    "zenwire put -k camera/front --file front.jpg --encoding image/jpeg",
    "tail -f log.txt | zenwire put -k demo/log --lines",
    "zenwire put -k demo/a -p hello --wait 10",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the value and its key."""
    key_options(parser, "where to publish")
    value = parser.add_mutually_exclusive_group()
    value.add_argument("-p", "--payload", metavar="TEXT", help="the value")
    value.add_argument("--file", metavar="FILE", help="the value is what is in it; - for stdin")
    value.add_argument("--lines", action="store_true", help="a value for each line of stdin")
    parser.add_argument("--encoding", metavar="NAME", help="such as text/plain or application/json")
    publishing_options(parser)


def run(args: argparse.Namespace) -> int:
    """Publish. Exit code 1: there is nobody to publish to; 3: dropped; 124: nobody subscribed."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    if args.lines:
        return await publish(args, lambda session, publisher: _lines(args, session, publisher))
    payload = _payload(args)

    async def each(session: aio.Session, publisher: aio.Publisher) -> int:
        done = 0
        async for _ in ticks(args.count, args.rate):
            await _put(args, session, publisher, payload)
            done += 1
        return done

    return await publish(args, each)


def _payload(args: argparse.Namespace) -> bytes:
    if args.payload is not None:
        return bytes(args.payload.encode(errors="surrogateescape"))
    if args.file not in (None, "-"):
        return Path(args.file).read_bytes()
    if args.file is None and sys.stdin.isatty():
        raise Wrong("no value: give -p TEXT, --file FILE, or pipe it in")
    return sys.stdin.buffer.read()


async def _put(
    args: argparse.Namespace, session: aio.Session, publisher: aio.Publisher, payload: bytes
) -> None:
    await publisher.put(
        payload,
        encoding=args.encoding,
        attachment=args.attachment,
        timestamp=session.new_timestamp() if args.timestamp else None,
    )


async def _lines(args: argparse.Namespace, session: aio.Session, publisher: aio.Publisher) -> int:
    """Each line as it comes; the pipe is read aside, so that the network goes on."""
    done, pipe = 0, Aside()
    async for _ in ticks(args.count or sys.maxsize, args.rate):
        line = await pipe.run(sys.stdin.buffer.readline)
        if not line:
            break
        await _put(args, session, publisher, line.rstrip(b"\r\n"))
        done += 1
    return done
