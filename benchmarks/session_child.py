"""One process of the session benchmark: ``python -m benchmarks.session_child SIDE ROLE MODE ...``.

It says ``ready`` when it is, then does what it reads from standard input, a line for each turn,
and answers with a line of JSON. It ends when standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

PAYLOAD = bytes(64)
PING, PONG, QUERY = "bench/ping", "bench/pong", "bench/query"
TIMEOUT = 60.0
"""Seconds after which something is wrong."""

TOLD = 0.2
"""Seconds in which a new subscriber is told to everyone."""

Turn = Callable[[int], list[float]]
"""The seconds of each of so many round trips."""
AsyncTurn = Callable[[int], Awaitable[list[float]]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.session_child")
    parser.add_argument("side", choices=("ours", "theirs"))
    parser.add_argument("role", choices=("ask", "answer", "open", "router"))
    parser.add_argument("mode", choices=("peer", "client", "router"))
    parser.add_argument("--listen", type=int)
    parser.add_argument("--connect", type=int)
    args = parser.parse_args()
    if args.side == "theirs":
        _Theirs(args.mode, args.listen, args.connect).run(args.role)
    else:
        asyncio.run(_Ours(args.mode, args.listen, args.connect).run(args.role))


def _settings(mode: str, listen: int | None, connect: int | None) -> dict[str, Any]:
    """The same for both sides: nobody is found but whom it names."""
    return {
        "mode": mode,
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "listen": {"endpoints": [] if listen is None else [f"tcp/127.0.0.1:{listen}"]},
        "connect": {"endpoints": [] if connect is None else [f"tcp/127.0.0.1:{connect}"]},
    }


def _say(what: object) -> None:
    print(json.dumps(what), flush=True)


def _resident() -> int:
    """The memory of this process that is in use, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class _Theirs:
    """eclipse-zenoh, with threads, as its examples do it."""

    def __init__(self, mode: str, listen: int | None, connect: int | None) -> None:
        # Each side has a process without the other one.
        self._zenoh = import_module("zenoh")
        self._settings = json.dumps(_settings(mode, listen, connect))

    def run(self, role: str) -> None:
        if role == "open":
            self._serve({"open": self._open, "memory": self._memory})
            return
        with self._session() as session:
            if role == "ask":
                self._ask(session)
                return
            kept = self._answer(session) if role == "answer" else None
            _say("ready")
            sys.stdin.read()
            del kept

    def _session(self) -> Any:  # Any: its stubs are not complete
        return self._zenoh.open(self._zenoh.Config.from_json5(self._settings))

    def _how(self) -> dict[str, Any]:
        return {"express": True, "congestion_control": self._zenoh.CongestionControl.BLOCK}

    def _answer(self, session: Any) -> list[Any]:
        """What answers for as long as somebody holds it."""
        publisher = session.declare_publisher(PONG, **self._how())

        def pong(sample: Any) -> None:
            publisher.put(sample.payload)

        def reply(query: Any) -> None:
            query.reply(QUERY, PAYLOAD)
            query.drop()

        return [session.declare_subscriber(PING, pong), session.declare_queryable(QUERY, reply)]

    def _ask(self, session: Any) -> None:
        publisher = session.declare_publisher(PING, **self._how())
        querier = session.declare_querier(QUERY)
        _wait_for(lambda: publisher.matching_status.matching and querier.matching_status.matching)

        def callback(count: int) -> list[float]:
            pings = _Pings(publisher.put, count)
            subscriber = session.declare_subscriber(PONG, pings.pong)
            time.sleep(TOLD)
            try:
                return pings.run()
            finally:
                subscriber.undeclare()

        def recv(count: int) -> list[float]:
            taken: list[float] = []
            pongs = session.declare_subscriber(PONG)
            time.sleep(TOLD)
            for _ in range(count + 1):
                start = time.perf_counter()
                publisher.put(PAYLOAD)
                pongs.recv()
                taken.append(time.perf_counter() - start)
            pongs.undeclare()
            return taken[1:]

        def asked(get: Callable[[], Any]) -> Turn:
            def turn(count: int) -> list[float]:
                taken: list[float] = []
                for _ in range(count):
                    start = time.perf_counter()
                    replies = list(get())
                    taken.append(time.perf_counter() - start)
                    assert len(replies) == 1
                return taken

            return turn

        self._serve(
            {
                "callback": callback,
                "recv": recv,
                "get": asked(lambda: session.get(QUERY)),
                "querier": asked(querier.get),
            }
        )

    def _open(self, count: int) -> list[float]:
        taken: list[float] = []
        for _ in range(count):
            start = time.perf_counter()
            session = self._session()
            while not session.info.routers_zid():
                time.sleep(0.0001)
            taken.append(time.perf_counter() - start)
            session.close()
        return taken

    def _memory(self, count: int) -> list[float]:
        first = self._session()
        before = _resident()
        sessions = [self._session() for _ in range(count)]
        grown = _resident() - before
        for session in (first, *sessions):
            session.close()
        return [grown / count]

    def _serve(self, turns: dict[str, Turn]) -> None:
        _say("ready")
        for line in sys.stdin:
            what, count = line.split()
            _say(turns[what](int(count)))


