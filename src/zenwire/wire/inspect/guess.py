"""What bytes most likely are, where nobody says."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from zenwire.errors import DecodeError
from zenwire.wire.batch import LOW_LATENCY_PREFIX, STREAM_PREFIX
from zenwire.wire.inspect.dissect import Form, dissect
from zenwire.wire.objects import decode, encode

__all__ = ["Guess", "guess"]


@dataclass(frozen=True, slots=True)
class Guess:
    """What bytes were taken for, and why. ``others`` fit as well."""

    form: Form
    why: str
    others: tuple[Form, ...] = ()


# What comes first wins where several fit. The last ones fit too much to be taken unasked.
_UNASKED = (
    Form.STREAM,
    Form.LOWLATENCY,
    Form.COMPRESSED_STREAM,
    Form.BATCH,
    Form.SCOUTING,
    Form.NETWORK,
    Form.COMPRESSED,
)
_PREFIXES = {
    Form.STREAM: STREAM_PREFIX,
    Form.COMPRESSED_STREAM: STREAM_PREFIX,
    Form.LOWLATENCY: LOW_LATENCY_PREFIX,
}
_PROBED = 50
"""Batches of a stream that are looked at for a guess."""


def guess(data: bytes) -> Guess:
    """What the bytes most likely are: what decodes completely, or else what gets furthest."""
    reached = {form: _reach(data, form) for form in Form}
    fit = tuple(form for form in Form if reached[form] == len(data))
    taken = [form for form in _UNASKED if form in fit]
    if taken:
        return Guess(taken[0], "all of it decodes as such", tuple(taken[1:]))
    furthest = max(_UNASKED, key=reached.__getitem__)
    why = "nothing decodes completely, and this gets furthest"
    return Guess(furthest, why, fit)


def _reach(data: bytes, form: Form) -> int:
    """How many bytes decode before the first fault, in the first batches."""
    if form is Form.SCOUTING and not _canonical(data):
        return 0
    if len(data) < _PREFIXES.get(form, 0):
        return 0
    reached = framing = 0
    for section in islice(dissect(data, form), _PROBED):
        for entry in section.entries:
            if entry.fault is not None:
                at = reached if section.derived else min(entry.fault.offset, len(data) - 1)
                return max(at - framing, 0)
            if not section.derived:
                reached = entry.end
                framing += entry.end - entry.start if entry.layer == "framing" else 0
    return len(data)


def _canonical(data: bytes) -> bool:
    """SCOUT and HELLO share ids with INIT and OPEN: only what we would write ourselves counts."""
    try:
        return encode(decode(data, "scouting")) == data
    except DecodeError:
        return False
