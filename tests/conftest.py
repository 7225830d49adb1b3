"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import settings

# No deadline per example: the first one may compile a kernel, and machines are shared.
settings.register_profile("zenwire", deadline=None, print_blob=True)
settings.load_profile("zenwire")