def _wait_for(true: Callable[[], bool]) -> None:
    stop = time.monotonic() + TIMEOUT
    while not true():
        if time.monotonic() > stop:
            raise TimeoutError("nobody is there")
        time.sleep(0.01)


class _Pings:
    """Pings whose callback sends the next one."""

    def __init__(self, put: Callable[[bytes], object], count: int) -> None:
        self._put = put
        self._count = count
        self._start = 0.0
        self._taken: list[float] = []
        self._done = threading.Event()

    def pong(self, _sample: object) -> None:
        self._taken.append(time.perf_counter() - self._start)
        if len(self._taken) > self._count:
            self._done.set()
            return
        self._start = time.perf_counter()
        self._put(PAYLOAD)

    def run(self) -> list[float]:
        self._start = time.perf_counter()
        self._put(PAYLOAD)
        if not self._done.wait(TIMEOUT):
            raise TimeoutError("a ping was lost")
        # The first one came from this thread.
        return self._taken[1:]


class _Ours:
    """zenwire.aio."""

    def __init__(self, mode: str, listen: int | None, connect: int | None) -> None:
        self._aio = aio = import_module("zenwire.aio")
        self._config = aio.Config.from_dict(_settings(mode, listen, connect))

    async def run(self, role: str) -> None:
        if role == "open":
            await self._serve({"open": self._open, "memory": self._memory})
            return
        async with self._aio.open(self._config) as session:
            if role == "ask":
                await self._ask(session)
            else:
                await self._answer(session)

    def _how(self) -> dict[str, Any]:
        return {"express": True, "congestion_control": self._aio.CongestionControl.BLOCK}

    async def _answer(self, session: Any) -> None:
        publisher = await session.declare_publisher(PONG, **self._how())

        async def pong(sample: Any) -> None:
            await publisher.put(sample.payload)

        async def reply(query: Any) -> None:
            with query:
                await query.reply(QUERY, PAYLOAD)

        async with (
            session.declare_subscriber(PING, pong),
            session.declare_queryable(QUERY, reply),
        ):
            await self._serve({})

    async def _ask(self, session: Any) -> None:
        publisher = await session.declare_publisher(PING, **self._how())
        querier = await session.declare_querier(QUERY)
        async with asyncio.timeout(TIMEOUT):
            # As the other side waits.
            while not (  # noqa: ASYNC110
                publisher.matching_status.matching and querier.matching_status.matching
            ):
                await asyncio.sleep(0.01)

        async def callback(count: int) -> list[float]:
            taken: list[float] = []
            start = 0.0
            done = asyncio.get_running_loop().create_future()

            async def pong(_sample: object) -> None:
                nonlocal start
                taken.append(time.perf_counter() - start)
                if len(taken) > count:
                    done.set_result(None)
                    return
                start = time.perf_counter()
                await publisher.put(PAYLOAD)

            async with session.declare_subscriber(PONG, pong), asyncio.timeout(TIMEOUT):
                await asyncio.sleep(TOLD)
                start = time.perf_counter()
                await publisher.put(PAYLOAD)
                await done
            return taken[1:]

        async def recv(count: int) -> list[float]:
            taken: list[float] = []
            async with session.declare_subscriber(PONG) as pongs, asyncio.timeout(TIMEOUT):
                await asyncio.sleep(TOLD)
                for _ in range(count + 1):
                    start = time.perf_counter()
                    await publisher.put(PAYLOAD)
                    await pongs.recv()
                    taken.append(time.perf_counter() - start)
            return taken[1:]

        def asked(get: Callable[[], Any]) -> AsyncTurn:
            async def turn(count: int) -> list[float]:
                taken: list[float] = []
                for _ in range(count):
                    start = time.perf_counter()
                    replies = [reply async for reply in get()]
                    taken.append(time.perf_counter() - start)
                    assert len(replies) == 1
                return taken

            return turn

        await self._serve(
            {
                "callback": callback,
                "recv": recv,
                "get": asked(lambda: session.get(QUERY)),
                "querier": asked(querier.get),
            }
        )

    async def _open(self, count: int) -> list[float]:
        taken: list[float] = []
        for _ in range(count):
            start = time.perf_counter()
            session = await self._aio.open(self._config)
            while not session.info.routers_zid():  # noqa: ASYNC110 - as the other side is asked
                await asyncio.sleep(0.0001)
            taken.append(time.perf_counter() - start)
            await session.close()
        return taken

    async def _memory(self, count: int) -> list[float]:
        first = await self._aio.open(self._config)
        before = _resident()
        sessions = [await self._aio.open(self._config) for _ in range(count)]
        grown = _resident() - before
        for session in (first, *sessions):
            await session.close()
        return [grown / count]

    async def _serve(self, turns: dict[str, AsyncTurn]) -> None:
        lines = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        _say("ready")
        while line := await lines.readline():
            what, count = line.split()
            _say(await turns[what.decode()](int(count)))


if __name__ == "__main__":
    main()
