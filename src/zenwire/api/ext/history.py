"""What an advanced subscriber asks for of the time before it was there."""

from __future__ import annotations

from dataclasses import dataclass

from zenwire.api.checks import check_kinds

__all__ = ["HistoryConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    """Ask publishers that have a cache for their last samples.

    ``detect_late_publishers``: also those that come later, if they can be detected.
    ``max_samples`` bounds the samples of each publisher, ``max_age`` their age in seconds.
    """

    detect_late_publishers: bool | None = None
    max_samples: int | None = None
    max_age: float | None = None

    def __post_init__(self) -> None:
        check_kinds(
            {"detect_late_publishers": bool, "max_samples": int},
            {
                "detect_late_publishers": self.detect_late_publishers,
                "max_samples": self.max_samples,
            },
        )
        if self.max_samples is not None and self.max_samples < 1:
            raise ValueError(f"max_samples is above zero, not {self.max_samples}")
        if self.max_age is not None and not self.max_age > 0:
            raise ValueError(f"max_age is above zero, not {self.max_age}")

    @property
    def parameters(self) -> str:
        """Of the query."""
        found = []
        if self.max_samples is not None:
            found.append(f"_max={self.max_samples}")
        if self.max_age is not None:
            found.append(f"_time=[now(-{_decimal(self.max_age)}s)..]")
        return ";".join(found)


def _decimal(seconds: float) -> str:
    """Without an exponent, which nobody reads there."""
    return f"{seconds:.9f}".rstrip("0").rstrip(".")
