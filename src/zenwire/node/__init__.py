"""A running node: configuration, clock, links, transports and routing put together.

`open_node` makes one from a configuration; `scout` looks for others without one.
"""

from zenwire.node.connecting import NotConnected
from zenwire.node.node import Node
from zenwire.node.opening import open_node
from zenwire.node.scouting import scout
from zenwire.node.stats import NodeStats

__all__ = ["Node", "NodeStats", "NotConnected", "open_node", "scout"]
