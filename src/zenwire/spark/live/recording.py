"""The recorder beside a query: a process of its own, that lives as long as who started it.

``python -m zenwire.spark.live.recording``: a line of JSON on stdin says what to record (`Order`),
the end of stdin ends it; the system closes that pipe whichever way the other process ends, so
nothing stays behind. Lines of JSON on stdout say how far it is: ``recording``, ``filled``, and
``failed`` with the reason, which is the last one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from typing import Final

from zenwire import aio
from zenwire.errors import ZError
from zenwire.node.plane import load
from zenwire.record import Recorder
from zenwire.spark.live.order import FAILED, FILLED, RECORDING, Order
from zenwire.spool import Retention, Settings, SpoolLocked, Writer

__all__ = ["main"]

_PROGRAM: Final = "the recorder of a Spark query"
_POLL: Final = 0.1
_SHARED: Final = (
    "; each query has a recorder of its own: give this one another spool or sourceId, or read "
    "that spool without connect"
)


def main() -> None:
    """Record until stdin ends, or SIGTERM comes; both end it with everything written."""
    # A terminal sends Ctrl-C to everybody; whoever started this decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.WARNING, format="zenwire recorder: %(message)s")
    try:
        asyncio.run(_until_over(Order.of_line(sys.stdin.buffer.readline())))
    except SpoolLocked as e:
        _tell(FAILED, f"{e}{_SHARED}")
        sys.exit(1)
    except ZError as e:
        _tell(FAILED, str(e))
        sys.exit(1)
    except Exception as e:
        _tell(FAILED, repr(e))
        raise


def _tell(state: str, reason: str = "") -> None:
    """A line; whoever read them may be gone."""
    line = json.dumps({"state": state, "reason": reason})
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), line.encode() + b"\n")


async def _until_over(order: Order) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    threading.Thread(target=_wait_for_end, args=(loop, over), daemon=True).start()
    work = asyncio.create_task(_record(order))
    told = asyncio.create_task(over.wait())
    await asyncio.wait([work, told], return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not work.done():
        # Whatever it waits for: to connect, for the spool, or for more.
        work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work


async def _record(order: Order) -> None:
    # Not while a session waits for keep-alives: where nothing is compiled yet, it takes long.
    await asyncio.to_thread(load)
    writer = await _opened(order)
    try:
        async with aio.open(aio.Config.from_json5(order.config)) as session:
            recorder = Recorder(
                session,
                writer,
                order.include,
                exclude=order.exclude,
                liveliness=order.liveliness,
                spool=order.spool,
                history=order.history,
            )
            async with recorder:
                _tell(RECORDING)
                filled = asyncio.create_task(_filled(recorder, writer))
                try:
                    await recorder.over.wait()
                finally:
                    filled.cancel()
        assert recorder.failed is not None
        raise recorder.failed
    finally:
        # Also when it is told to end: everything that came is written.
        await asyncio.shield(asyncio.to_thread(writer.close))


def _wait_for_end(loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
    """In a thread: nothing but the end comes."""
    with contextlib.suppress(OSError):
        # Not through Python's buffer, whose lock must be free when the process ends.
        while os.read(sys.stdin.fileno(), 4096):
            pass
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(over.set)


async def _opened(order: Order) -> Writer:
    """The spool, as soon as who had it has let go. Raises SpoolError, SpoolLocked in the end."""
    retention = Retention(order.keep_age, order.keep_bytes)
    settings = Settings(overflow=order.overflow, retention=retention)
    until = time.monotonic() + order.patience
    while True:
        try:
            return Writer.open(order.spool, settings, name=order.name, program=_PROGRAM)
        except SpoolLocked:
            if time.monotonic() > until:
                raise
        await asyncio.sleep(_POLL)


async def _filled(recorder: Recorder, writer: Writer) -> None:
    await recorder.filled.wait()
    await asyncio.to_thread(writer.flush)
    _tell(FILLED)


if __name__ == "__main__":
    main()
