"""Spark looks for packages of this name, and registers ``format("zenoh.capture")`` by itself."""

from zenwire.spark.source import CaptureSource as DefaultSource

__all__ = ["DefaultSource"]
