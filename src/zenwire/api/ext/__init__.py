"""What eclipse-zenoh has in ``zenoh.ext``, for sessions of asyncio: ``zenwire.aio.ext``.

Serialization, and publishers and subscribers with history, recovery and detection:

    publisher = await aio.ext.declare_advanced_publisher(
        session, "robot/pose", cache=aio.ext.CacheConfig(10),
        sample_miss_detection=aio.ext.MissDetectionConfig(heartbeat=1), publisher_detection=True,
    )
    subscriber = await aio.ext.declare_advanced_subscriber(
        session, "robot/*", history=aio.ext.HistoryConfig(detect_late_publishers=True),
        recovery=aio.ext.RecoveryConfig(heartbeat=True),
    )
"""

from zenwire.api.ext.advanced_publisher import AdvancedPublisher, declare_advanced_publisher
from zenwire.api.ext.advanced_subscriber import AdvancedSubscriber, declare_advanced_subscriber
from zenwire.api.ext.cache import CacheConfig, RepliesConfig
from zenwire.api.ext.history import HistoryConfig
from zenwire.api.ext.misses import SampleMissListener
from zenwire.api.ext.order import Miss
from zenwire.api.ext.recovery import MissDetectionConfig, RecoveryConfig
from zenwire.api.ext.serialization import (
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
