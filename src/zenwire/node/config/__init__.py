"""Configuration with zenoh's own names, from JSON5, YAML or a dict.

`Config` is what programs read and change; ``config.settings`` is its frozen, typed tree;
`effective` says what holds in the mode of the node, with all defaults.
"""

from zenwire.node.config.config import Config
from zenwire.node.config.effective import Effective, RetryPolicy, effective
from zenwire.node.config.terms import EndPoints, ModeDependent, SocketAddress
from zenwire.node.config.tree import Settings

__all__ = [
    "Config",
    "Effective",
    "EndPoints",
    "ModeDependent",
    "RetryPolicy",
    "Settings",
    "SocketAddress",
    "effective",
]
