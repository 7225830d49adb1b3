"""``zenwire queryable``: answer queries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from zenwire.cli.escaping import escape, json_text
from zenwire.cli.options import count, key_options, seconds, session_options
from zenwire.cli.programs import NotStartedError, run_program
from zenwire.cli.running import OK, OUT_OF_TIME, USAGE, Output, note, run_command, say, session_of
from zenwire.cli.shown import text_of
from zenwire.errors import ZError

if TYPE_CHECKING:
    import argparse

    from zenwire import aio

SUMMARY = "answer queries with a value, a file, what was asked, or what a program prints"
EXAMPLES: tuple[str, ...] = (
    "zenwire queryable -k demo/a -p hello",
    "zenwire queryable -k 'demo/**' --echo --jsonl",
    "zenwire queryable -k demo/uptime --exec uptime",
    "zenwire queryable -k demo/a --error 'not today' --count 1",
)
_AT_ONCE: Final = 16
"""Programs of ``--exec`` that run at the same time."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the key and the answer."""
    key_options(parser, "what to answer for")
    answer = parser.add_mutually_exclusive_group(required=True)
    answer.add_argument("-p", "--payload", metavar="TEXT", help="answer with this value")
    answer.add_argument("--file", metavar="FILE", help="answer with what is in it at that time")
    answer.add_argument("--echo", action="store_true", help="answer with the payload of the query")
    answer.add_argument(
        "--exec",
        metavar="COMMAND",
        help="answer with what a shell command prints; it gets the payload on stdin, and KEY, "
        "PARAMETERS and SELECTOR with ZENWIRE_ before them in its environment; if it fails, or these "
        "do not fit there (a NUL byte, some 100 kB), the answer is an error that says why",
    )
    answer.add_argument("--error", metavar="TEXT", help="answer with an error")
    parser.add_argument("--encoding", metavar="NAME", help="of the answers")
    parser.add_argument("--attachment", metavar="TEXT", help="goes with the answers")
    parser.add_argument("--complete", action="store_true", help="say that it has all of these keys")
    parser.add_argument("-n", "--count", type=count, metavar="N", help="end after N queries")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="end after so many seconds")
    parser.add_argument(
        "--jsonl", "--json", dest="json", action="store_true", help="print queries as JSON lines"
    )
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Answer, until told to end. Exit code 124: there were fewer than ``--count``."""
    if args.file is not None and not Path(args.file).is_file():
        say(args, f"--file {args.file}: no such file")
        return USAGE
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    output, done = Output(), 0
    room = asyncio.Semaphore(_AT_ONCE)

    async def answer(query: aio.Query) -> None:
        try:
            async with query, room:
                await _answer(args, query)
        except ZError as e:
            # One query must not end the command: the others are still answered.
            say(args, f"{query.selector}: {e}")

    async with (
        session_of(args) as session,
        session.declare_queryable(args.key, complete=args.complete) as queries,
    ):
        note(args, f"answering for {args.key}")
        try:
            async with asyncio.timeout(args.timeout), asyncio.TaskGroup() as answers:
                async for query in queries:
                    answers.create_task(answer(query))
                    await output.write(_line(query, as_json=args.json))
                    done += 1
                    if done == args.count:
                        break
        except TimeoutError:
            pass
    note(args, f"{done:,} {'query' if done == 1 else 'queries'}")
    return OUT_OF_TIME if args.count is not None and done < args.count else OK


async def _answer(args: argparse.Namespace, query: aio.Query) -> None:
    if args.error is not None:
        await query.reply_err(args.error, encoding=args.encoding)
        return
    payload = b"" if query.payload is None else query.payload.to_bytes()
    encoding = args.encoding
    if args.payload is not None:
        value = args.payload.encode()
    elif args.file is not None:
        try:
            value = await asyncio.to_thread(Path(args.file).read_bytes)
        except OSError as e:
            await query.reply_err(f"{args.file}: {e.strerror}")
            return
    elif args.exec is not None:
        value, failure = await _executed(args.exec, query, payload)
        if failure:
            await query.reply_err(failure, encoding="text/plain")
            return
    else:
        value = payload
        encoding = encoding or (None if query.encoding is None else str(query.encoding))
    # Of two wild expressions there is no one key to answer on, so that is said.
    key = next((one for one in (str(query.key_expr), args.key) if "*" not in one), None)
    if key is None:
        await query.reply_err(f"{args.key} has no one key to answer {query.key_expr} on")
        return
    await query.reply(key, value, encoding=encoding, attachment=args.attachment)


async def _executed(command: str, query: aio.Query, payload: bytes) -> tuple[bytes, bytes]:
    """Stdout of the command for this query, or what to answer as an error; the other is empty."""
    told = {
        "ZENWIRE_KEY": str(query.key_expr),
        "ZENWIRE_PARAMETERS": str(query.parameters),
        "ZENWIRE_SELECTOR": str(query.selector),
    }
    try:
        code, out, said = await run_program(command, told, payload)
    except NotStartedError as e:
        return b"", str(e).encode()
    return (b"", said.strip() or f"exit code {code}".encode()) if code else (out, b"")


def _line(query: aio.Query, *, as_json: bool) -> str:
    raw = None if query.payload is None else query.payload.to_bytes()
    encoding = "" if query.encoding is None else str(query.encoding)
    text = None if raw is None else text_of(raw, encoding)
    if not as_json:
        return f"{escape(str(query.selector))}{'' if text is None else f' {escape(text)}'}\n"
    told: dict[str, Any] = {"key": str(query.key_expr), "parameters": str(query.parameters)}
    told |= {"payload": text, "encoding": encoding or None}
    if query.attachment is not None:
        told["attachment"] = text_of(query.attachment.to_bytes(), "")
    return json_text(told) + "\n"
