"""What eclipse-zenoh has in ``zenoh.ext``.

Serialization, and publishers and subscribers with history, recovery and detection:

    publisher = ext.declare_advanced_publisher(
        session, "robot/pose", cache=ext.CacheConfig(10),
        sample_miss_detection=ext.MissDetectionConfig(heartbeat=1), publisher_detection=True,
    )
    subscriber = ext.declare_advanced_subscriber(
        session, "robot/*", history=ext.HistoryConfig(detect_late_publishers=True),
        recovery=ext.RecoveryConfig(heartbeat=True),
    )

``zenwire.aio.ext`` has the same for sessions of asyncio.
"""

from zenwire.api.ext import (
    CacheConfig,
    Float32,
    Float64,
    HistoryConfig,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Miss,
    MissDetectionConfig,
    RecoveryConfig,
    RepliesConfig,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
    ZDeserializeError,
    z_deserialize,
    z_serialize,
)
from zenwire.sync.ext import (
    AdvancedPublisher,
    AdvancedSubscriber,
    SampleMissListener,
    declare_advanced_publisher,
    declare_advanced_subscriber,
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
