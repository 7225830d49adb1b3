"""Spark looks for packages of this name, and registers ``format("zenoh")`` by itself."""

from zenwire.spark.live.source import ZenohSource as DefaultSource

__all__ = ["DefaultSource"]
