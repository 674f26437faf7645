"""Stamps: unique in an account, ascending along a stripe, and in the order of their bases."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.ledger.children import STRIPES
from app.ledger.money import INT64_MAX
from app.ledger.stamps import first_unsettled, stamp_of, stamp_on_stripe

HIGHEST_BASE = 2**39 - 2

bases = st.integers(2, HIGHEST_BASE)
numbers = st.integers(0, 2**16 - 1)
stripes = st.integers(0, STRIPES.stop - 2)


@given(bases, numbers, stripes)
def test_stamps_of_a_base_lie_between_those_of_its_neighbours(
    base: int, number: int, stripe: int
) -> None:
    for stamp in (stamp_of(base, number), stamp_on_stripe(0, base, number, stripe)):
        assert first_unsettled(base - 1) <= stamp < first_unsettled(base) <= INT64_MAX


@given(bases)
def test_the_entries_of_a_transaction_on_a_derived_account_ascend(base: int) -> None:
    assert all(a < b for a, b in pairwise(stamp_of(base, number) for number in range(300)))


@given(st.lists(st.tuples(bases, numbers, stripes), min_size=1, max_size=50))
def test_stamps_ascend_along_a_stripe_and_never_meet_those_of_another(
    taken: list[tuple[int, int, int]],
) -> None:
    """Whatever the order in which those who took a base get the lock."""
    last: dict[int, int] = {}
    given_out: list[int] = []
    for base, number, stripe in taken:
        stamp = stamp_on_stripe(last.get(stripe, 0), base, number, stripe)
        assert stamp > last.get(stripe, 0)
        assert stamp >= stamp_on_stripe(0, base, number, stripe)
        last[stripe] = stamp
        given_out.append(stamp)
    assert len(set(given_out)) == len(given_out)
