"""How queries get to the network: ``connect``, ``listen``, ``mode`` and any ``zenoh.<config/path>``.

The same for what records, asks and publishes. A configuration that cannot be used is refused where
the query is made, not in its tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

from zenwire.spark.live.said import CONFIG, parts, word

if TYPE_CHECKING:
    from zenwire.node.config import Config

__all__ = ["SESSION_OPTIONS", "SessionOptions"]

SESSION_OPTIONS: Final = ("connect", "listen", "mode")
_MODES: Final = {mode.upper(): mode for mode in ("client", "peer", "router")}


@dataclass(frozen=True)
class SessionOptions:
    """``config`` are paths of a configuration, and values as JSON5 or as plain text."""

    connect: tuple[str, ...] = ()
    listen: tuple[str, ...] = ()
    mode: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, said: Mapping[str, str]) -> SessionOptions:
        """Raises ValueError, with the nearest name for a path that there is not."""
        found = cls(
            parts(said.get("connect", "")),
            parts(said.get("listen", "")),
            word(said, "mode", _MODES, None),
            {
                name[len(CONFIG) :]: value
                for name, value in said.items()
                if name.lower().startswith(CONFIG)
            },
        )
        found.made()
        return found

    def __bool__(self) -> bool:
        return bool(self.connect or self.listen or self.mode or self.config)

    def made(self, *, patient: bool = False) -> Config:
        """The configuration: options have the last word. Raises ConfigError.

        A client, unless it listens alone. ``patient``: who is not there yet is waited for.
        """
        from zenwire.node.config import Config  # noqa: PLC0415 - slow to load, and not for spools

        config = Config()
        mode = self.mode or ("peer" if self.listen and not self.connect else "client")
        config.insert_json5("mode", json.dumps(mode))
        if self.connect:
            config.insert_json5("connect/endpoints", json.dumps(self.connect))
        if self.listen:
            config.insert_json5("listen/endpoints", json.dumps(self.listen))
        if patient:
            config.insert_json5("connect/exit_on_failure", "false")
        for path, value in self.config.items():
            config.insert_json5(path, value if _is_json(value) else json.dumps(value))
        # Also refuses what can be said, but not be done by this node.
        _ = config.effective
        return config

    def text(self, *, patient: bool = False) -> str:
        """The same as JSON, with its secrets, for a process that makes a session of it."""
        config = self.made(patient=patient)
        names = [section.name for section in fields(config.settings)]
        return json.dumps({name: json.loads(config.get_json(name)) for name in names})


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return text.lstrip().startswith(("{", "[", "'"))
    return True
