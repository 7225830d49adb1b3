"""What becomes of the sockets of a program of asyncio in a forked child: nothing."""

from __future__ import annotations

import subprocess
import sys

from tests.ports import free_port
from tests.unit.api.nodes import TIMEOUT

PROGRAM = """
import asyncio, os, sys, warnings
from zenwire import aio
warnings.simplefilter("ignore", DeprecationWarning)
kind, place = sys.argv[1:]
where = {"endpoints": [f"{kind}/{place}"]}
nobody = {"endpoints": []}
scouting = {"multicast": {"enabled": False}}
listens = {"scouting": scouting, "listen": where, "connect": nobody}
connects = {"scouting": scouting, "listen": nobody, "connect": where}


async def both(session, other):
    async with asyncio.timeout(30):
        while not (session.info.transports() and other.info.transports()):
            await asyncio.sleep(0.01)


async def main():
    session = await aio.open(listens)
    other = await aio.open(connects)
    await both(session, other)
    held, ended = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ended)
        # Whatever it still has of its parent: nobody hears of it, and nothing is read.
        for one in (session, other):
            try:
                await one.put("a", "from the child")
            except aio.ForkedSession:
                continue
            os._exit(9)
        os.read(held, 1)
        os._exit(0)
    async with session.declare_subscriber("a") as subscriber:
        publisher = await other.declare_publisher("a")
        while not publisher.matching_status.matching:
            await asyncio.sleep(0.01)
        await publisher.put("from the parent")
        assert (await subscriber.recv()).payload == "from the parent"
    # The child lives, but has nothing of it: the other side learns of the end at once.
    await session.close()
    async with asyncio.timeout(30):
        while other.info.transports():
            await asyncio.sleep(0.01)
    await other.close()
    async with aio.open(listens) as again, aio.open(connects) as once_more:
        await both(again, once_more)
    os.close(ended)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    print("done")


asyncio.run(main())
"""


def _ends(kind: str, place: str) -> None:
    found = subprocess.run(  # our own program
        [sys.executable, "-c", PROGRAM, kind, place],
        capture_output=True,
        text=True,
        timeout=TIMEOUT * 2,
        check=False,
    )
    assert (found.stdout, found.stderr) == ("done\n", "")


def test_a_forked_child_keeps_no_stream() -> None:
    _ends("tcp", f"127.0.0.1:{free_port()}")


def test_a_forked_child_keeps_no_datagrams() -> None:
    _ends("udp", f"127.0.0.1:{free_port()}")
