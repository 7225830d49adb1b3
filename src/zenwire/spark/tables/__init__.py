"""The tables of captured traffic: functions from ``batches`` to DataFrames.

    batches = spark.read.format("zenoh.capture").load("captures/*.pcap*")
    found = tables.messages(batches)
    tables.samples(batches)   # decodes only what it needs
    tables.samples(found)     # the same from a table that is already there

Most tables look at the batches more than once: persist them, or write them to Parquet first.

Nothing is computed before Spark is asked for rows, and nothing comes to the driver.
"""

from zenwire.spark.tables.accounts import accounts
from zenwire.spark.tables.declarations import declarations
from zenwire.spark.tables.losses import losses
from zenwire.spark.tables.messages import malformed, messages
from zenwire.spark.tables.place import spread
from zenwire.spark.tables.queries import queries, replies
from zenwire.spark.tables.samples import key_stats, latest, samples
from zenwire.spark.tables.sessions import sessions

__all__ = [
    "accounts",
    "declarations",
    "key_stats",
    "latest",
    "losses",
    "malformed",
    "messages",
    "queries",
    "replies",
    "samples",
    "sessions",
    "spread",
]
