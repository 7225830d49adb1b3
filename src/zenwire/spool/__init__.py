"""An append-only log of samples in segments of Arrow record batches: offsets that stay.

    with Writer.open("spools/fleet") as writer:
        writer.append(samples)          # a record batch of zenwire.columns.samples.SAMPLES

    spool = Spool.open("spools/fleet")
    for rows in spool.samples.read(0, spool.samples.latest()):
        rows.first, rows.batch

One writes, many read. What could not be kept is in ``spool.losses``. Needs the extra ``fast``.
"""

from zenwire.spool.errors import OffsetGone, SpoolDamaged, SpoolError, SpoolFailed, SpoolLocked
from zenwire.spool.losses import LOSSES
from zenwire.spool.reader import LogReader, Rows, Spool
from zenwire.spool.settings import Retention, Settings
from zenwire.spool.sources import Numbers
from zenwire.spool.writer import Counts, Writer

__all__ = [
    "LOSSES",
    "Counts",
    "LogReader",
    "Numbers",
    "OffsetGone",
    "Retention",
    "Rows",
    "Settings",
    "Spool",
    "SpoolDamaged",
    "SpoolError",
    "SpoolFailed",
    "SpoolLocked",
    "Writer",
]
