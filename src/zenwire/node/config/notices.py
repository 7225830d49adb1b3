"""Notices: settings of the reference that have no effect in this node, and why.

A key is listed here or has an effect; `tests/interop/test_config_effects.py` checks every leaf of
the reference's default configuration.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from zenwire.node.config.tree import GatewayPreset, Settings

__all__ = ["notices_of"]

_PLUGINS: Final = "zenwire cannot load plugins"
_DERIVED: Final = "the public key is derived from the private key"
_OLD: Final = "of older versions, has no effect"

_WITHOUT_EFFECT: Final = {
    "adminspace/permissions/write": "the configuration of a running node cannot be changed",
    "routing/peer": _OLD,
    "routing/router/peers_failover_brokering": _OLD,
    "plugins_loading/enabled": _PLUGINS,
    "plugins_loading/search_dirs": _PLUGINS,
    "transport/link/tx/threads": "zenwire sends from one thread",
    "transport/link/tx/queue/allocation/mode": "batches are allocated when they are needed",
    "transport/link/unixpipe/file_access_mask": "zenwire has no unixpipe links",
    "transport/auth/pubkey/public_key_pem": _DERIVED,
    "transport/auth/pubkey/public_key_file": _DERIVED,
    "transport/auth/pubkey/key_size": "zenwire generates no keys",
}
"""Reason by path. A notice is given for a value that differs from the default."""

_VALUES: Final = {path: attrgetter(path.replace("/", ".")) for path in _WITHOUT_EFFECT}
_DEFAULT: Final = Settings()
_MEMORY: Final = "transport/shared_memory"


def notices_of(settings: Settings, written: Iterable[str] = ()) -> list[str]:
    """Return a sentence for each setting without effect: ``path: reason``.

    ``written`` has the paths that the configuration sets. Shared memory is enabled by default in
    the reference, so it gets a notice where it is asked for, not where it is left alone.
    """
    found = [f"plugins/{name}: {_PLUGINS}" for name in settings.plugins]
    for path, reason in _WITHOUT_EFFECT.items():
        value = _VALUES[path]
        if value(settings) != value(_DEFAULT):
            found.append(f"{path}: {reason}")
    if settings.gateway.south not in {None, GatewayPreset.AUTO}:
        reason = "zenwire has the regions of the preset 'auto' only"
        found.append(f"gateway/south: {reason}")
    memory = settings.transport.shared_memory
    asked = memory != _DEFAULT.transport.shared_memory or any(
        path.startswith(_MEMORY) for path in written
    )
    if memory.enabled and asked:
        found.append(f"{_MEMORY}: zenwire has no shared memory; data goes through the links")
    return found
