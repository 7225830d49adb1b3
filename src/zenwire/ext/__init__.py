"""What eclipse-zenoh has in ``zenoh.ext``, for sessions of asyncio.

Serialization, and publishers and subscribers with history, recovery and detection:

    publisher = await ext.declare_advanced_publisher(
        session, "robot/pose", cache=ext.CacheConfig(10),
        sample_miss_detection=ext.MissDetectionConfig(heartbeat=1), publisher_detection=True,
    )
    subscriber = await ext.declare_advanced_subscriber(
        session, "robot/*", history=ext.HistoryConfig(detect_late_publishers=True),
        recovery=ext.RecoveryConfig(heartbeat=True),
    )
"""

from zenwire.ext.advanced_publisher import AdvancedPublisher, declare_advanced_publisher
from zenwire.ext.advanced_subscriber import AdvancedSubscriber, declare_advanced_subscriber
from zenwire.ext.cache import CacheConfig, RepliesConfig
from zenwire.ext.history import HistoryConfig
from zenwire.ext.misses import SampleMissListener
from zenwire.ext.reception import Miss
from zenwire.ext.recovery import MissDetectionConfig, RecoveryConfig
from zenwire.ext.serialization import (
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
    ZDeserializeError,
    z_deserialize,
    z_serialize,
)

__all__ = [
    "AdvancedPublisher",
    "AdvancedSubscriber",
    "CacheConfig",
    "Float32",
    "Float64",
    "HistoryConfig",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "Miss",
    "MissDetectionConfig",
    "RecoveryConfig",
    "RepliesConfig",
    "SampleMissListener",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "ZDeserializeError",
    "declare_advanced_publisher",
    "declare_advanced_subscriber",
    "z_deserialize",
    "z_serialize",
]
