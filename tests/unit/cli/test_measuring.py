"""Rates, bandwidths and delays of windows with known samples."""

from __future__ import annotations

import pytest

from zenwire.cli import bw, delay, hz
from zenwire.cli.measuring import Measured, Window
from zenwire.cli.ping import summary


def window(*samples: tuple[float, int, float | None], size: int = 100) -> Window:
    made = Window(size)
    for at, length, age in samples:
        made.add(Measured(at, length, age))
    return made


def test_hz() -> None:
    told = hz.tell(window((0.0, 1, None), (1.0, 1, None), (3.0, 1, None)))
    assert told is not None
    assert told["rate_hz"] == pytest.approx(2 / 3)
    assert (told["min_s"], told["max_s"], told["window"]) == (1.0, 2.0, 3)
    assert told["std_dev_s"] == pytest.approx(0.5)


def test_the_window_forgets() -> None:
    samples = [(float(at), 1, None) for at in (0, 100, 101, 102)]
    told = hz.tell(window(*samples, size=3))
    assert told is not None
    assert (told["rate_hz"], told["window"]) == (1.0, 3)


@pytest.mark.parametrize("tell", [hz.tell, bw.tell])
def test_one_sample_is_too_few(tell: object) -> None:
    assert callable(tell)
    assert tell(window((0.0, 1, None))) is None
    assert tell(window((0.0, 1, None), (0.0, 1, None))) is None


def test_bw() -> None:
    told = bw.tell(window((0.0, 1_000, None), (1.0, 10, None), (2.0, 30, None)))
    assert told is not None
    assert told["bytes_per_s"] == 20.0
    assert (told["min_bytes"], told["max_bytes"], told["window"]) == (10, 1_000, 3)


def test_delay() -> None:
    told = delay.tell(window((0.0, 1, 0.5), (1.0, 1, None), (2.0, 1, -0.5)))
    assert told == {"mean_s": 0.0, "min_s": -0.5, "max_s": 0.5, "std_dev_s": 0.5, "window": 2}
    assert delay.tell(window((0.0, 1, None))) is None


def test_round_trips() -> None:
    told = summary([at / 1e6 for at in range(1, 101)], 102, 64)
    assert (told["sent"], told["lost"]) == (102, 2)
    assert (told["rtt_min_us"], told["rtt_p50_us"], told["rtt_p99_us"], told["rtt_max_us"]) == (
        1.0,
        51.0,
        100.0,
        100.0,
    )
