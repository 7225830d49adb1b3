"""zenwire: a Zenoh 1.x node in Python, and a pipeline from Zenoh traffic to tables and back.

The layers are packages, and imports go down only; docs/architecture.md has the map.
"""

__all__ = ["__version__"]

__version__ = "0.1.0.dev0"
