"""All filters of a node, as its configuration says."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from zenwire.errors import ConfigError
from zenwire.node.admin.keys import KeyStep, key_counts, key_problems
from zenwire.node.filters.access import Access
from zenwire.node.filters.downsampling import Rates
from zenwire.node.filters.gate import AccessStep, QosStep, RateStep, SizeStep
from zenwire.node.filters.low_pass import Sizes
from zenwire.node.filters.problems import problems
from zenwire.node.filters.qos import Overwriting

if TYPE_CHECKING:
    from zenwire.node.config import Settings
    from zenwire.node.config.interceptors import Flow
    from zenwire.node.filters.gate import Step
    from zenwire.node.filters.party import Party

__all__ = ["Filters"]

_log = logging.getLogger("zenwire.node")


class Filters:
    """Makes the filters of a session. Whoever has none of them needs none of this."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        control = settings.access_control
        self.access = Access(control) if control.enabled else None
        self.keys = key_counts(settings)
        """What goes over the keys that are counted apart."""

    @classmethod
    def of(cls, settings: Settings) -> Filters | None:
        """None if nothing is filtered. Raises ConfigError, with all that is wrong."""
        control = settings.access_control
        wanted = settings.downsampling or settings.qos.network or settings.low_pass_filter
        if not (wanted or control.enabled or settings.stats.filters):
            return None
        found = problems(settings) + key_problems(settings)
        if found:
            raise ConfigError(tuple(found))
        if control.enabled:
            for name in ("rules", "subjects", "policies"):
                if not getattr(control, name):
                    _log.warning("access_control/%s is empty: only the default holds", name)
        return cls(settings)

    def steps(self, party: Party, flow: Flow) -> list[Step]:
        """What a session's messages pass in one direction, in order. Mostly nothing."""
        settings, access = self._settings, self.access
        found: list[Step] = [
            RateStep(Rates(item))
            for item in settings.downsampling
            if Rates.concerns(item, party, flow)
        ]
        if access is not None and access.decides(flow):
            found.append(AccessStep(access, access.subjects(party), flow))
        found += [
            QosStep(Overwriting(item))
            for item in settings.qos.network
            if Overwriting.concerns(item, party, flow)
        ]
        sizes = Sizes(settings.low_pass_filter, party, flow)
        if sizes:
            found.append(SizeStep(sizes))
        if self.keys:
            found.append(KeyStep(self.keys, flow))
        return found
