from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from zenwire.transport.budget import ReassemblyBudget, Share
from zenwire.transport.framing import Framing, Unwrap
from zenwire.transport.inbox import Inbox, Lanes
from zenwire.transport.sequence import LANES
from zenwire.transport.settings import LinkFacts, Settings
from zenwire.transport.stats import Cause, Stats
from zenwire.wire.values import Priority, Resolution, ZenohId


class Message:
    """An unfinished message that only counts."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.held = 0
        self.causes: list[Cause] = []
        share.begin(self)

    def grow(self, size: int) -> bool:
        if not self.share.reserve(self, size):
            return False
        self.held += size
        return True

    def end(self) -> None:
        self.share.end(self)
        self.held = 0

    def evict(self, cause: Cause) -> None:
        self.end()
        self.causes.append(cause)


EVICTED = [Cause.FRAGMENT_EVICTED]


def test_one_session_may_use_all_of_it() -> None:
    budget = ReassemblyBudget(100)
    one = Message(budget.share(1_000))
    assert one.grow(60)
    assert one.grow(40)
    assert (budget.held, budget.left, budget.unfinished) == (100, 0, 1)
    assert not one.grow(1)
    assert one.causes == EVICTED
    assert (budget.held, budget.unfinished) == (0, 0)


def test_the_session_that_holds_most_gives_way() -> None:
    budget = ReassemblyBudget(100)
    greedy, modest = budget.share(1_000), budget.share(1_000)
    large, small, other = Message(greedy), Message(greedy), Message(modest)
    assert large.grow(60)
    assert small.grow(20)
    assert other.grow(20)
    assert other.grow(10)
    assert (large.causes, small.causes, other.causes) == (EVICTED, [], [])
    assert (greedy.held, modest.held, budget.left) == (20, 30, 50)


def test_a_session_that_would_hold_most_gives_way_itself() -> None:
    budget = ReassemblyBudget(100)
    mine, others = Message(budget.share(1_000)), Message(budget.share(1_000))
    assert others.grow(50)
    assert mine.grow(40)
    assert not mine.grow(20)
    assert (mine.causes, others.causes) == (EVICTED, [])


def test_bytes_that_stand_still_weigh_more() -> None:
    budget = ReassemblyBudget(100)
    idle, busy = Message(budget.share(1_000)), Message(budget.share(1_000))
    assert idle.grow(30)
    assert busy.grow(40)
    for second in range(4):
        assert busy.grow(1)
        budget.sweep(float(second))
    assert busy.grow(30)
    assert (idle.causes, busy.causes) == (EVICTED, [])


def test_what_makes_no_progress_expires() -> None:
    budget = ReassemblyBudget(100)
    share = budget.share(1_000, 10.0)
    idle, busy = Message(share), Message(share)
    idle.grow(5)
    for second in range(11):
        assert busy.grow(1)
        assert idle.causes == []
        budget.sweep(100.0 + second)
    assert idle.causes == [Cause.FRAGMENT_EXPIRED]
    assert busy.causes == []
    assert budget.held == 11
    # Another message in its place begins anew, also with the size of the first.
    share.begin(idle)
    idle.grow(5)
    budget.sweep(111.0)
    budget.sweep(120.0)
    assert idle.causes == [Cause.FRAGMENT_EXPIRED]
    budget.sweep(121.0)
    assert len(idle.causes) == 2


def test_a_smaller_limit_holds_for_what_comes() -> None:
    budget = ReassemblyBudget(100)
    one = Message(budget.share(1_000))
    assert one.grow(80)
    budget.resize(50)
    assert (budget.held, budget.left, one.causes) == (80, -30, [])
    assert not one.grow(1)
    assert (budget.held, budget.left) == (0, 50)


def test_the_default_is_enough_for_the_largest_message() -> None:
    zid = ZenohId(b"z")
    assert Settings(zid=zid).reassembly_limit == 2**30
    assert Settings(zid=zid, max_message_size=1_000).reassembly_limit == 2**28
    assert Settings(zid=zid, max_reassembly=7).reassembly_limit == 7


# Low latency.


def low_latency(budget: ReassemblyBudget) -> tuple[Unwrap, Stats]:
    framing = Framing(LinkFacts())
    framing.agree(65_535, compression=False, lowlatency=True)
    unwrap, stats = Unwrap(framing), Stats()
    unwrap.charge(budget.share(2**30), stats)
    return unwrap, stats


def message(size: int) -> bytes:
    return size.to_bytes(4, "little") + bytes(size)


def test_a_long_low_latency_message_is_charged_until_it_is_whole() -> None:
    budget = ReassemblyBudget(1_000_000)
    unwrap, stats = low_latency(budget)
    data = message(200_000)
    assert list(unwrap.feed(data[:50_000])) == []
    assert budget.held == 0
    assert list(unwrap.feed(data[50_000:150_000])) == []
    assert budget.held == 150_000
    assert [len(one) for one in unwrap.feed(data[150_000:] + message(3))] == [200_000, 3]
    assert (budget.held, budget.unfinished, stats.dropped) == (0, 0, {})


def test_the_rest_of_an_evicted_low_latency_message_is_discarded() -> None:
    budget = ReassemblyBudget(100_000)
    unwrap, stats = low_latency(budget)
    data = message(300_000)
    for start in range(0, 300_000, 60_000):
        assert list(unwrap.feed(data[start : start + 60_000])) == []
        assert budget.held <= 100_000
    assert list(unwrap.feed(data[300_000:] + message(3))) == [bytes(3)]
    assert stats.dropped == {Cause.FRAGMENT_EVICTED: 1}
    assert budget.unfinished == 0


def test_a_link_that_ends_releases_its_low_latency_message() -> None:
    budget = ReassemblyBudget(1_000_000)
    unwrap, stats = low_latency(budget)
    assert list(unwrap.feed(message(200_000)[:150_000])) == []
    unwrap.release()
    assert (budget.held, budget.unfinished) == (0, 0)
    assert stats.dropped == {Cause.FRAGMENT_INTERRUPTED: 1}


# Whatever happens.


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from([Priority.DATA, Priority.REAL_TIME]),
            st.integers(0, 60),
            st.sampled_from(["more", "first", "last", "drop", "frame", "gap", "sweep"]),
        ),
        max_size=60,
    )
)
def test_what_is_held_is_what_is_charged(
    steps: list[tuple[int, Priority, int, str]],
) -> None:
    budget = ReassemblyBudget(100)
    boxes = [
        Inbox(Lanes(Resolution(), [0] * LANES, True, 1, budget.share(80, 2.0)), Stats())
        for _ in range(3)
    ]
    sns = dict.fromkeys(itertools.product(range(3), Priority), -1)
    for now, (at, priority, size, how) in enumerate(steps):
        sns[at, priority] += 2 if how == "gap" else 1
        if how == "sweep":
            budget.sweep(float(now))
        elif how == "frame":
            boxes[at].frame(priority, True, sns[at, priority])
        else:
            boxes[at].fragment(
                priority,
                True,
                sns[at, priority],
                bytes(size),
                more=how != "last",
                first=how == "first",
                drop=how == "drop",
            )
        held = [[one.held for one in box.lanes.reassembly.values()] for box in boxes]
        shares = [box.lanes.reassembly[0]._share for box in boxes]
        assert budget.held == sum(map(sum, held)) <= budget.limit
        assert [share.held for share in shares] == list(map(sum, held))
    for box in boxes:
        box.lanes.release(box.stats)
    assert (budget.held, budget.unfinished) == (0, 0)
