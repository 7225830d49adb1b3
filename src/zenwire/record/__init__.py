"""Recording: key expressions of a session into a spool, with what was missed said or filled in.

    async with aio.open(config) as session:
        with Writer.open("spools/fleet") as writer:
            async with Recorder(session, writer, ["robot/**"]):
                await asyncio.sleep(3600)

Samples go from the columnar plane into the spool as record batches. What others still have of the
time when nobody listened (storages, advanced publishers) is asked for at the start and whenever a
connection comes back. Needs the extra ``fast``.
"""

from zenwire.record.chosen import Chosen, choose
from zenwire.record.recorder import Recorder, Status
from zenwire.record.sink import Sink

__all__ = ["Chosen", "Recorder", "Sink", "Status", "choose"]
