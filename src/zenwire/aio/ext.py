"""Serialization, advanced publishers and advanced subscribers, for sessions of `zenwire.aio`.

Advanced ones have history, recovery and detection:

    publisher = await aio.ext.declare_advanced_publisher(
        session, "robot/pose", cache=aio.ext.CacheConfig(10),
        sample_miss_detection=aio.ext.MissDetectionConfig(heartbeat=1), publisher_detection=True,
    )
    subscriber = await aio.ext.declare_advanced_subscriber(
        session, "robot/*", history=aio.ext.HistoryConfig(detect_late_publishers=True),
        recovery=aio.ext.RecoveryConfig(heartbeat=True),
    )
"""

from zenwire.api.ext import (
    AdvancedPublisher,
    AdvancedSubscriber,
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
    SampleMissListener,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
    ZDeserializeError,
    declare_advanced_publisher,
    declare_advanced_subscriber,
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
