"""Zenoh traffic as Spark tables: the data source ``zenoh.capture``, tables, column functions.

batches = spark.read.format("zenoh.capture").load("captures/*.pcap*")
tables.samples(batches).where(ke_intersects("key", "fleet/**")).show()

``register(spark)`` is for sessions that do not find the formats by themselves.
"""

from zenwire.spark.formats import register
from zenwire.spark.functions import encoding_name, hlc_time, ke_includes, ke_intersects

__all__ = ["encoding_name", "hlc_time", "ke_includes", "ke_intersects", "register"]
