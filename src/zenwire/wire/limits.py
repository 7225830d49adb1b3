"""Named limits of declared lengths and counts.

A length is compared with its limit and with the bytes that remain before anything is
sliced; nothing is ever allocated by a declared length. The protocol's own bounds come
first; the others are ours, each far above what any node sends.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "COOKIE_MAX",
    "EXTENSIONS_MAX",
    "EXTENSION_BODY_MAX",
    "KEY_SUFFIX_MAX",
    "LINKSTATES_MAX",
    "LINKS_MAX",
    "LOCATORS_MAX",
    "LOCATOR_MAX",
    "PARAMETERS_MAX",
    "PAYLOAD_MAX",
    "REGION_NAME_MAX",
    "SCHEMA_MAX",
    "TIMESTAMP_STACK_MAX",
    "ZID_MAX",
]

# The protocol's.
ZID_MAX: Final = 16
LOCATOR_MAX: Final = 255
SCHEMA_MAX: Final = 255
KEY_SUFFIX_MAX: Final = 65_535
COOKIE_MAX: Final = 65_535
TIMESTAMP_STACK_MAX: Final = 255
REGION_NAME_MAX: Final = 32
PAYLOAD_MAX: Final = 2**32 - 1
EXTENSION_BODY_MAX: Final = 2**32 - 1

# Ours.
PARAMETERS_MAX: Final = 2**24
"""The reference bounds query parameters only by the message; 16 MiB of them is no query."""
EXTENSIONS_MAX: Final = 128
"""A chain has at most 96 different headers (16 ids, 3 encodings, M); repeats have no meaning."""
LOCATORS_MAX: Final = 4_096
LINKSTATES_MAX: Final = 65_536
LINKS_MAX: Final = 65_536
