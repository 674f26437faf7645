"""Splitting: the parts of an amount sum exactly to the whole, and are the same every time."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.money import INT64_MAX, INT64_MIN, Money

amounts = st.integers(INT64_MIN, INT64_MAX)
weightings = st.lists(st.integers(0, 10**6), min_size=1, max_size=12).filter(any)


def parts_of(minor_units: int, weights: Sequence[int]) -> list[int]:
    parts = Money(minor_units, "BRL").allocate(weights)
    assert {part.currency for part in parts} == {"BRL"}
    return [part.minor_units for part in parts]


@pytest.mark.parametrize(
    ("minor_units", "weights", "parts"),
    [
        pytest.param(100, [1] * 3, [34, 33, 33], id="splitting 100 by 3"),
        pytest.param(
            1_001, [1] * 7, [143, 143, 143, 143, 143, 143, 143], id="splitting 10.01 by 7"
        ),
        pytest.param(
            1_000, [1] * 7, [143, 143, 143, 143, 143, 143, 142], id="splitting 10.00 by 7"
        ),
        pytest.param(-100, [1] * 3, [-34, -33, -33], id="splitting -100 by 3"),
        pytest.param(100, [1, 1, 4], [17, 17, 66], id="the largest remainders, not the last"),
        pytest.param(10, [3, 3, 1], [4, 4, 2], id="two units left"),
        pytest.param(10_000, [250, 9_750], [250, 9_750], id="a fee of 2.5 %"),
        pytest.param(1, [0, 1, 1], [0, 1, 0], id="a weight of 0 gets nothing"),
        pytest.param(2, [1] * 5, [1, 1, 0, 0, 0], id="fewer units than parts"),
        pytest.param(0, [2, 3], [0, 0], id="nothing"),
        pytest.param(7, [5], [7], id="one part"),
        pytest.param(
            INT64_MAX,
            [10**30, 10**30],
            [2**62, 2**62 - 1],
            id="no float could carry it",
        ),
    ],
)
def test_splitting_gives_these_parts(
    minor_units: int, weights: list[int], parts: list[int]
) -> None:
    assert sum(parts) == minor_units
    assert parts_of(minor_units, weights) == parts


@given(amounts, weightings)
def test_splitting_neither_loses_nor_invents_a_minor_unit(
    minor_units: int, weights: list[int]
) -> None:
    assert sum(parts_of(minor_units, weights)) == minor_units


@given(amounts, weightings)
def test_splitting_gives_each_its_share_rounded_up_or_down(
    minor_units: int, weights: list[int]
) -> None:
    whole = sum(weights)
    for part, weight in zip(parts_of(minor_units, weights), weights, strict=True):
        assert abs(part * whole - minor_units * weight) < whole
        assert weight > 0 or part == 0


@given(amounts, st.integers(1, 12))
def test_splitting_evenly_favours_the_earliest(minor_units: int, count: int) -> None:
    sizes = [abs(part) for part in parts_of(minor_units, [1] * count)]

    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


@given(amounts, weightings)
def test_splitting_a_negative_amount_mirrors_the_positive(
    minor_units: int, weights: list[int]
) -> None:
    mirrored = [-part for part in parts_of(-minor_units, weights)]

    assert parts_of(minor_units, weights) == mirrored


@given(amounts, weightings, st.integers(2, 1_000))
def test_splitting_depends_on_the_proportions_alone(
    minor_units: int, weights: list[int], factor: int
) -> None:
    scaled = [weight * factor for weight in weights]

    assert parts_of(minor_units, scaled) == parts_of(minor_units, weights)


@pytest.mark.parametrize("weights", [[], [0], [0, 0], [-1], [2, -1], [-1, 2], [1, -1]])
def test_weights_that_say_nothing_are_refused(weights: list[int]) -> None:
    with pytest.raises(ValueError, match="weights must not be negative"):
        Money(100, "BRL").allocate(weights)


def test_the_other_side_of_an_amount_is_its_opposite() -> None:
    assert -Money(100, "BRL") == Money(-100, "BRL")
    assert -Money(0, "JPY") == Money(0, "JPY")
